//! `job.create`: a request becomes a job that is kept.

use crate::terms::Terms;
use crate::{Control, ControlError, Phase, Result, ids, now_ms, receipts};
use cofferdam_api::{JobRequest, WebhookMade};
use cofferdam_core::{InvalidValue, TaskId};
use cofferdam_policy::Permit;
use cofferdam_store::{Accepted, Idempotency, NewJob};
use cofferdam_telemetry::{TRACE, current_traceparent};
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tracing::{Instrument, info_span};

/// A job that is kept, now or from an earlier request of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    pub id: String,
    /// Where it has one, and this request has made it.
    pub webhook: Option<WebhookMade>,
}

const MAX_METADATA: usize = 32;
const MAX_METADATA_BYTES: usize = 512;

impl Control {
    /// Keeps a job, and starts it at once where there is room. When this returns, it is on the disk.
    pub async fn create_job(
        &self,
        permit: &Permit,
        mut request: JobRequest,
        idempotency: Option<(String, String)>,
    ) -> Result<Submitted> {
        check(&request)?;
        self.parts.settings.limits.apply(&mut request)?;
        let limits = self.parts.worker.check(&request)?;
        let inputs = self.check_inputs(permit, &request).await?;
        if self.parts.is_draining.load(Ordering::Relaxed) {
            return Err(ControlError::Unavailable("the server is about to stop".to_owned()));
        }
        if !self.could_fit(limits.memory_bytes) {
            let value = limits.memory_bytes.to_string();
            return Err(
                InvalidValue::new("limits.memory_bytes", value, "no worker has that much memory").into()
            );
        }
        let (webhook, made) = self.take_webhook(&mut request)?.unzip();
        let id = ids::job()?;
        let task_id = match &request.task_id {
            Some(text) => TaskId::parse("task_id", text)?,
            None => TaskId::from(&id),
        };
        let terms = Terms::new(self.parts.policy.version(), &limits, inputs);
        let job = NewJob {
            id: id.to_string(),
            tenant: permit.tenant().to_owned(),
            agent: request.agent.clone().or_else(|| permit.principal().agent.clone()),
            task_id: task_id.as_str().to_owned(),
            spec: serde_json::to_string(&request).map_err(|e| ControlError::Unavailable(e.to_string()))?,
            terms: terms.write(),
            created_at_ms: now_ms(),
            traceparent: current_traceparent(),
            webhook,
        };
        let quotas = self.quotas(permit.tenant()).await?;
        let room = self.take_room(permit.tenant(), id.as_str(), limits.memory_bytes, &quotas);
        let details = json!({
            "work_sha256": receipts::work(&request).sha256,
            "policy_sha256": terms.policy_sha256,
        });
        let mut events = vec![self.event(permit, "job.accepted", id.as_str(), details)];
        let claim = room.as_ref().map(|_| self.new_claim());
        if claim.is_some() {
            let details = json!({"worker": self.parts.instance});
            events.push(self.event(permit, "job.running", id.as_str(), details));
        }
        let handle = self.parts.running.add(id.as_str());
        let name =
            idempotency.map(|(name, body_hash)| Idempotency { route: "POST /v1/jobs", name, body_hash });
        let most_queued = quotas.max_queued as i64;
        let began = Instant::now();
        let span = info_span!(target: TRACE, "store.accept");
        let accepted =
            self.parts.store.accept_within(job, claim, name, events, most_queued).instrument(span).await;
        self.parts.metrics.phase(Phase::StoreWrite, began.elapsed());
        match (accepted, room) {
            (Ok(Accepted::New { fence: Some(fence) }), Some(room)) => {
                self.parts.metrics.phase(Phase::WaitForRoom, Duration::ZERO);
                let (tenant, task) = (permit.tenant().to_owned(), task_id.as_str().to_owned());
                self.spawn_run(id.to_string(), tenant, task, fence, Some(request), handle, room);
                Ok(Submitted { id: id.to_string(), webhook: made })
            }
            (other, _) => {
                self.parts.running.remove(id.as_str());
                let other = other.map_err(|error| self.queue_full(permit.tenant(), error))?;
                match other {
                    Accepted::New { .. } => {
                        self.parts.dispatcher.changed.notify_one();
                        Ok(Submitted { id: id.to_string(), webhook: made })
                    }
                    Accepted::Before { id } => Ok(Submitted { id, webhook: None }),
                    Accepted::OtherBody => Err(ControlError::IdempotencyConflict),
                }
            }
        }
    }
}

/// What the worker does not look at.
fn check(request: &JobRequest) -> Result<()> {
    let unsupported = |field, why| Err(ControlError::Unsupported { field, why });
    if request.backend.as_deref().is_some_and(|backend| backend != "native" && backend != "direct") {
        return unsupported("backend", "the only backend is native");
    }
    if request.image.as_deref().is_some_and(|image| image != "host") {
        return unsupported("image", "the only image is host");
    }
    if request.profile.is_some() {
        return unsupported("profile", "there are no profiles yet");
    }
    if request.retries.is_some_and(|retries| retries > 0) {
        return unsupported("retries", "jobs are started at most once for now");
    }
    if request.metadata.len() > MAX_METADATA {
        let value = request.metadata.len().to_string();
        return Err(InvalidValue::new("metadata", value, "it may have at most 32 entries").into());
    }
    let is_long = |(name, value): (&String, &String)| name.len().max(value.len()) > MAX_METADATA_BYTES;
    if let Some((name, _)) = request.metadata.iter().find(|entry| is_long(*entry)) {
        let fix = "a name and its value may have at most 512 bytes each";
        return Err(InvalidValue::new("metadata", name, fix).into());
    }
    Ok(())
}
