//! A step that is code: a cell for the interpreter of its context.

use super::SessionError;
use super::context::Held;
use super::live::Live;
use super::pump::Pump;
use super::spec::{StepEnd, StepOutput};
use crate::job::{Cancellation, Request};
use cofferdam_backend::BackendError;
use cofferdam_core::{LimitHit, LimitKind, Outcome};
use cofferdam_kernels::{Cell, CellEnd, CellError, CellOutcome, Kernel, KernelError, KernelLanguage};
use std::time::Duration;
use tokio::time::Instant;

pub(super) struct Code {
    pub(super) language: KernelLanguage,
    pub(super) code: String,
    /// For an interpreter that has to be started.
    pub(super) whole_env: Vec<(String, String)>,
    /// For this step, in one that runs.
    pub(super) env: Vec<(String, String)>,
    pub(super) timeout: Duration,
}

/// Runs a cell in the context's interpreter; where that has died, or there was none, in a new one.
pub(super) async fn run(
    live: &Live,
    held: &mut Held,
    code: Code,
    output: &mut dyn StepOutput,
    mut cancel: Cancellation,
) -> Result<StepEnd, SessionError> {
    let began = Instant::now();
    let Code { language, code, whole_env, env, timeout } = code;
    if held.kernel.as_ref().is_some_and(|kernel| !kernel.is_alive()) {
        held.kernel = None;
    }
    if held.kernel.is_none() {
        let start = live.start_kernel(language, &whole_env);
        let started = tokio::select! {
            biased;
            started = start => started.map_err(|error| refused(language, error))?,
            Request { by, .. } = cancel.requested() => {
                return Ok(StepEnd::of(Outcome::Cancelled { by }, began.elapsed()));
            }
        };
        held.kernel = Some(started);
    }
    let is_restarted = std::mem::replace(&mut held.has_run, true) && held.count == 0;
    let Some(kernel) = &mut held.kernel else { return Err(SessionError::Kernel("there is none".to_owned())) };
    kernel.switch(language)?;
    let cell = Cell { code, env, timeout: Some(timeout) };
    let (end, by) = converse(kernel, cell, output, &mut cancel).await?;
    let is_over = !kernel.is_alive();
    held.count = if is_over { 0 } else { end.execution_count };
    if is_over {
        held.kernel = None;
    }
    Ok(conclude(end, by, is_restarted, began.elapsed()))
}

/// Runs the cell and moves what it tells, until its end. Whoever wants it to end sooner is heard.
async fn converse(
    kernel: &mut Kernel,
    cell: Cell,
    output: &mut dyn StepOutput,
    cancel: &mut Cancellation,
) -> Result<(CellEnd, Option<String>), SessionError> {
    let interrupter = kernel.interrupter();
    let pump = Pump::default();
    let mut told = pump.clone();
    let mut by = None;
    let end = {
        let run = kernel.run(cell, &mut told);
        let listen = async {
            loop {
                let Request { by: who, .. } = cancel.requested().await;
                by.get_or_insert(who);
                interrupter.interrupt().await;
            }
        };
        let moved = pump.forward(output);
        tokio::pin!(run, listen, moved);
        tokio::select! {
            biased;
            end = &mut run => end,
            () = &mut listen => unreachable!("it listens for ever"),
            () = &mut moved => unreachable!("it forwards for ever"),
        }
    };
    pump.drain(output);
    let end = end.map_err(|error| SessionError::Kernel(error.to_string()))?;
    Ok((end, by))
}

fn conclude(end: CellEnd, by: Option<String>, is_restarted: bool, duration: Duration) -> StepEnd {
    let CellEnd { execution_count, outcome, error, exit_code } = end;
    let (outcome, state_kept) = match outcome {
        CellOutcome::Completed => (Outcome::Exited { code: exit_code.unwrap_or(0) }, None),
        CellOutcome::Raised => {
            (Outcome::Exited { code: exit_code.filter(|code| *code != 0).unwrap_or(1) }, None)
        }
        CellOutcome::Interrupted { state_kept } => {
            (Outcome::Cancelled { by: by.unwrap_or_default() }, Some(state_kept))
        }
        CellOutcome::TimedOut { state_kept } => (Outcome::TimedOut, Some(state_kept)),
        CellOutcome::Died { cause } => (cause, Some(false)),
    };
    let mut step = StepEnd::of(outcome, duration);
    if step.outcome == Outcome::OomKilled {
        step.limits_hit.push(LimitHit { limit: LimitKind::Memory, count: 1, first_at_ms: None });
    }
    if step.state_kept.is_none() {
        step.state_kept = state_kept;
    }
    step.error = error.map(|CellError { name, value, traceback }| [name, value, traceback.join("\n")]);
    step.execution_count = Some(execution_count);
    step.is_restarted = is_restarted;
    step
}

fn refused(language: KernelLanguage, error: KernelError) -> SessionError {
    match error {
        KernelError::Invalid(error) => error.into(),
        KernelError::Backend(BackendError::NotFound { path }) => {
            SessionError::MissingRuntime { language: language.as_str(), program: path }
        }
        KernelError::Backend(error) => SessionError::Start(error),
        other => SessionError::Kernel(other.to_string()),
    }
}
