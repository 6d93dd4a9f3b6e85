//! Runs the job, and listens to whoever wants it to end sooner.

use super::open::{ArtifactsOut, Opened};
use super::report;
use crate::exit::{Failure, by_signal, job_failure, outcome_code};
use crate::host::live::{HangUp, LiveWriter, Sink};
use crate::host::signals::{SIGPIPE, Signals, name};
use crate::host::terminal::{RawMode, follow_size};
use cofferdam_backend::{Backend, Sandbox};
use cofferdam_core::{JobResult, Outcome};
use cofferdam_worker::{Canceller, Discard, JobError, LiveOutput, cancellation};
use std::cell::Cell;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::sync::Arc;

/// How the caller sees the job.
enum Shown {
    /// Its result, at the end.
    Json(Sink),
    /// Its output, as it comes.
    Live(LiveWriter),
}

/// The exit code of the whole command, which then ends at once: its sandbox may go with it. With JSON asked for, the
/// result is all that `stdout` gets.
pub(super) async fn attend(
    backend: &dyn Backend,
    mut opened: Opened,
    stdout: Sink,
    stderr: Sink,
) -> Result<u8, Failure> {
    let mut signals = Signals::listen()?;
    let asked = Cell::new(None);
    let limits = opened.spec.limits.clone();
    let ends_with_us = backend.ends_with_host();
    let artifacts_out = opened.artifacts_out.take();
    let mut shown = match opened.json {
        true => Shown::Json(stdout),
        false => Shown::Live(LiveWriter::new(stdout, stderr)),
    };
    let result = run(backend, opened, &mut shown, &mut signals, &asked).await;
    let (result, sandbox) = result.map_err(|error| {
        artifacts_out.iter().for_each(ArtifactsOut::take_back);
        job_failure(&error)
    })?;
    match sandbox {
        // It goes with this process, which the launcher notices. Asked for now, its end would only compete with ours
        // for a processor, and our caller would wait for both.
        Some(sandbox) if leaves_at_once(&shown, &result) && ends_with_us => std::mem::forget(sandbox),
        Some(sandbox) if ends_with_us => drop(sandbox),
        // What goes on by itself is seen off before we leave.
        Some(sandbox) => sandbox.destroy().await.map_err(|error| job_failure(&JobError::Create(error)))?,
        None => {}
    }
    match shown {
        Shown::Json(mut stdout) => report::json(&result, &mut stdout)?,
        Shown::Live(live) => {
            if let Some(signal) = flush(live, &mut signals).await? {
                return Ok(by_signal(signal));
            }
            report::notes(&result, artifacts_out.is_some());
        }
    }
    report::ending(&result.outcome, &limits);
    Ok(outcome_code(&result.outcome, asked.get()))
}

/// Whether nothing is left to be said, which somebody could keep us waiting with.
fn leaves_at_once(shown: &Shown, result: &JobResult) -> bool {
    let is_plain = matches!(result.outcome, Outcome::Exited { .. });
    let is_silent = matches!(shown, Shown::Live(live) if live.is_silent());
    is_plain && is_silent && result.warnings.is_empty() && result.artifacts_skipped.is_empty()
}

/// Waits until the job's output is out of our hands. Somebody may hold it for ever, so that a signal ends the
/// wait, too; then it is what ended us, as it is when nobody reads on.
async fn flush(mut live: LiveWriter, signals: &mut Signals) -> Result<Option<i32>, Failure> {
    tokio::select! {
        biased;
        written = live.finish() => match written {
            Ok(()) => Ok(None),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Some(SIGPIPE)),
            Err(error) => Err(Failure::new(format!("the output could not all be written: {error}"))),
        },
        signal = signals.next() => Ok(Some(signal)),
    }
}

async fn run(
    backend: &dyn Backend,
    opened: Opened,
    shown: &mut Shown,
    signals: &mut Signals,
    asked: &Cell<Option<i32>>,
) -> Result<(JobResult, Option<Arc<dyn Sandbox>>), JobError> {
    let (canceller, cancellation) = cancellation();
    let (live, hang_up): (&mut dyn LiveOutput, _) = match shown {
        Shown::Json(_) => (&mut Discard, None),
        Shown::Live(live) => {
            let hang_up = live.hang_up();
            (live, Some(hang_up))
        }
    };
    let raw = opened.spec.terminal.is_some().then(RawMode::enter).transpose();
    let _restored_at_the_end = raw.unwrap_or_else(|error| {
        crate::exit::say(&format!("the terminal stays as it is: {error}"));
        None
    });
    tokio::select! {
        biased;
        result = cofferdam_worker::run_keeping(backend, opened.spec, live, cancellation) => result,
        never = pass_on(signals, hang_up, &canceller, asked) => match never {},
        () = follow_size(opened.resizer) => unreachable!("sizes are followed for as long as they change"),
    }
}

/// Turns signals, and the end of whoever read our output, into requests to end the job.
async fn pass_on(
    signals: &mut Signals,
    hang_up: Option<HangUp>,
    canceller: &Canceller,
    asked: &Cell<Option<i32>>,
) -> Infallible {
    let mut hang_up = hang_up;
    loop {
        let gone = async {
            match &hang_up {
                Some(hang_up) => hang_up.happened().await,
                None => std::future::pending().await,
            }
        };
        let signal = tokio::select! {
            signal = signals.next() => signal,
            () = gone => SIGPIPE,
        };
        if signal == SIGPIPE {
            hang_up = None;
        }
        if asked.get().is_none() {
            asked.set(Some(signal));
        }
        canceller.cancel(name(signal), signal);
    }
}

#[cfg(test)]
#[path = "attend_tests.rs"]
mod tests;
