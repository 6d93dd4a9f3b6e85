//! `job.create`: a request becomes a job that is kept.

use super::Attempt;
use crate::artifacts::named_by;
use crate::fleet::signed;
use crate::placement::Demand;
use crate::secrets::{check_job_secrets, names};
use crate::terms::Terms;
use crate::{Control, ControlError, Phase, Result, backends, ids, now_ms, receipts};
use cofferdam_api::{JobRequest, Retries, WebhookMade};
use cofferdam_core::{InvalidValue, Limits, TaskId};
use cofferdam_policy::Permit;
use cofferdam_store::{Accepted, Idempotency, JobSize, NewJob};
use cofferdam_telemetry::{TRACE, current_traceparent};
use serde_json::json;
use std::collections::BTreeMap;
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

/// More would only hide that something is broken.
const MAX_RETRIES: u32 = 10;
const MAX_BACKOFF_MS: u64 = 3_600_000;
const MAX_QUEUE_MS: u64 = 30 * 24 * 3_600_000;

impl Control {
    /// Keeps a job, and starts it at once where there is room. When this returns, it is on the disk.
    pub async fn create_job(
        &self,
        permit: &Permit,
        mut request: JobRequest,
        idempotency: Option<(String, String)>,
    ) -> Result<Submitted> {
        self.settle_mode(permit, &mut request).await?;
        check(&request)?;
        check_job_secrets(&request)?;
        self.parts.settings.backends.check(&request)?;
        let profile = request.profile.clone();
        self.settle_profile(permit, &mut request).await?;
        self.parts.settings.limits.apply(&mut request)?;
        let limits = self.parts.checker.check(&request)?;
        let inputs = self.check_inputs(permit, &named_by(&request)).await?;
        // Only whether they are there: each attempt opens them anew, and nothing of them is kept with the job.
        drop(self.secret_files(permit.tenant(), request.secrets.as_ref(), true).await?);
        if self.parts.is_draining.load(Ordering::Relaxed) {
            return Err(ControlError::Unavailable("the server is about to stop".to_owned()));
        }
        let demand = demand(&request, &limits);
        self.check_fit(&demand)?;
        let (webhook, made) = self.take_webhook(&mut request)?.unzip();
        let id = ids::job()?;
        let task_id = match &request.task_id {
            Some(text) => TaskId::parse("task_id", text)?,
            None => TaskId::from(&id),
        };
        let terms = Terms::new(self.parts.policy.version(), &limits, inputs).on(request.image.as_deref());
        let job = NewJob {
            id: id.to_string(),
            tenant: permit.tenant().to_owned(),
            agent: request.agent.clone().or_else(|| permit.principal().agent.clone()),
            task_id: task_id.as_str().to_owned(),
            spec: serde_json::to_string(&request).map_err(|e| ControlError::Unavailable(e.to_string()))?,
            terms: terms.write(),
            created_at_ms: now_ms(),
            size: JobSize {
                cpus_millis: signed(demand.cpus_millis),
                memory_bytes: signed(demand.memory_bytes),
            },
            queue_deadline_ms: request.queue_timeout_ms.map(|time| now_ms().saturating_add(signed(time))),
            traceparent: current_traceparent(),
            webhook,
        };
        let quotas = self.quotas(permit.tenant()).await?;
        let room = self.take_room(permit.tenant(), id.as_str(), &demand, &quotas);
        let mut details = json!({
            "work_sha256": receipts::work(&request).sha256,
            "policy_sha256": terms.policy_sha256,
        });
        if let Some(names) = names(request.secrets.as_ref()) {
            details["secrets_attached"] = names;
        }
        if let Some(profile) = profile {
            details["profile"] = json!(profile);
            details["image"] = json!(request.image);
        }
        if let Some(sandbox) = request.sandbox.as_ref().filter(|sandbox| !sandbox.mounts.is_empty()) {
            details["mounts"] = json!(sandbox.mounts);
        }
        let mut events = vec![self.event(permit, "job.accepted", id.as_str(), details)];
        let claim = room.as_ref().map(|room| self.new_claim(room));
        if let Some(claim) = &claim {
            let details = json!({"worker": claim.worker, "attempt": 1});
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
                let (id, request) = (id.to_string(), Some(request));
                let submitted = Submitted { id: id.clone(), webhook: made };
                let (attempt, is_begun) = (1, false);
                self.spawn_run(Attempt {
                    id,
                    tenant,
                    task_id: task,
                    fence,
                    attempt,
                    request,
                    handle,
                    room,
                    is_begun,
                });
                Ok(submitted)
            }
            (other, _) => {
                self.parts.running.remove(id.as_str(), &handle);
                let other = other.map_err(|error| self.queue_full(permit.tenant(), error))?;
                match other {
                    Accepted::New { .. } => {
                        self.parts.fleet.changed.notify_one();
                        Ok(Submitted { id: id.to_string(), webhook: made })
                    }
                    Accepted::Before { id } => Ok(Submitted { id, webhook: None }),
                    Accepted::OtherBody => Err(ControlError::IdempotencyConflict),
                }
            }
        }
    }
}

