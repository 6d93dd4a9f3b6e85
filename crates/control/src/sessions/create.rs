//! `session.create`: a request becomes a session that is ready.

use super::archive::Source;
use crate::dispatch::{Room, over_running};
use crate::fleet::signed;
use crate::jobs::{check_metadata, demand};
use crate::secrets::{check_job_secrets, names};
use crate::session_worker::{
    Placed, SecretFile, SessionFailure, SessionOrder, SessionStarted, SessionWorker,
};
use crate::terms::Terms;
use crate::worker::Worker;
use crate::{Control, ControlError, Result, ids, now_ms};
use cofferdam_api::{Command, JobRequest, SessionRequest};
use cofferdam_artifacts::ObjectKey;
use cofferdam_core::{EndCause, InvalidValue, Limits, SessionId, TaskId};
use cofferdam_policy::Permit;
use cofferdam_store::{
    Idempotency, JobSize, Keeping, Kept, NewSession, SessionAccepted, SessionEnd, SessionRecord, StoreError,
};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tracing::Instrument;

/// A session is kept as ready, if its sandbox is made by then; otherwise as being made.
const AT_ONCE: Duration = Duration::from_millis(20);

/// Of a session's first placement.
const FIRST: i64 = 1;

const ROUTE: &str = "POST /v1/sessions";

/// More is no time that anybody waits for, and far more would not be one that can be kept.
const MOST_IDLE_SECONDS: u64 = 365 * 24 * 60 * 60;

impl Control {
    /// Makes a session. When this returns, it is on the disk and takes steps.
    pub async fn create_session(
        &self,
        permit: &Permit,
        request: SessionRequest,
        idempotency: Option<(String, String)>,
    ) -> Result<SessionRecord> {
        self.create_from(permit, request, idempotency, None).await
    }

    /// The same, with the files of another one.
    pub(super) async fn create_from(
        &self,
        permit: &Permit,
        mut request: SessionRequest,
        idempotency: Option<(String, String)>,
        source: Option<Source>,
    ) -> Result<SessionRecord> {
        check(&request)?;
        if request.on_expiry.as_deref() == Some("pause") || request.on_drain.as_deref() == Some("archive") {
            self.artifacts()?;
        }
        let ttl = self.ttl(request.ttl_seconds)?;
        let profile = request.profile.clone();
        self.settle_session_image(permit, &mut request).await?;
        let (limits, like_job) = self.session_limits(&mut request)?;
        let name = idempotency.map(|(name, body_hash)| Idempotency { route: ROUTE, name, body_hash });
        if let Some(name) = &name
            && let Some(before) = self.made_before(permit, name).await?
        {
            return Ok(before);
        }
        if self.parts.is_draining.load(Ordering::Relaxed) {
            return Err(ControlError::Unavailable("the server is about to stop".to_owned()));
        }
        let demand = demand(&like_job, &limits);
        self.check_fit(&demand)?;
        let source = match (source, &request.snapshot) {
            (None, Some(wanted)) => Some(self.snapshot_source(permit.tenant(), wanted).await?),
            (source, _) => source,
        };
        let secrets = self.secret_files(permit.tenant(), request.secrets.as_ref(), true).await?;
        let id = ids::session()?;
        let task_id = match &request.task_id {
            Some(text) => TaskId::parse("task_id", text)?,
            None => TaskId::from(&id),
        };
        let (key, wrapped_key) = self.new_session_key(id.as_str())?.unzip();
        let quotas = self.quotas(permit.tenant()).await?;
        let room = self.take_session_room(permit.tenant(), id.as_str(), &demand, &quotas)?;
        let now = now_ms();
        let session = NewSession {
            id: id.to_string(),
            tenant: permit.tenant().to_owned(),
            agent: request.agent.clone().or_else(|| permit.principal().agent.clone()),
            task_id: task_id.as_str().to_owned(),
            spec: serde_json::to_string(&request).map_err(|e| ControlError::Unavailable(e.to_string()))?,
            terms: Terms::new(self.parts.policy.version(), &limits, Default::default())
                .on(request.image.as_deref())
                .write(),
            created_at_ms: now,
            expires_at_ms: now.saturating_add(ttl),
            idle_ms: request.idle_timeout_seconds.map(|seconds| signed(seconds.saturating_mul(1000))),
            size: JobSize {
                cpus_millis: signed(demand.cpus_millis),
                memory_bytes: signed(demand.memory_bytes),
            },
            keeping: Keeping {
                pauses_on_expiry: request.on_expiry.as_deref() == Some("pause"),
                archives_on_drain: request.on_drain.as_deref() == Some("archive"),
                created_by: Some(permit.actor().to_owned()),
            },
            runtime: None,
            wrapped_key,
        };
        let order = SessionOrder { id: id.clone(), task_id, generation: FIRST, request };
        let inside = Inside { source, secrets, key, profile };
        let (control, by) = (self.clone(), permit.clone());
        // Whoever asked may go away while a container is made: then it is made all the same, or ended.
        let made = async move { control.start_session(&by, session, order, room, name, inside).await };
        let made = tokio::spawn(made.in_current_span()).await;
        let id = made.map_err(|error| ControlError::Unavailable(error.to_string()))??;
        self.get_session(permit, &id).await
    }

