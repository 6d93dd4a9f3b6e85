//! The run of a job that this process has claimed, from the claim to its end in the store.

use super::log::Log;
use super::retry::{self, Decided, Ended};
use crate::dispatch::Room;
use crate::output_log::{KeptStream, MAX_BYTES};
use crate::worker::{RunEnd, RunOrder, RunSignals};
use crate::{Control, ControlError, Phase, now_ms};
use cofferdam_api::{JobRequest, Retries};
use cofferdam_core::{JobId, JobState, Outcome, Report, TaskId};
use cofferdam_store::{AuditEvent, Finish, GivenUp, Next, OutputEvent, OutputTail, StoreError};
use cofferdam_telemetry::TRACE;
use cofferdam_turns::Handle;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{Instrument, info_span};

/// After how long a store that failed is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How long the end of a job is tried to be written. A store that is away for longer is away.
const END_PATIENCE: Duration = Duration::from_secs(60);

/// One attempt at a job that this process has claimed.
pub(crate) struct Attempt {
    pub(crate) id: String,
    pub(crate) tenant: String,
    pub(crate) task_id: String,
    pub(crate) fence: i64,
    /// 1 for the first.
    pub(crate) attempt: i64,
    /// None where what was kept cannot be read.
    pub(crate) request: Option<JobRequest>,
    pub(crate) handle: Handle,
    pub(crate) room: Room,
    /// Another owner has begun it, and is gone.
    pub(crate) is_begun: bool,
}

impl Control {
    pub(crate) fn spawn_run(&self, attempt: Attempt) {
        attempt.handle.claim(attempt.fence);
        let control = self.clone();
        // A part of the trace of whoever asked, who may have gone by the time that it ends.
        let span = info_span!(target: TRACE, "job.run", job.id = attempt.id);
        tokio::spawn(async move { control.attend(attempt).await }.instrument(span));
    }

    async fn attend(&self, attempt: Attempt) {
        let Attempt { id, tenant, task_id, fence, attempt, request, handle, room, is_begun } = attempt;
        let has_webhook = request.as_ref().is_some_and(|request| request.webhook.is_some());
        let asked = request.as_ref().and_then(|request| request.limits.output_bytes);
        let most = asked.map_or(MAX_BYTES, |bytes| MAX_BYTES.min(bytes as usize));
        let (worker, is_shared) = (Arc::clone(&room.at.worker), room.at.shared.is_some());
        let worker_id = room.at.worker_id.clone();
        let mut log =
            Log::new(self.clone(), id.clone(), tenant.clone(), fence, handle.clone(), most, is_shared);
        if attempt > 1 || is_begun {
            log.go_on(self.output_tail(&id).await, is_begun);
        }
        let policy = request.as_ref().and_then(|request| request.retries.as_ref()).map(Retries::policy);
        let wanted = request.as_ref().filter(|_| !is_begun).and_then(|request| request.secrets.as_ref());
        let secrets = self.secret_files(&tenant, wanted, true).await;
        let order = order(&id, &task_id, request).map(|(id, task_id, request)| {
            let lease = self.parts.settings.lease;
            move |secrets| RunOrder { id, task_id, request, attempt, fence, lease, is_begun, secrets }
        });
        let signals =
            RunSignals { cancelled: handle.cancel.subscribe(), renewed: handle.renewed.subscribe() };
        let end = match (order, secrets) {
            (Err(message), _) => Some(RunEnd::Errored { code: "unreadable".into(), message }),
            // One that was deleted while the job waited. Whatever else it is, is over in a while.
            (_, Err(ControlError::Invalid(error))) => {
                Some(RunEnd::Errored { code: "secrets_refused".into(), message: error.to_string() })
            }
            (_, Err(error)) => Some(RunEnd::Unstarted { why: error.to_string() }),
            (Ok(order), Ok(secrets)) => tokio::select! {
                biased;
                end = worker.run(order(secrets), &mut log, signals) => Some(end),
                // Dropping the run ends it, if it is in this process. Nothing of it may be written any more.
                () = handle.taken_away() => None,
            },
        };
        // That nobody ever asked it to begin is not the worker's fault.
        if !is_begun && matches!(end, Some(RunEnd::Unstarted { .. })) {
            self.parts.fleet.mark_unwilling(&worker_id);
        }
        // The room is free when the sandbox is gone, whatever the store says.
        drop(room);
        let mut written = Written::Refused;
        if let Some(mut end) = end {
            if matches!(&end, RunEnd::Errored { code, .. } if code == "sandbox_failed") {
                self.parts.trouble.notify_one();
            }
            if let (Some(keeper), RunEnd::Result(result)) = (&log.keeper, &mut end) {
                keeper.settle(result).await;
            }
            let policy = policy.filter(|_| !handle.is_cancelled());
            let run = Ended { id: &id, tenant, fence, attempt, worker: &worker_id, policy };
            let span = info_span!(target: TRACE, "store.finish");
            let (kept, rest) = log.into_kept();
            written = self.finish(run, end, &kept, rest).instrument(span).await;
        }
        self.parts.running.remove(&id, &handle);
        drop(handle);
        if written == Written::Ended {
            self.parts.feeds.tell_end(&id);
            if has_webhook {
                self.parts.deliveries.wake();
            }
        }
        if written != Written::Refused
            && let Ok(id) = JobId::parse("id", &id)
        {
            worker.forget(&id, attempt, fence).await;
        }
        // In this process the room was free before; elsewhere it is when the store says so.
        if is_shared {
            self.parts.fleet.changed.notify_one();
        }
    }