impl Control {
    /// Refuses what no worker that is there could ever run.
    pub(crate) fn check_fit(&self, demand: &Demand) -> Result<()> {
        let fleet = &self.parts.fleet;
        if !fleet.has_open() {
            return Err(ControlError::Unavailable("no worker is there to run jobs".to_owned()));
        }
        if fleet.could_fit(demand) {
            return Ok(());
        }
        if let Some(image) = &demand.image
            && fleet.could_fit(&Demand { image: None, ..demand.clone() })
        {
            let fix = "no worker that is there and fits otherwise has it; an operator puts it there";
            return Err(InvalidValue::new("image", image.as_str(), fix).into());
        }
        let anywhere = Demand { labels: Default::default(), image: None, ..demand.clone() };
        if fleet.could_fit(&anywhere) {
            let value = serde_json::to_string(&demand.labels).unwrap_or_default();
            return Err(
                InvalidValue::new("worker_labels", value, "no worker that is there carries them").into()
            );
        }
        let nothing = Demand { cpus_millis: 0, memory_bytes: 0, ..anywhere.clone() };
        if !fleet.could_fit(&nothing) {
            let why = format!(
                "no worker that is there has {}; an operator turns it on (backends.enabled, or worker --backend {0})",
                demand.backend
            );
            return Err(ControlError::Unsupported { field: "backend", why: why.into() });
        }
        let small = Demand { memory_bytes: 0, ..anywhere };
        let (field, value, fix) = match fleet.could_fit(&small) {
            true => {
                ("limits.memory_bytes", demand.memory_bytes.to_string(), "no worker has that much memory")
            }
            false => ("limits.cpus", format!("{}m", demand.cpus_millis), "no worker has that many CPUs"),
        };
        Err(InvalidValue::new(field, value, fix).into())
    }
}

/// What a request wants of a worker.
pub(crate) fn demand(request: &JobRequest, limits: &Limits) -> Demand {
    Demand {
        labels: request.worker_labels.clone(),
        backend: backends::name(request).to_owned(),
        image: pinned(request).map(str::to_owned),
        cpus_millis: limits.cpus.millis().into(),
        memory_bytes: limits.memory_bytes,
    }
}

/// The digest of the image that has to be in the worker's store. A daemon may have one that the store has not.
fn pinned(request: &JobRequest) -> Option<&str> {
    let of_store = ["native", "oci"].contains(&backends::name(request));
    let (_, digest) = request.image.as_deref().filter(|_| of_store)?.split_once('@')?;
    Some(digest)
}

/// What the worker does not look at.
fn check(request: &JobRequest) -> Result<()> {
    if let Some(policy) = request.retries.as_ref().map(Retries::policy) {
        if policy.max > MAX_RETRIES {
            let value = policy.max.to_string();
            return Err(InvalidValue::new("retries.max", value, "a job is retried at most 10 times").into());
        }
        if policy.backoff_ms > MAX_BACKOFF_MS {
            let value = policy.backoff_ms.to_string();
            return Err(InvalidValue::new("retries.backoff_ms", value, "it may be at most an hour").into());
        }
    }
    if let Some(time) = request.queue_timeout_ms.filter(|time| !(1..=MAX_QUEUE_MS).contains(time)) {
        let fix = format!("it must be from 1 to {MAX_QUEUE_MS}, which is 30 days");
        return Err(InvalidValue::new("queue_timeout_ms", time.to_string(), fix).into());
    }
    if request.worker_labels.len() > MAX_METADATA {
        let value = request.worker_labels.len().to_string();
        return Err(InvalidValue::new("worker_labels", value, "it may have at most 32 entries").into());
    }
    check_metadata(&request.metadata)
}

/// The caller's own notes.
pub(crate) fn check_metadata(metadata: &BTreeMap<String, String>) -> Result<()> {
    if metadata.len() > MAX_METADATA {
        let value = metadata.len().to_string();
        return Err(InvalidValue::new("metadata", value, "it may have at most 32 entries").into());
    }
    let is_long = |(name, value): (&String, &String)| name.len().max(value.len()) > MAX_METADATA_BYTES;
    if let Some((name, _)) = metadata.iter().find(|entry| is_long(*entry)) {
        let fix = "a name and its value may have at most 512 bytes each";
        return Err(InvalidValue::new("metadata", name, fix).into());
    }
    Ok(())
}