    /// What an earlier request of that name has made.
    async fn made_before(&self, permit: &Permit, name: &Idempotency) -> Result<Option<SessionRecord>> {
        match self.parts.store.kept_request(permit.tenant(), name).await? {
            Kept::New => Ok(None),
            Kept::Same { resource } => self.get_session(permit, &resource).await.map(Some),
            Kept::Other => Err(ControlError::IdempotencyConflict),
        }
    }

    pub(super) fn ttl(&self, asked: Option<u64>) -> Result<i64> {
        let settings = &self.parts.settings.sessions;
        let seconds = asked.unwrap_or(settings.default_ttl.as_secs());
        let most = settings.maximum_ttl.as_secs();
        if seconds == 0 {
            return Err(InvalidValue::new("ttl_seconds", "0", "it must be more than 0").into());
        }
        if seconds > most {
            let (value, maximum) = (seconds.to_string(), most.to_string());
            return Err(ControlError::AboveMaximum { field: "ttl_seconds", value, maximum });
        }
        Ok(signed(seconds.saturating_mul(1000)))
    }

    /// Refuses what a job could not run on either, and puts an image into the place of a profile, as for a job.
    async fn settle_session_image(&self, permit: &Permit, request: &mut SessionRequest) -> Result<()> {
        let mut job = like_job(request);
        self.parts.settings.backends.check(&job)?;
        self.settle_profile(permit, &mut job).await?;
        (request.image, request.profile) = (job.image, job.profile);
        Ok(())
    }

    /// Fills in what the request leaves open, as for a job, and says what that comes to.
    pub(super) fn session_limits(&self, request: &mut SessionRequest) -> Result<(Limits, JobRequest)> {
        let mut job = like_job(request);
        self.parts.settings.limits.apply(&mut job)?;
        let limits = self.parts.checker.check(&job)?;
        request.limits = job.limits.clone();
        Ok((limits, job))
    }

