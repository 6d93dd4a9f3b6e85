//! A report for people: what went wrong, in tables that fit a terminal. All of it came out of a sandbox.

use super::super::table::{by_state, one_line, table};
use crate::host::colour::Colours;
use cofferdam_api::Job;
use cofferdam_core::{
    Compared, Diagnostic, ExpectedState, JobKind, Report, ReportState, Severity, TestCase, TestStatus,
    Verdict,
};
use std::fmt::Write;

/// What is shown of each list; --json has the rest.
const MAX_ROWS: usize = 50;
const MAX_DIFF_LINES: usize = 60;

/// The widest that a name or a place may be, so that what was said of it has room.
const NAME: usize = 44;
const PLACE: usize = 36;

const WIDTH: usize = 100;

pub(super) fn page(job: &Job, colours: Colours) -> String {
    let Some(report) = job.result.as_ref().and_then(|result| result.report.as_ref()) else {
        return String::new();
    };
    let mut text = String::new();
    let _ = writeln!(text, "{}", head(job, report, colours));
    if let Some(reason) = &report.reason {
        let _ = writeln!(text, "report {}: {}", state(report.state), fit(reason, WIDTH - 20));
    }
    for note in &report.notes {
        let _ = writeln!(text, "note: {}", fit(note, WIDTH - 6));
    }
    let bad = |test: &&TestCase| matches!(test.status, TestStatus::Failed | TestStatus::Errored);
    let rows: Vec<_> = report.tests.iter().filter(bad).map(test_row).collect();
    rows_of(&mut text, &["STATUS", "TEST", "MESSAGE"], rows, report.counts.not_passed(), colours);
    let is_shown = |said: &&Diagnostic| said.severity != Severity::Note;
    let rows: Vec<_> = report.diagnostics.iter().filter(is_shown).map(diagnostic_row).collect();
    let all = report.diagnostic_counts.errors + report.diagnostic_counts.warnings;
    rows_of(&mut text, &["SEVERITY", "PLACE", "MESSAGE"], rows, all, colours);
    for file in report.expected.iter().filter(|file| file.state != ExpectedState::Same) {
        compared(&mut text, file);
    }
    text
}

fn head(job: &Job, report: &Report, colours: Colours) -> String {
    let verdict = match report.verdict {
        Verdict::Passed => colours.green("passed"),
        Verdict::Failed => colours.red("failed"),
        Verdict::Unknown => colours.yellow("unknown"),
    };
    let tool = report.tool.as_deref().unwrap_or("-");
    let by = report.detected_by.as_deref().map(|by| format!(", by {}", fit(by, 30))).unwrap_or_default();
    let counts = &report.counts;
    let said = &report.diagnostic_counts;
    let sums = match report.kind {
        JobKind::Test => format!(
            "{} passed, {} failed, {} errored, {} skipped",
            counts.passed, counts.failed, counts.errored, counts.skipped
        ),
        _ => format!("{} errors, {} warnings", said.errors, said.warnings),
    };
    format!("{}  {verdict}  {tool}{by}\n{sums}", job.id)
}

fn state(state: ReportState) -> &'static str {
    match state {
        ReportState::Complete => "complete",
        ReportState::Truncated => "truncated",
        ReportState::Missing => "missing",
        ReportState::Broken => "broken",
    }
}

fn rows_of(text: &mut String, head: &[&str], mut rows: Vec<Vec<String>>, all: u64, colours: Colours) {
    if rows.is_empty() {
        return;
    }
    rows.truncate(MAX_ROWS);
    text.push('\n');
    text.push_str(&table(head, &rows, colours, by_state));
    let rest = all.saturating_sub(rows.len() as u64);
    if rest > 0 {
        let _ = writeln!(text, "… and {rest} more: see --json");
    }
}

fn test_row(test: &TestCase) -> Vec<String> {
    let status = if test.status == TestStatus::Errored { "errored" } else { "failed" };
    vec![status.to_owned(), end_of(&test.name, NAME), gist(test.message.as_deref().unwrap_or_default())]
}

