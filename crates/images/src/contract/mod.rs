//! The runtime contract: what an image has to do, as a script for its own shell, and the reader of its answer.
//!
//! The answer comes out of a sandbox with an image that nobody trusts: it may say anything, and it is believed only
//! as far as it goes. An image can pretend to pass, to the harm of those who run it; it cannot do more.

use crate::{Check, Profile};
use serde::Serialize;
use std::fmt::Write;

/// A file that has to be at `/workspace/check.zip` when the script runs.
pub const CHECK_ZIP: &[u8] = include_bytes!("check.zip");

/// The longest reason that is shown of a check.
const MAX_DETAIL: usize = 200;

/// How one check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    Ok,
    Missing,
    Failed,
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckRow {
    pub name: String,
    pub state: CheckState,
    pub detail: String,
}

impl CheckRow {
    pub fn new(name: &str, state: CheckState, detail: impl Into<String>) -> Self {
        Self { name: name.to_owned(), state, detail: detail.into() }
    }
}

/// What the script writes to stderr, to see that the two streams are told apart.
pub const STDERR_MARK: &str = "this is stderr";

/// The script that runs every check of a profile, and prints a line for each.
pub fn check_script(profile: &Profile) -> String {
    let mut script = String::from("cd /workspace || exit 125\n");
    let _ = writeln!(script, "echo '{STDERR_MARK}' >&2");
    for (i, Check { name: _, run }) in profile.checks.iter().enumerate() {
        // A folder of its own, and a shell of its own, so that no check can end or disturb the others. Only what a
        // POSIX shell has itself is used around them: mkdir is one of the tools in question.
        let quoted = run.replace('\'', r"'\''");
        let _ = writeln!(
            script,
            "(mkdir -p check-{i} && cd check-{i} && /bin/sh -c '{quoted}') >/dev/null 2>/workspace/.why"
        );
        let _ = writeln!(script, "code=$?; why=; read -r why < /workspace/.why");
        let _ = writeln!(script, r#"printf '%s\t%s\t%s\n' {i} "$code" "$why""#);
    }
    script
}

/// The rows of a profile, from what the script printed. A check that was not heard of has failed.
pub fn read_answer(profile: &Profile, stdout: &str) -> Vec<CheckRow> {
    let answer = |wanted: usize| {
        let mut lines = stdout.lines().filter_map(|line| {
            let mut parts = line.splitn(3, '\t');
            Some((parts.next()?, parts.next()?.parse::<i32>().ok()?, parts.next()?))
        });
        lines.find(|(number, _, _)| *number == wanted.to_string())
    };
    let row = |(i, check): (usize, &Check)| match answer(i) {
        Some((_, 0, _)) => CheckRow::new(&check.name, CheckState::Ok, ""),
        Some((_, 127, why)) => CheckRow::new(&check.name, CheckState::Missing, short(why)),
        Some((_, code, "")) => CheckRow::new(&check.name, CheckState::Failed, format!("exit code {code}")),
        Some((_, _, why)) => CheckRow::new(&check.name, CheckState::Failed, short(why)),
        None => CheckRow::new(&check.name, CheckState::Failed, "it was not run"),
    };
    profile.checks.iter().enumerate().map(row).collect()
}

fn short(text: &str) -> String {
    text.chars().take(MAX_DETAIL).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let mut profile = Profile::all().swap_remove(0);
        let check = |name: &str, run: &str| Check { name: name.to_owned(), run: run.to_owned() };
        profile.checks = vec![
            check("good", "[ 'it'\"'\"'s' = \"it's\" ]"),
            check("missing", "no-such-tool-here"),
            check("bad", "echo reason >&2; exit 3"),
            check("ends", "kill $$"),
        ];
        profile
    }

    #[test]
    fn rows_are_what_the_script_said() {
        let rows = read_answer(&profile(), "0\t0\t\n1\t127\tnot found\n2\t3\treason\nnoise\n2\tx\ty\n");
        let states: Vec<_> = rows.iter().map(|row| (row.state, row.detail.as_str())).collect();
        let expected = [
            (CheckState::Ok, ""),
            (CheckState::Missing, "not found"),
            (CheckState::Failed, "reason"),
            (CheckState::Failed, "it was not run"),
        ];
        assert_eq!(states, expected);
    }
}