    /// Has the worker make the sandbox, and keeps the session: with the sandbox, where that is quick, else before it.
    /// Returns its id, or that of the one that the same request has made meanwhile.
    async fn start_session(
        &self,
        permit: &Permit,
        mut session: NewSession,
        order: SessionOrder,
        room: Room,
        name: Option<Idempotency>,
        inside: Inside,
    ) -> Result<String> {
        let worker = Arc::clone(&room.at.worker);
        let sessions = worker.sessions().ok_or(ControlError::Unsupported {
            field: "sessions",
            why: "the workers of this server run jobs only".into(),
        })?;
        let id = order.id.clone();
        let worker_id = room.at.worker_id.clone();
        let claim = self.new_claim(&room);
        let mut details =
            json!({"worker": claim.worker, "expires_at": crate::timestamp(session.expires_at_ms)});
        if let Some(names) = names(order.request.secrets.as_ref()) {
            details["secrets_attached"] = names;
        }
        if let Some(profile) = &inside.profile {
            details["profile"] = json!(profile);
            details["image"] = json!(order.request.image);
        }
        let event = self.event(permit, "session.created", id.as_str(), details);
        let (tenant, key) = (session.tenant.clone(), id.to_string());
        let output_bytes = order.request.limits.output_bytes;
        let asked = Asked {
            disk_bytes: order.request.limits.disk_bytes,
            image: order.request.image.clone(),
            has_secrets: !inside.secrets.is_empty(),
        };
        let step_key = inside.key.clone();
        let mut start = Box::pin(self.start_inside(&worker, sessions, order, inside));
        let early = tokio::time::timeout(AT_ONCE, &mut start).await.ok();
        if let Some(Ok(SessionStarted { sandbox_id })) = &early {
            session.runtime = Some(sandbox_id.clone());
        }
        if let Some(Err(failure)) = early {
            self.parts.fleet.mark_unwilling_if(&worker_id, &failure);
            return Err(unmade(failure, &asked));
        }
        let is_early = early.is_some();
        let mut started = early;
        let mut accepting = Box::pin(self.parts.store.create_session(session, claim, name, event));
        let accepted = loop {
            tokio::select! {
                accepted = &mut accepting => break accepted,
                // It goes on meanwhile: a session that is copied stands still for it.
                done = &mut start, if started.is_none() => started = Some(done),
            }
        };
        match accepted {
            Ok(SessionAccepted::New) => {
                self.parts.rooms.put(&key, room, output_bytes);
                if let Some(step_key) = step_key {
                    self.parts.rooms.put_key(&key, step_key);
                }
            }
            other => {
                // Whatever was made for it is nobody's.
                drop(start);
                sessions.terminate(&id, FIRST).await;
                return match other {
                    Ok(SessionAccepted::Before { id }) => Ok(id),
                    Ok(SessionAccepted::OtherBody) => Err(ControlError::IdempotencyConflict),
                    Err(StoreError::AtQuota { .. }) => Err(over_running(&self.quotas(&tenant).await?)),
                    Err(StoreError::Full { worker }) => {
                        self.parts.fleet.mark_full(&worker);
                        Err(no_room())
                    }
                    Err(error) => Err(error.into()),
                    Ok(SessionAccepted::New) => unreachable!("it was matched before"),
                };
            }
        }
        if is_early {
            return Ok(key);
        }
        let started = match started {
            Some(started) => started,
            None => start.await,
        };
        match started {
            Ok(SessionStarted { sandbox_id }) => {
                let event =
                    self.event(permit, "session.ready", id.as_str(), json!({"sandbox_id": sandbox_id}));
                let ready =
                    self.parts.store.session_ready(tenant, key.clone(), FIRST, sandbox_id, event).await;
                if ready.is_err() {
                    // It was ended meanwhile, or nobody knows: either way its sandbox must not stay.
                    sessions.terminate(&id, FIRST).await;
                    self.parts.rooms.free(&key);
                }
                ready?;
                Ok(key)
            }
            Err(failure) => {
                self.parts.fleet.mark_unwilling_if(&worker_id, &failure);
                self.fail_session(permit, &id, &failure).await;
                Err(unmade(failure, &asked))
            }
        }
    }

    /// Makes the sandbox, and puts into it what is to be there before anything runs.
    async fn start_inside(
        &self,
        worker: &Arc<dyn Worker>,
        sessions: &dyn SessionWorker,
        order: SessionOrder,
        inside: Inside,
    ) -> std::result::Result<SessionStarted, SessionFailure> {
        let Inside { source, secrets, key: _, profile: _ } = inside;
        let placed = Placed { id: order.id.clone(), generation: order.generation };
        let started = sessions.start(order).await?;
        let put = async {
            if let Some(source) = source {
                let put = self.put_source(&source, worker, &placed).await;
                put.map_err(|error| match error {
                    ControlError::Kept { why } => SessionFailure::new(KEPT_WRONG, why),
                    error => SessionFailure::new("files", error.to_string()),
                })?;
            }
            match secrets.is_empty() {
                true => Ok(()),
                false => sessions.give_secrets(&placed, secrets).await,
            }
        };
        match put.await {
            Ok(()) => Ok(started),
            Err(failure) => {
                sessions.terminate(&placed.id, placed.generation).await;
                Err(failure)
            }
        }
    }

