//! `session.resume`: a paused session goes on. An archived one gets a new sandbox, wherever there is room, and its files.

use super::archive::unkept;
use super::context_restart::UNREACHABLE;
use crate::dispatch::{Room, over_running};
use crate::jobs::demand;
use crate::once::{Done, Named};
use crate::session_worker::{Placed, SessionOrder, SessionStarted};
use crate::{Control, ControlError, Result, now_ms};
use cofferdam_api::SessionRequest;
use cofferdam_core::{SessionId, TaskId};
use cofferdam_policy::Permit;
use cofferdam_store::{ArchiveRecord, Pause, SessionRecord, StoreError};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Control {
    /// Returns the session as it is, and how it was paused.
    pub async fn resume_session(
        &self,
        permit: &Permit,
        id: &str,
        named: Named,
    ) -> Result<(SessionRecord, Pause)> {
        let route = "POST /v1/sessions/{id}/resume";
        let (control, by, wanted) = (self.clone(), permit.clone(), id.to_owned());
        let resume = async move { control.resume_now(&by, &wanted).await };
        let word = |(_, pause): &(SessionRecord, Pause)| pause.as_str().to_owned();
        match self.once(permit, route, id, named, resume, word).await? {
            Done::Now(done) => Ok(done),
            Done::Before(pause) => {
                let pause = if pause == Pause::Freeze.as_str() { Pause::Freeze } else { Pause::Archive };
                Ok((self.get_session(permit, id).await?, pause))
            }
        }
    }

    async fn resume_now(&self, permit: &Permit, id: &str) -> Result<(SessionRecord, Pause)> {
        let session = self.get_session(permit, id).await?;
        let state = ControlError::SessionState { state: session.state, cause: session.cause };
        match session.pause {
            Some(Pause::Freeze) => {
                let event = self.event(permit, "session.resumed", id, json!({"mode": "freeze"}));
                let tenant = permit.tenant().to_owned();
                let record = self.parts.store.session_thawed(tenant, id.to_owned(), event).await?;
                let (worker, id) = self.reach(&record).await?;
                let placed = Placed { id, generation: record.generation };
                worker.sessions().ok_or(UNREACHABLE)?.thaw(&placed).await.map_err(unkept)?;
                Ok((record, Pause::Freeze))
            }
            Some(Pause::Archive) => {
                self.resume_archive(permit, session).await?;
                Ok((self.get_session(permit, id).await?, Pause::Archive))
            }
            Some(Pause::Archiving) => {
                Err(ControlError::Conflict { text: "the session is being archived".to_owned() })
            }
            Some(Pause::Resuming) => {
                Err(ControlError::Conflict { text: "the session is being resumed".to_owned() })
            }
            None => Err(state),
        }
    }

    async fn resume_archive(&self, permit: &Permit, session: SessionRecord) -> Result<()> {
        if self.parts.is_draining.load(Ordering::Relaxed) {
            return Err(ControlError::Unavailable("the server is about to stop".to_owned()));
        }
        let tenant = permit.tenant();
        let archive = self.parts.store.archive(tenant, &session.id).await?;
        let archive = archive.ok_or(ControlError::NotFound { what: "archive" })?;
        let mut request: SessionRequest = serde_json::from_str(&session.spec)
            .map_err(|error| ControlError::Unavailable(format!("the session cannot be read: {error}")))?;
        let (limits, like_job) = self.session_limits(&mut request)?;
        let demand = demand(&like_job, &limits);
        self.check_fit(&demand)?;
        // A secret that was deleted since is not a reason to lose the session.
        let secrets = self.secret_files(tenant, request.secrets.as_ref(), false).await?;
        // One that was paused at its deadline has the time again that it was made with, and not a week.
        let latest_ms = match request.on_expiry.as_deref() {
            Some("pause") => Some(now_ms().saturating_add(self.ttl(request.ttl_seconds)?)),
            _ => None,
        };
        let quotas = self.quotas(tenant).await?;
        let room = self.take_session_room(tenant, &session.id, &demand, &quotas)?;
        let claim = self.new_claim(&room);
        let begun =
            self.parts.store.begin_resume(tenant.to_owned(), session.id.clone(), claim, now_ms()).await;
        let generation = match begun {
            Ok(generation) => generation,
            Err(StoreError::AtQuota { .. }) => return Err(over_running(&quotas)),
            Err(StoreError::Full { .. }) => return Err(super::create::no_room()),
            Err(error) => return Err(error.into()),
        };
        let event = self.event(permit, "session.resumed", &session.id, json!({"mode": "archive"}));
        let resuming = Resuming { session, archive, request, generation, room, event, latest_ms, secrets };
        let control = self.clone();
        // Whoever asked may go away meanwhile: then it is done all the same.
        let done = tokio::spawn(async move { control.finish_resume(resuming).await });
        done.await.map_err(|error| ControlError::Unavailable(error.to_string()))?
    }

    async fn finish_resume(&self, resuming: Resuming) -> Result<()> {
        let Resuming { session, archive, request, generation, room, event, latest_ms, secrets } = resuming;
        let worker = Arc::clone(&room.at.worker);
        let output_bytes = request.limits.output_bytes;
        let (key, tenant) = (session.id.clone(), session.tenant.clone());
        self.parts.rooms.put(&key, room, output_bytes);
        let resumed = async {
            let sessions = worker.sessions().ok_or(UNREACHABLE)?;
            let id = SessionId::parse("id", &key)?;
            let task_id = TaskId::parse("task_id", &session.task_id)?;
            let placed = Placed { id: id.clone(), generation };
            let started = sessions.start(SessionOrder { id, task_id, generation, request }).await;
            let SessionStarted { sandbox_id } = started.map_err(unkept)?;
            let (from, seen) = self.open_archive(&archive)?;
            seen.judge(sessions.restore(&placed, from).await.map_err(unkept))?;
            if !secrets.is_empty() {
                sessions.give_secrets(&placed, secrets).await.map_err(unkept)?;
            }
            let (tenant, key) = (tenant.clone(), key.clone());
            let kept =
                self.parts.store.session_resumed(tenant, key, generation, sandbox_id, latest_ms, event).await;
            Ok(kept?)
        };
        let resumed: Result<()> = resumed.await;
        if resumed.is_err() {
            if let (Some(sessions), Ok(id)) = (worker.sessions(), SessionId::parse("id", &key)) {
                sessions.terminate(&id, generation).await;
            }
            self.parts.rooms.free(&key);
            // A store that is gone by now has it as being resumed, which the next start takes back.
            let _ = self.parts.store.undo_resume(tenant, key, generation).await;
        }
        self.sweep_archives_soon();
        resumed
    }
}

struct Resuming {
    session: SessionRecord,
    archive: ArchiveRecord,
    request: SessionRequest,
    generation: i64,
    room: Room,
    event: cofferdam_store::AuditEvent,
    latest_ms: Option<i64>,
    secrets: Vec<crate::SecretFile>,
}
