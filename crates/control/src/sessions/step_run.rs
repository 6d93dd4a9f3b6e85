//! The run of a step, from when it is kept to its end in the store.

use super::step_log::StepLog;
use super::step_receipt::with_terms;
use super::step_seal::StepSeal;
use crate::jobs::outcome_message;
use crate::output_log::{KeptStream, MAX_BYTES};
use crate::session_worker::{SessionFailure, StepEnd, StepOrder};
use crate::terms::Terms;
use crate::{Control, now_ms};
use cofferdam_api::{SessionRequest, StepRequest, StepResult};
use cofferdam_core::{JobState, Outcome, SessionId};
use cofferdam_store::{AuditEvent, OutputEvent, SealStep, StepFinish, StepPart, StepRecord, StoreError};
use cofferdam_turns::Handle;
use serde_json::json;
use std::time::Duration;

/// After how long a store that failed is tried again, and for how long.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
const END_PATIENCE: Duration = Duration::from_secs(60);

/// A step that is kept, and is to be run.
pub(super) struct StepAttempt {
    pub(super) step: StepRecord,
    pub(super) tenant: String,
    /// Who has its session.
    pub(super) worker: String,
    pub(super) request: StepRequest,
    pub(super) handle: Handle,
    /// Of what is kept of it.
    pub(super) seal: Option<StepSeal>,
    pub(super) terms: Terms,
}

impl Control {
    pub(super) fn spawn_step(&self, attempt: StepAttempt) {
        let control = self.clone();
        tokio::spawn(async move { control.attend_step(attempt).await });
    }

    async fn attend_step(&self, attempt: StepAttempt) {
        let StepAttempt { step, tenant, worker, request, handle, seal, terms } = attempt;
        let most = self.step_output_bytes(&tenant, &step.session).await;
        let mut log = StepLog::new(self.clone(), &step, &tenant, handle.clone(), most, seal.clone());
        let end = match self.session_worker(&worker).await {
            None => Some(StepEnd::Lost { why: "its worker cannot be reached".to_owned() }),
            Some(worker) => match (worker.sessions(), SessionId::parse("id", &step.session)) {
                (Some(sessions), Ok(session)) => {
                    let (generation, number) = (step.generation, step.number);
                    let order = StepOrder { session, generation, number, request };
                    tokio::select! {
                        biased;
                        end = sessions.step(order, &mut log, handle.cancel.subscribe()) => Some(end),
                        // The session has ended, and the step with it: nothing of it may be written any more.
                        () = handle.taken_away() => None,
                    }
                }
                _ => Some(StepEnd::Errored(SessionFailure::new("unsupported", "its worker has no sessions"))),
            },
        };
        let kept = Kept { tenant: &tenant, worker: &worker, seal: seal.as_ref(), terms: &terms };
        if let Some(mut end) = end {
            if let (StepEnd::Result(result), Some(keeper)) = (&mut end, &log.keeper) {
                keeper.settle_into(&mut result.artifacts, &mut result.warnings).await;
            }
            self.finish_step(&step, end, log, &kept).await;
        }
        self.parts.running.remove(&step.id, &handle);
    }

    /// How much of each stream of a step is kept.
    async fn step_output_bytes(&self, tenant: &str, session: &str) -> usize {
        if let Some(bytes) = self.parts.rooms.output_bytes(session) {
            return bytes;
        }
        let record = self.parts.store.session(tenant, session).await.ok().flatten();
        let request = record.and_then(|record| serde_json::from_str::<SessionRequest>(&record.spec).ok());
        let asked = request.and_then(|request| request.limits.output_bytes);
        asked.map_or(MAX_BYTES, |bytes| MAX_BYTES.min(bytes as usize))
    }

