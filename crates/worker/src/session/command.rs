//! A step that is a program of its own.

use super::SessionError;
use super::live::Live;
use super::settle;
use super::spec::{StepEnd, StepOutput};
use crate::job::{Cancellation, Cause, Streams, supervise};
use crate::output::{LiveOutput, OutputStream};
use crate::task_env::workspace;
use cofferdam_backend::{ExitStatus, ProcessSpec, Reader, Stdio, async_trait};
use cofferdam_core::{GuestPath, LimitHit, LimitKind, Outcome};
use std::io::Cursor;
use std::time::Duration;
use tokio::time::{Instant, timeout};

const SIGKILL: i32 = 9;

/// As a shell says that a child of its was killed.
const KILLED_CHILD: i32 = 128 + SIGKILL;

/// How long the end of a killed process may take.
const KILLED_MAX: Duration = Duration::from_secs(5);

pub(super) struct Program {
    pub(super) argv: Vec<String>,
    pub(super) stdin: Option<Vec<u8>>,
    pub(super) workdir: GuestPath,
    pub(super) env: Vec<(String, String)>,
    pub(super) timeout: Duration,
}

/// Hands output on. A trait object of the one kind is none of the other.
pub(super) struct Passed<'o>(pub(super) &'o mut dyn StepOutput);

#[async_trait]
impl LiveOutput for Passed<'_> {
    fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.0.push(stream, bytes);
    }

    async fn ready(&mut self) {
        self.0.ready().await;
    }
}

pub(super) async fn run(
    live: &Live,
    program: Program,
    output: &mut dyn StepOutput,
    mut cancel: Cancellation,
) -> Result<StepEnd, SessionError> {
    let Program { argv, stdin, workdir, env, timeout: time } = program;
    let stdin = stdin.map(|bytes| Box::new(Cursor::new(bytes)) as Reader);
    let make_cwd = workdir != workspace();
    let stdio = Stdio::Pipes { stdin: stdin.is_some() };
    let killed_before = live.oom_kills().await;
    let began = Instant::now();
    let process = live.sandbox.start(ProcessSpec { argv, env, cwd: workdir, make_cwd, stdio }).await;
    let process = process.map_err(SessionError::Start)?;
    let mut streams = Streams::take(&*process, stdin, false, began);
    let mut passed = Passed(output);
    let ending = tokio::select! {
        biased;
        ending = supervise(&*process, began + time, live.grace(), &mut cancel) => ending,
        _ = streams.forward(&mut passed) => unreachable!("bytes are forwarded for as long as they are asked for"),
    };
    let mut status = ending.status;
    if status.is_none() {
        // Its grace is over. The session goes on without it.
        let _ = process.signal(SIGKILL).await;
        status = timeout(KILLED_MAX, process.wait()).await.ok();
    }
    let duration = began.elapsed();
    let kept = settle::settle(streams, &mut passed).await;
    let killed = match &status {
        Some(Ok(ExitStatus::Exited(0))) => 0,
        _ => live.oom_kills().await.saturating_sub(killed_before),
    };
    let outcome = match (ending.cause, status) {
        (Cause::Deadline, _) => Outcome::TimedOut,
        (Cause::Cancelled { by }, _) => Outcome::Cancelled { by },
        (Cause::Itself, Some(Ok(ExitStatus::Signaled(SIGKILL) | ExitStatus::Exited(KILLED_CHILD))))
            if killed > 0 =>
        {
            Outcome::OomKilled
        }
        (Cause::Itself, Some(Ok(ExitStatus::Exited(code)))) => Outcome::Exited { code },
        (Cause::Itself, Some(Ok(ExitStatus::Signaled(signal)))) => Outcome::Signaled { signal },
        (Cause::Itself, Some(Ok(ExitStatus::Lost)) | None) => Outcome::Lost,
        (Cause::Itself, Some(Err(error))) => {
            Outcome::Failed { code: "wait_failed".to_owned(), message: error.to_string() }
        }
    };
    let mut end = StepEnd::of(outcome, duration);
    let hit = |limit, count: u64| (count > 0).then_some(LimitHit { limit, count, first_at_ms: None });
    end.limits_hit = [hit(LimitKind::Memory, killed), hit(LimitKind::Output, kept.dropped)]
        .into_iter()
        .flatten()
        .collect();
    end.warnings.extend(kept.error.map(|error| format!("some output is missing: {error}")));
    Ok(end)
}