    /// Notes that a session's sandbox could not be made.
    async fn fail_session(&self, permit: &Permit, id: &SessionId, failure: &SessionFailure) {
        let end = SessionEnd {
            tenant: permit.tenant().to_owned(),
            id: id.to_string(),
            cause: EndCause::Errored,
            message: Some(failure.message.replace('\0', "\u{fffd}")),
            actor: permit.actor().to_owned(),
            at_ms: now_ms(),
        };
        // A store that is gone has told of it elsewhere; the deadline is kept, and ends it in time.
        let _ = self.parts.store.end_session(end).await;
        self.parts.rooms.free(id.as_str());
    }
}

/// Of a failure: what was kept is not what was written.
const KEPT_WRONG: &str = "kept_wrong";

fn unmade(failure: SessionFailure, asked: &Asked) -> ControlError {
    let SessionFailure { code, message } = failure;
    match code.as_str() {
        // What single limits cannot say was looked at before; what is left is a disk that the machine has not got.
        "invalid" => {
            let value = asked.disk_bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
            InvalidValue::new("limits.disk_bytes", value, message).into()
        }
        KEPT_WRONG => ControlError::Kept { why: message },
        // Backends were looked at before, too: this one cannot have such a disk. Who has secrets has asked for none.
        "unsupported" => {
            let field = if asked.has_secrets { "secrets" } else { "limits.disk_bytes" };
            ControlError::Unsupported { field, why: message.into() }
        }
        "image_not_found" => {
            InvalidValue::new("image", asked.image.as_deref().unwrap_or_default(), message).into()
        }
        _ => ControlError::Unavailable(format!("the sandbox could not be made: {message}")),
    }
}

pub(super) fn no_room() -> ControlError {
    ControlError::Unavailable("no worker has room for another session now".to_owned())
}

/// What a sandbox may not be made for.
struct Asked {
    disk_bytes: Option<u64>,
    image: Option<String>,
    has_secrets: bool,
}

/// What a session has in it from the start.
struct Inside {
    source: Option<Source>,
    secrets: Vec<SecretFile>,
    /// Of its steps.
    key: Option<ObjectKey>,
    /// What its image was asked for as, for the audit.
    profile: Option<String>,
}

/// A job that wants of a worker what a session does.
pub fn like_job(request: &SessionRequest) -> JobRequest {
    JobRequest {
        command: Some(Command::Argv(vec!["true".to_owned()])),
        limits: request.limits.clone(),
        env: request.env.clone(),
        network_policy: request.network_policy.clone(),
        worker_labels: request.worker_labels.clone(),
        backend: request.backend.clone(),
        image: request.image.clone(),
        profile: request.profile.clone(),
        secrets: request.secrets.clone(),
        ..JobRequest::default()
    }
}

/// What nobody else looks at.
fn check(request: &SessionRequest) -> Result<()> {
    let one_of = |field, value: &Option<String>, known: [&str; 2]| match value.as_deref() {
        Some(text) if !known.contains(&text) => {
            let fix = format!("it must be {} or {}", known[0], known[1]);
            Err(InvalidValue::new(field, text, fix))
        }
        _ => Ok(()),
    };
    one_of("on_expiry", &request.on_expiry, ["delete", "pause"])?;
    one_of("on_drain", &request.on_drain, ["end", "archive"])?;
    check_job_secrets(&like_job(request))?;
    if let Some(seconds) = request.idle_timeout_seconds
        && !(1..=MOST_IDLE_SECONDS).contains(&seconds)
    {
        let fix = format!("it must be 1 to {MOST_IDLE_SECONDS}, which is a year");
        return Err(InvalidValue::new("idle_timeout_seconds", seconds.to_string(), fix).into());
    }
    check_metadata(&request.metadata)?;
    if request.worker_labels.len() > 32 {
        let value = request.worker_labels.len().to_string();
        return Err(InvalidValue::new("worker_labels", value, "it may have at most 32 entries").into());
    }
    Ok(())
}