    /// How far the output has come. Without knowing that, nothing can be added to it.
    async fn output_tail(&self, id: &str) -> OutputTail {
        loop {
            match self.parts.store.output_tail(id).await {
                Ok(tail) => return tail,
                Err(_) => tokio::time::sleep(AGAIN_AFTER).await,
            }
        }
    }

    /// Writes how an attempt ended, and says what became of that. A store that fails is tried again for a while: the
    /// run itself cannot be repeated.
    async fn finish(
        &self,
        run: Ended<'_>,
        end: RunEnd,
        kept: &[KeptStream; 2],
        rest: Vec<OutputEvent>,
    ) -> Written {
        let began = Instant::now();
        // Counted once it is written.
        let outcome = match &end {
            RunEnd::Result(result) => result.outcome.clone(),
            RunEnd::Errored { .. } => Outcome::Failed { code: String::new(), message: String::new() },
            RunEnd::Lost { .. } | RunEnd::Unstarted { .. } => Outcome::Lost,
        };
        let (end, done) = match retry::decide(&run, end) {
            Decided::GiveUp(given_up, event) => {
                let done = if given_up.next == Next::Lost { Written::Ended } else { Written::Again };
                (Writing::GiveUp(given_up, event), done)
            }
            Decided::Finish(end) => {
                let (finish, event) = finish_of(&run, end, kept);
                (Writing::Finish(finish, event), Written::Ended)
            }
        };
        // While the store is known to be away nothing new begins, so what waits here is what ran: no more than that.
        while began.elapsed() < END_PATIENCE || self.parts.gates.is_store_shut() {
            let store = &self.parts.store;
            let written = match end.clone() {
                Writing::GiveUp(given_up, event) => store.give_up(given_up, rest.clone(), event).await,
                Writing::Finish(finish, event) => store.finish(finish, rest.clone(), event).await,
            };
            match written {
                Err(StoreError::Failed(_)) => tokio::time::sleep(AGAIN_AFTER).await,
                Err(_) => return Written::Refused,
                Ok(()) => {
                    self.parts.metrics.phase(Phase::Finish, began.elapsed());
                    if done == Written::Ended {
                        self.parts.metrics.outcome(&outcome);
                    }
                    return done;
                }
            }
        }
        Written::Refused
    }
}

/// What became of writing an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// The job has ended.
    Ended,
    /// It waits for another attempt.
    Again,
    /// Somebody else has it by now, or the store is away for good.
    Refused,
}

/// What is written of an end.
#[derive(Clone)]
enum Writing {
    Finish(Finish, AuditEvent),
    GiveUp(GivenUp, AuditEvent),
}

/// The parts of what is kept, as a worker wants them, or what is wrong with them.
fn order(
    id: &str,
    task_id: &str,
    request: Option<JobRequest>,
) -> Result<(JobId, TaskId, JobRequest), String> {
    let request = request.ok_or("the request that was kept cannot be read")?;
    let id = JobId::parse("id", id).map_err(|error| error.to_string())?;
    let task_id = TaskId::parse("task_id", task_id).map_err(|error| error.to_string())?;
    Ok((id, task_id, request))
}

