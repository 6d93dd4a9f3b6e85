//! `cofferdam doctor`: the machine's checks as a table.

use crate::args::DoctorArgs;
use crate::exit::Failure;
use crate::host::colour::Colours;
use cofferdam_core::{Check, CheckState};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// Fits the narrowest terminal that people still use for tables like this.
const WIDTH: usize = 100;

/// The columns before what was found: two spaces, the state, the name, and the gaps.
const STATE_WIDTH: usize = 8;
const NAME_WIDTH: usize = 24;
const INDENT: usize = 2 + STATE_WIDTH + 2 + NAME_WIDTH + 2;

/// Something that strict mode cannot do without is missing.
const MISSING: u8 = 1;

pub(super) fn doctor(args: &DoctorArgs, checks: &[Check]) -> Result<ExitCode, Failure> {
    let text = if args.json {
        serde_json::to_string_pretty(checks)? + "\n"
    } else {
        table(checks, Colours::for_stdout())
    };
    std::io::stdout().write_all(text.as_bytes())?;
    let broken = checks.iter().any(|check| check.required && check.state == CheckState::Missing);
    Ok(if broken { ExitCode::from(MISSING) } else { ExitCode::SUCCESS })
}

/// Checks under the heading of their group, in the order in which groups first appear.
fn table(checks: &[Check], colours: Colours) -> String {
    let mut groups: Vec<&str> = Vec::new();
    for check in checks {
        if !groups.contains(&check.group) {
            groups.push(check.group);
        }
    }
    let mut text = String::new();
    for group in groups {
        let _ = writeln!(text, "{}", colours.bold(group));
        for check in checks.iter().filter(|check| check.group == group) {
            row(&mut text, check, colours);
        }
        text.push('\n');
    }
    summary(&mut text, checks);
    text
}

fn row(text: &mut String, check: &Check, colours: Colours) {
    let word = match check.state {
        CheckState::Ok => "ok",
        CheckState::Degraded => "degraded",
        CheckState::Missing => "missing",
    };
    let state = format!("{word:<STATE_WIDTH$}");
    let state = match check.state {
        CheckState::Ok => colours.green(&state),
        CheckState::Degraded => colours.yellow(&state),
        CheckState::Missing => colours.red(&state),
    };
    let mark = if check.required && check.state == CheckState::Missing { " (required)" } else { "" };
    let mut found = wrap(&format!("{}{mark}", check.found), WIDTH - INDENT).into_iter();
    let first = found.next().unwrap_or_default();
    let _ = if check.name.chars().count() > NAME_WIDTH {
        writeln!(text, "  {state}  {}\n{:INDENT$}{first}", check.name, "")
    } else {
        writeln!(text, "  {state}  {:<NAME_WIDTH$}  {first}", check.name)
    };
    for line in found {
        let _ = writeln!(text, "{:INDENT$}{line}", "");
    }
    let fix = check.fix.as_ref().filter(|_| check.state != CheckState::Ok);
    for line in fix.map(|fix| wrap(&format!("fix: {fix}"), WIDTH - INDENT)).unwrap_or_default() {
        let _ = writeln!(text, "{:INDENT$}{line}", "");
    }
}

fn summary(text: &mut String, checks: &[Check]) {
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let (ok, degraded, missing) =
        (count(CheckState::Ok), count(CheckState::Degraded), count(CheckState::Missing));
    let _ = writeln!(text, "{ok} ok, {degraded} degraded, {missing} missing");
}

/// Breaks text at spaces; a word that is longer than a line (a path) is cut.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut rest: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + rest.len() > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        while rest.len() > width {
            lines.push(rest.drain(..width).collect());
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        used += rest.len();
        line.extend(rest);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(group: &'static str, name: &str, state: CheckState, fix: Option<&str>) -> Check {
        let found = "what was found, which can be a rather long sentence about the kernel ".repeat(2);
        Check { group, name: name.to_owned(), state, found, fix: fix.map(str::to_owned), required: true }
    }

    #[test]
    fn rows_are_grouped_and_no_line_is_too_wide() {
        let checks = [
            check("kernel", "a", CheckState::Ok, Some("not shown")),
            check("cgroup", &"b".repeat(60), CheckState::Missing, Some(&"/path".repeat(40))),
            check("kernel", "c", CheckState::Degraded, Some("upgrade")),
        ];
        let table = table(&checks, Colours::none());
        assert!(table.lines().all(|line| line.chars().count() <= WIDTH), "{table}");
        assert_eq!(table.lines().filter(|line| *line == "kernel").count(), 1);
        assert!(table.contains("fix: upgrade") && !table.contains("not shown"));
        assert!(table.ends_with("1 ok, 1 degraded, 1 missing\n"));
    }

    #[test]
    fn text_breaks_at_spaces() {
        assert_eq!(wrap("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrap("aaaaaaa b", 3), ["aaa", "aaa", "a b"]);
        assert_eq!(wrap("", 3), [""]);
    }
}
