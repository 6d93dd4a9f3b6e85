//! Waiting for a process to end, or bringing that about: its own end, its deadline, or a request.

use super::cancel::{Cancellation, Request};
use crate::terminal::Terminal;
use cofferdam_backend::{BackendError, ExitStatus, Process};
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

const SIGTERM: i32 = 15;

/// What made a process end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    Itself,
    Deadline,
    Cancelled { by: String },
}

/// The end of a process, as far as it is known when the sandbox still stands.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) cause: Cause,
    /// `None` while it still runs: the sandbox is about to take it along.
    pub(crate) status: Option<Result<ExitStatus, BackendError>>,
    /// Whoever asked wants nothing but the end.
    pub(crate) forced: bool,
}

/// Waits for the process to end. At the deadline, or when asked, it is told by a signal and has `grace` to
/// end; another request cuts that short.
pub(crate) async fn supervise(
    process: &dyn Process,
    deadline: Instant,
    grace: Duration,
    cancel: &mut Cancellation,
) -> Ending {
    let mut wait = pin!(process.wait());
    let (cause, signal) = tokio::select! {
        biased;
        status = &mut wait => return Ending { cause: Cause::Itself, status: Some(status), forced: false },
        Request { by, signal } = cancel.requested() => (Cause::Cancelled { by }, signal),
        () = sleep_until(deadline) => (Cause::Deadline, SIGTERM),
    };
    let last = async {
        // A signal that cannot be sent is no reason to wait less: the process may be ending already.
        let _ = process.signal(signal).await;
        wait.await
    };
    tokio::select! {
        biased;
        status = last => Ending { cause, status: Some(status), forced: false },
        _ = cancel.requested() => Ending { cause, status: None, forced: true },
        () = sleep(grace) => Ending { cause, status: None, forced: false },
    }
}

/// Passes on the sizes of the caller's terminal, for as long as it is polled.
pub(super) async fn follow_size(process: &dyn Process, terminal: Option<&mut Terminal>) {
    let Some(terminal) = terminal else { return };
    loop {
        let size = terminal.next_size().await;
        // The next size comes with the next change; a terminal drawn at the old one is not worth an error.
        let _ = process.resize(size.rows, size.columns).await;
    }
}