    /// Writes how a step ended. A store that fails is tried again for a while: the step itself cannot be repeated.
    async fn finish_step(&self, step: &StepRecord, end: StepEnd, log: StepLog, with: &Kept<'_>) {
        let cut = log.cut();
        let (kept, rest) = log.into_kept();
        let (state, reason, message, mut result) = describe(end);
        if let Some(result) = &mut result {
            (result.stdout_truncated, result.stderr_truncated, result.results_truncated) = cut;
        }
        let event = AuditEvent {
            at_ms: now_ms(),
            kind: "step.finished",
            actor: "system".to_owned(),
            resource: step.id.clone(),
            details: json!({
                "session": step.session, "number": step.number, "state": state, "reason": reason,
                "stdout_sha256": kept[0].sha256, "stderr_sha256": kept[1].sha256,
            }),
        };
        let finish = StepFinish {
            id: step.id.clone(),
            session: step.session.clone(),
            tenant: with.tenant.to_owned(),
            generation: step.generation,
            state,
            reason,
            // A message may quote what the guest said, and no database keeps a NUL in a text.
            message: message.map(|text| text.replace('\0', "\u{fffd}")),
            result: result.and_then(|result| stored(&result, &kept, with)),
            at_ms: event.at_ms,
        };
        match sealed_end(with.seal, finish, rest) {
            Ok((finish, rest)) => self.write_end(finish, rest, event).await,
            // Nothing is kept that anybody could read: the step is lost with the process, or its session.
            Err(error) => tracing::error!("the end of {} cannot be sealed: {error}", step.id),
        }
    }

    async fn write_end(&self, finish: StepFinish, rest: Vec<OutputEvent>, event: AuditEvent) {
        let began = tokio::time::Instant::now();
        while began.elapsed() < END_PATIENCE {
            match self.parts.store.finish_step(finish.clone(), rest.clone(), event.clone()).await {
                Err(StoreError::Failed(_)) => tokio::time::sleep(AGAIN_AFTER).await,
                // Written, or its session has ended and the step with it.
                _ => return,
            }
        }
    }
}

/// What is kept with a step's end.
struct Kept<'a> {
    tenant: &'a str,
    worker: &'a str,
    seal: Option<&'a StepSeal>,
    terms: &'a Terms,
}

/// A result as it is kept: with what a receipt says of it besides.
fn stored(result: &StepResult, kept: &[KeptStream; 2], with: &Kept<'_>) -> Option<String> {
    let mut value = serde_json::to_value(result).ok()?;
    for (name, KeptStream { sha256, size_bytes }) in ["stdout", "stderr"].into_iter().zip(kept) {
        value[format!("{name}_sha256")] = json!(sha256);
        value[format!("{name}_size_bytes")] = json!(size_bytes);
    }
    Some(with_terms(value, with.terms, with.worker).to_string())
}

/// How a step ended, as it is kept.
fn sealed_end(
    seal: Option<&StepSeal>,
    finish: StepFinish,
    rest: Vec<OutputEvent>,
) -> crate::Result<(StepFinish, Vec<OutputEvent>)> {
    let Some(seal) = seal else { return Ok((finish, rest)) };
    let id = finish.id.clone();
    let text = |part, plain: Option<String>| plain.map(|plain| seal.text(&id, part, &plain)).transpose();
    let (result, message) = (finish.result.clone(), finish.message.clone());
    let (result, message) = (text(StepPart::Result, result)?, text(StepPart::Message, message)?);
    Ok((StepFinish { result, message, ..finish }, seal.output(&id, rest)?))
}

type Described = (JobState, Option<String>, Option<String>, Option<StepResult>);

/// The state, its reason, a message, and the result without the output, which is kept apart.
fn describe(end: StepEnd) -> Described {
    match end {
        StepEnd::Lost { why } => (JobState::Lost, Some("lost".to_owned()), Some(why), None),
        StepEnd::Errored(SessionFailure { code, message }) => {
            let outcome = Outcome::Failed { code: code.clone(), message: message.clone() };
            let result = super::step_view::result_of(outcome);
            (JobState::Errored, Some(code), Some(message), Some(result))
        }
        StepEnd::Result(result) => {
            let state = JobState::of(&result.outcome);
            let outcome = serde_json::to_value(&result.outcome).unwrap_or_default();
            let reason = outcome.get("kind").and_then(|kind| kind.as_str()).map(str::to_owned);
            let message = match &result.error {
                Some(error) if error.value.is_empty() => Some(error.name.clone()),
                Some(error) => Some(format!("{}: {}", error.name, error.value)),
                None => outcome_message(&result.outcome),
            };
            (state, reason, message.map(short), Some(*result))
        }
    }
}

/// A message is a line or two; the whole is in the result.
fn short(text: String) -> String {
    const MOST: usize = 500;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
