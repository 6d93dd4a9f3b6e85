//! What is said about a job when it is over: all of it as JSON, or what its output alone does not tell.

use crate::exit::{Failure, say};
use cofferdam_core::{ByteSize, JobResult, Limits, Outcome, SkippedArtifact};
use std::io::Write;
use std::time::Duration;

/// Hostile code can leave thousands; the first few say what is wrong.
const SKIPPED_SHOWN: usize = 10;

/// The whole result, in one line.
pub(super) fn json(result: &JobResult, stdout: &mut dyn Write) -> Result<(), Failure> {
    let mut text = serde_json::to_vec(result)?;
    text.push(b'\n');
    Ok(stdout.write_all(&text)?)
}

/// What is worth knowing besides the output; `stored` says whether artifacts were asked for.
pub(super) fn notes(result: &JobResult, stored: bool) {
    result.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    if stored {
        skipped(&result.artifacts_skipped).iter().for_each(|line| say(line));
    }
}

/// Says how the job ended, where its exit code does not.
pub(super) fn ending(outcome: &Outcome, limits: &Limits) {
    if let Some(line) = ending_line(outcome, limits) {
        say(&line);
    }
}

fn ending_line(outcome: &Outcome, limits: &Limits) -> Option<String> {
    match outcome {
        Outcome::Exited { .. } | Outcome::Signaled { .. } => None,
        Outcome::TimedOut => Some(format!("timed out after {}", human(limits.timeout))),
        Outcome::OomKilled => {
            Some(format!("out of memory: the limit was {}; see --memory", ByteSize(limits.memory_bytes)))
        }
        Outcome::Cancelled { by } => Some(format!("cancelled by {by}")),
        Outcome::Denied { rule } => Some(format!("denied by {rule}")),
        Outcome::Expired => Some("expired".to_owned()),
        Outcome::Lost => Some("lost: the sandbox ended before the job did".to_owned()),
        Outcome::Failed { code, message } => Some(format!("failed ({code}): {message}")),
    }
}

fn skipped(artifacts: &[SkippedArtifact]) -> Vec<String> {
    let shown = artifacts.iter().take(SKIPPED_SHOWN);
    let mut lines: Vec<_> =
        shown.map(|a| format!("artifact {:?} was not taken: {}", a.path, a.reason)).collect();
    if artifacts.len() > SKIPPED_SHOWN {
        let rest = artifacts.len() - SKIPPED_SHOWN;
        lines.push(format!("{rest} more artifacts were not taken; --json lists them"));
    }
    lines
}

/// A duration as it would be typed.
fn human(duration: Duration) -> String {
    match duration.as_millis() {
        ms if !ms.is_multiple_of(1000) => format!("{ms}ms"),
        ms if !ms.is_multiple_of(60_000) => format!("{}s", ms / 1000),
        ms if !ms.is_multiple_of(3_600_000) => format!("{}m", ms / 60_000),
        ms => format!("{}h", ms / 3_600_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_that_an_exit_code_cannot_tell_are_said() {
        let limits = Limits { timeout: Duration::from_secs(90), ..Limits::default() };
        assert_eq!(ending_line(&Outcome::TimedOut, &limits).unwrap(), "timed out after 90s");
        assert!(
            ending_line(&Outcome::OomKilled, &limits)
                .unwrap()
                .starts_with("out of memory: the limit was 2 GiB")
        );
        assert_eq!(ending_line(&Outcome::Exited { code: 1 }, &limits), None);
        assert_eq!(human(Duration::from_millis(1500)), "1500ms");
        assert_eq!(human(Duration::from_secs(300)), "5m");
        assert_eq!(human(Duration::from_secs(7200)), "2h");
    }

    #[test]
    fn many_skipped_artifacts_are_counted() {
        let one = SkippedArtifact { path: "a\n".to_owned(), reason: "it is a link".to_owned() };
        let lines = skipped(&vec![one; 25]);
        assert_eq!(lines[0], "artifact \"a\\n\" was not taken: it is a link");
        assert_eq!((lines.len(), lines[10].starts_with("15 more")), (11, true));
    }
}