fn finish_of(run: &Ended<'_>, end: RunEnd, kept: &[KeptStream; 2]) -> (Finish, AuditEvent) {
    let (state, reason, message, result) = describe(end, kept);
    // A message may quote what the guest said, and no database keeps a NUL in a text.
    let message = message.map(|text| text.replace('\0', "\u{fffd}"));
    let event = AuditEvent {
        at_ms: now_ms(),
        kind: "job.finished",
        actor: "system".to_owned(),
        resource: run.id.to_owned(),
        details: details(state, reason.as_deref(), run, result.as_ref()),
    };
    let finish = Finish {
        id: run.id.to_owned(),
        tenant: run.tenant.clone(),
        fence: run.fence,
        state,
        reason,
        message,
        result: result.map(|result| result.to_string()),
        at_ms: event.at_ms,
    };
    (finish, event)
}

/// What the audit says of an end: how and where, and what was kept of the output, but nothing that was written in it.
fn details(
    state: JobState,
    reason: Option<&str>,
    run: &Ended<'_>,
    result: Option<&serde_json::Value>,
) -> serde_json::Value {
    let field = |name: &str| result.and_then(|result| result.get(name)).cloned().unwrap_or_default();
    let mut outcome = field("outcome");
    if let Some(object) = outcome.as_object_mut() {
        object.remove("message");
    }
    let mut details = json!({
        "state": state, "reason": reason, "outcome": outcome, "exit_code": field("exit_code"),
        "worker": run.worker, "attempt": run.attempt, "sandbox_id": field("sandbox_id"),
        "stdout_sha256": field("stdout_sha256"), "stderr_sha256": field("stderr_sha256"),
    });
    // Only where a daemon has made the sandbox.
    if let Some(container) = result.and_then(|result| result.get("container_id")) {
        details["container_id"] = container.clone();
    }
    details
}

type Described = (JobState, Option<String>, Option<String>, Option<serde_json::Value>);

/// The state, its reason, a message, and the result without the output, which is kept apart.
fn describe(end: RunEnd, kept: &[KeptStream; 2]) -> Described {
    let (state, reason, message, mut result) = match end {
        // Neither comes here: both are given up before.
        RunEnd::Lost { why } | RunEnd::Unstarted { why } => return (JobState::Lost, None, Some(why), None),
        RunEnd::Errored { code, message } => {
            let outcome = Outcome::Failed { code: code.to_string(), message: message.clone() };
            let result = json!({"exit_code": null, "outcome": outcome, "stdout": "", "stderr": ""});
            (JobState::Errored, Some(code.into_owned()), Some(message), result)
        }
        RunEnd::Result(result) => {
            let state = JobState::of_result(&result);
            let outcome = serde_json::to_value(&result.outcome).unwrap_or_default();
            let reason = outcome.get("kind").and_then(|kind| kind.as_str()).map(str::to_owned);
            let mut value = serde_json::to_value(&*result).unwrap_or_default();
            if let Some(object) = value.as_object_mut() {
                object.remove("stdout");
                object.remove("stderr");
            }
            // The process ended well, and its report says that this is not all.
            let doubt =
                result.report.as_deref().filter(|_| state != JobState::of(&result.outcome)).map(doubt);
            match doubt {
                Some(doubt) => (state, Some("report".to_owned()), Some(doubt), value),
                None => (state, reason, message(&result.outcome), value),
            }
        }
    };
    for (name, kept) in ["stdout", "stderr"].into_iter().zip(kept) {
        result[format!("{name}_sha256")] = json!(kept.sha256);
        result[format!("{name}_size_bytes")] = json!(kept.size_bytes);
    }
    (state, reason, message, Some(result))
}

/// Why a process that ended well has not succeeded.
fn doubt(report: &Report) -> String {
    let mut parts: Vec<&str> = report.notes.iter().map(String::as_str).collect();
    parts.extend(report.reason.as_deref());
    match parts.is_empty() {
        true => "its report does not say that it has passed".to_owned(),
        false => parts.join("; "),
    }
}

/// What happened, for people.
pub(crate) fn message(outcome: &Outcome) -> Option<String> {
    Some(match outcome {
        Outcome::Exited { code: 0 } => return None,
        Outcome::Exited { code } => format!("it exited with code {code}"),
        Outcome::Signaled { signal } => format!("it was ended by signal {signal}"),
        Outcome::TimedOut => "it ran out of time".to_owned(),
        Outcome::OomKilled => "it ran out of memory".to_owned(),
        Outcome::Cancelled { by } => format!("{by} cancelled it"),
        Outcome::Denied { rule } => format!("the rule {rule} stopped it"),
        Outcome::Expired => "its time was over before it began".to_owned(),
        Outcome::Lost => "nobody knows how it ended".to_owned(),
        Outcome::Failed { message, .. } => message.clone(),
    })
}
