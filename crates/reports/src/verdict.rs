//! What a report comes to, beside how the tool ended: neither is believed alone.

use crate::Parsed;
use cofferdam_core::{Compared, ExpectedState, JobKind, Outcome, Report, ReportState, Verdict};

/// What a verdict is made of.
#[derive(Debug)]
pub struct Judged {
    pub kind: JobKind,
    pub tool: Option<String>,
    pub detected_by: Option<String>,
    /// None where no report was asked for, and files alone are compared.
    pub parsed: Option<Parsed>,
    pub expected: Vec<Compared>,
}

/// Makes the report of a job that ended so.
pub fn judge(judged: Judged, outcome: &Outcome) -> Report {
    let Judged { kind, tool, detected_by, parsed, expected } = judged;
    let mut notes = Vec::new();
    let parsed = parsed.unwrap_or(Parsed { state: ReportState::Complete, ..Parsed::default() });
    let mut verdict = match kind {
        JobKind::Run => of_exit(outcome),
        JobKind::Test => tests(&parsed, outcome, &mut notes),
        JobKind::Build => build(&parsed, outcome, &mut notes),
    };
    let other = expected.iter().filter(|file| file.state != ExpectedState::Same).count();
    if other > 0 {
        notes.push(format!("{other} of {} expected files are not as expected", expected.len()));
        verdict = Verdict::Failed;
    }
    let Parsed { state, reason, counts, tests, tests_left_out, .. } = parsed;
    let Parsed { diagnostic_counts, diagnostics, diagnostics_left_out, .. } = parsed;
    Report {
        kind,
        verdict,
        tool,
        detected_by,
        state,
        reason,
        notes,
        counts,
        tests,
        tests_left_out,
        diagnostic_counts,
        diagnostics,
        diagnostics_left_out,
        expected,
    }
}

fn of_exit(outcome: &Outcome) -> Verdict {
    match outcome {
        Outcome::Exited { code: 0 } => Verdict::Passed,
        Outcome::Exited { .. } => Verdict::Failed,
        _ => Verdict::Unknown,
    }
}

/// How a tool ended that did not exit by itself.
fn ended(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited { code } => format!("the tool exited with {code}"),
        Outcome::Signaled { signal } => format!("the tool was ended by signal {signal}"),
        Outcome::TimedOut => "the tool ran out of time".to_owned(),
        Outcome::OomKilled => "the tool ran out of memory".to_owned(),
        _ => "the tool did not come to its own end".to_owned(),
    }
}

fn tests(parsed: &Parsed, outcome: &Outcome, notes: &mut Vec<String>) -> Verdict {
    let (bad, exit) = (parsed.counts.not_passed(), outcome.exit_code());
    let is_complete = parsed.state == ReportState::Complete;
    if bad > 0 {
        if exit == Some(0) {
            notes.push(format!("{}, although its report has {bad} failures", ended(outcome)));
        }
        return Verdict::Failed;
    }
    match (exit, is_complete) {
        (None, _) => {
            notes.push(format!("{}, so its report may lack something", ended(outcome)));
            Verdict::Unknown
        }
        (Some(0), false) => {
            notes.push("the tool exited with 0, and what its tests came to is not known".to_owned());
            Verdict::Unknown
        }
        (Some(0), true) if parsed.counts.total == 0 => {
            notes.push("the tool exited with 0, and no test has run".to_owned());
            Verdict::Unknown
        }
        (Some(0), true) => Verdict::Passed,
        (Some(_), true) => {
            notes.push(format!("{}, although its report has no failure", ended(outcome)));
            Verdict::Failed
        }
        (Some(_), false) => Verdict::Failed,
    }
}

/// A compiler that exits with 0 and tells of errors, such as a script around it, has not built.
fn build(parsed: &Parsed, outcome: &Outcome, notes: &mut Vec<String>) -> Verdict {
    let (errors, exit) = (parsed.diagnostic_counts.errors, outcome.exit_code());
    match (exit, errors, parsed.state == ReportState::Complete) {
        (Some(0), 0, true) => Verdict::Passed,
        (Some(0), 0, false) => {
            notes.push("the tool exited with 0, and its output is not complete".to_owned());
            Verdict::Unknown
        }
        (Some(0), _, _) => {
            notes.push(format!("{}, although it told of {errors} errors", ended(outcome)));
            Verdict::Failed
        }
        (Some(_), 0, _) => {
            notes.push(format!("{}, and told of no error that could be read", ended(outcome)));
            Verdict::Failed
        }
        (Some(_), _, _) => Verdict::Failed,
        (None, 0, _) => {
            notes.push(ended(outcome));
            Verdict::Unknown
        }
        (None, _, _) => Verdict::Failed,
    }
}