/// The line that says most: the first, but the last of a traceback.
fn gist(message: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let is_traceback = first.starts_with("Traceback (most recent call last)");
    let line = if is_traceback { lines.next_back().unwrap_or(first) } else { first };
    line.to_owned()
}

fn diagnostic_row(said: &Diagnostic) -> Vec<String> {
    let severity = if said.severity == Severity::Error { "error" } else { "warning" };
    let mut place = said.file.clone().unwrap_or_default();
    for number in [said.line, said.column].into_iter().flatten() {
        let _ = write!(place, ":{number}");
    }
    vec![severity.to_owned(), end_of(&place, PLACE), said.message.clone()]
}

fn compared(text: &mut String, file: &Compared) {
    let what = match file.state {
        ExpectedState::Same => "is as expected",
        ExpectedState::Differs => "is not as expected",
        ExpectedState::Missing => "was expected and is not there",
        ExpectedState::Unreadable => "was expected and cannot be compared",
    };
    let _ = writeln!(text, "\n{} {what}", end_of(&file.path, 60));
    let diff = file.diff.as_deref().unwrap_or_default();
    for line in diff.lines().take(MAX_DIFF_LINES) {
        let _ = writeln!(text, "{}", fit(line, WIDTH));
    }
    if file.diff_truncated || diff.lines().count() > MAX_DIFF_LINES {
        let _ = writeln!(text, "… and more");
    }
}

/// The begin of a text, in one line.
fn fit(text: &str, width: usize) -> String {
    let line = one_line(&text.replace('\t', "    "));
    match line.chars().count() > width {
        true => line.chars().take(width - 1).chain(['…']).collect(),
        false => line,
    }
}

/// The end of a text, which of a name or a path says more than its begin.
fn end_of(text: &str, width: usize) -> String {
    let line = one_line(text);
    let count = line.chars().count();
    match count > width {
        true => ['…'].into_iter().chain(line.chars().skip(count - width + 1)).collect(),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_traceback_the_end_is_shown() {
        let traceback =
            "Traceback (most recent call last):\n  File \"a.py\", line 1\n\nAssertionError: 1 != 2\n\n";
        assert_eq!(gist(traceback), "AssertionError: 1 != 2");
        assert_eq!(gist("\n one\ntwo"), "one");
        assert_eq!(
            (gist(""), gist("Traceback (most recent call last):")),
            (String::new(), "Traceback (most recent call last):".to_owned())
        );
    }

    #[test]
    fn a_hostile_report_fits_the_terminal_and_moves_no_cursor() {
        let long = "x\x1b[2J\t".repeat(500);
        let test = TestCase {
            name: long.clone(),
            status: TestStatus::Failed,
            time_ms: None,
            message: Some(long.clone()),
            file: Some(long.clone()),
        };
        let said = Diagnostic {
            file: Some(long.clone()),
            line: Some(u64::MAX),
            column: Some(1),
            severity: Severity::Error,
            message: long.clone(),
        };
        let differs = Compared {
            path: long.clone(),
            state: ExpectedState::Differs,
            diff: Some(format!("+{long}\n").repeat(500)),
            diff_truncated: true,
        };
        let report = Report {
            kind: JobKind::Test,
            state: ReportState::Broken,
            tool: Some("junit".to_owned()),
            detected_by: Some(long.clone()),
            reason: Some(long.clone()),
            notes: vec![long],
            tests: vec![test; 80],
            diagnostics: vec![said; 80],
            expected: vec![differs],
            ..Report::default()
        };
        let job = serde_json::json!({
            "id": "job-aaaaaaaaaaaaaaaa", "task_id": "t", "created_at": "", "attempts": 1, "metadata": {},
            "status": {"state": "failed", "reason": null, "message": null, "last_transition_at": ""},
            "result": {"exit_code": 1, "outcome": {"kind": "exited", "code": 1}, "report": report},
        });
        let text = page(&serde_json::from_value(job).unwrap(), Colours::none());
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= WIDTH, "{widest}: {text}");
        assert!(!text.contains('\x1b') && !text.contains('\t') && text.lines().count() < 250, "{text}");
    }
}
