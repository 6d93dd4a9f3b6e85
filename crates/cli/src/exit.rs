//! What the shell is told: exit codes, and one line for everything that went wrong.

use cofferdam_backend::BackendError;
use cofferdam_core::Outcome;
use cofferdam_worker::JobError;
use std::error::Error;
use std::process::ExitCode;

const TIMED_OUT: u8 = 124;
pub(crate) const OURS: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
const SIGKILL: i32 = 9;

/// A failure of ours: one line, and the code to leave with.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { code: OURS, message: message.into() }
    }

    /// Says so on stderr.
    pub(crate) fn report(self) -> ExitCode {
        say(&self.message);
        ExitCode::from(self.code)
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(chain(&error))
    }
}

/// The failure of a job that has no result.
pub(crate) fn job_failure(error: &JobError) -> Failure {
    let code = match error {
        JobError::Start(BackendError::NotFound { .. }) | JobError::MissingRuntime { .. } => NOT_FOUND,
        JobError::Start(BackendError::NotPermitted { .. }) => NOT_EXECUTABLE,
        _ => OURS,
    };
    Failure { code, message: chain(error) }
}

/// The exit code for how a job ended; `asked` is the signal by which we were told to end it.
pub(crate) fn outcome_code(outcome: &Outcome, asked: Option<i32>) -> u8 {
    match outcome {
        // A process has eight bits to end with, and so have we.
        Outcome::Exited { code } => code.to_le_bytes()[0],
        Outcome::Signaled { signal } => by_signal(*signal),
        Outcome::TimedOut => TIMED_OUT,
        Outcome::OomKilled => by_signal(SIGKILL),
        Outcome::Cancelled { .. } => asked.map_or(OURS, by_signal),
        Outcome::Denied { .. } | Outcome::Expired | Outcome::Lost | Outcome::Failed { .. } => OURS,
    }
}

/// The code of a process that a signal ended.
pub(crate) fn by_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// An error and its causes, in one line.
fn chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Errors that are transparent show their cause's text as their own.
        if !message.ends_with(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        cause = error.source();
    }
    message
}

/// Writes one line to stderr. Where stderr is closed there is nobody left to tell.
pub(crate) fn say(message: &str) {
    use std::io::Write;
    // In one write, so that no other process's output gets into the line.
    let line = format!("cofferdam: {}\n", one_line(message));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Names and values in messages may come out of a sandbox: nothing in them may start a line or move a cursor.
fn one_line(message: &str) -> String {
    let mut line = String::with_capacity(message.len());
    for c in message.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn codes_follow_the_shell() {
        let code = |outcome| outcome_code(&outcome, Some(15));
        assert_eq!(code(Outcome::Exited { code: 3 }), 3);
        assert_eq!(code(Outcome::Exited { code: 256 }), 0);
        assert_eq!(code(Outcome::Signaled { signal: 11 }), 139);
        assert_eq!(code(Outcome::TimedOut), 124);
        assert_eq!(code(Outcome::OomKilled), 137);
        assert_eq!(code(Outcome::Cancelled { by: "me".into() }), 143);
        assert_eq!(code(Outcome::Lost), 125);
    }

    #[test]
    fn what_cannot_be_started_is_told_apart() {
        let path = "x".to_owned();
        let missing = JobError::Start(BackendError::NotFound { path: path.clone() });
        assert_eq!(job_failure(&missing).code, 127);
        let closed = JobError::Start(BackendError::NotPermitted { path: path.clone(), reason: "no".into() });
        assert_eq!(job_failure(&closed).code, 126);
        let nowhere = JobError::Workdir(BackendError::NotFound { path });
        assert_eq!(job_failure(&nowhere).code, 125);
    }

    #[test]
    fn causes_are_in_the_line_once() {
        let source = BackendError::failed("mount", io::Error::other("no"));
        let error = JobError::Create(source);
        assert_eq!(chain(&error), "the sandbox could not be made: mount: no");
    }

    #[test]
    fn hostile_text_stays_in_its_line() {
        assert_eq!(one_line("a\nb\x1b[2J"), "a\\nb\\u{1b}[2J");
    }
}
