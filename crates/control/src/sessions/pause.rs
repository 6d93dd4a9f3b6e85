//! `session.pause`: a session stands still. Frozen, it keeps everything and its place; archived, its files are kept and
//! its place is free.
//!
//! Whatever goes wrong on the way leaves it as it was. A process that dies on the way takes the sandbox with it, and
//! the session is lost, as any other of its worker.

use super::archive::{Source, Written, refused};
use crate::once::{Done, Named};
use crate::session_worker::Placed;
use crate::{Control, ControlError, Result, now_ms};
use cofferdam_core::{EndCause, JobState, SessionId};
use cofferdam_policy::Permit;
use cofferdam_store::{AuditEvent, Pause, PauseBegun, PauseOrder, SessionEnd, SessionRecord, StoreError};
use serde_json::json;
use tokio::task::JoinSet;

/// What is to be kept of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseMode {
    /// Everything, in its sandbox.
    Freeze,
    /// Its files, without one.
    Archive,
}

impl PauseMode {
    fn pause(self) -> Pause {
        match self {
            Self::Freeze => Pause::Freeze,
            Self::Archive => Pause::Archiving,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Freeze => "freeze",
            Self::Archive => "archive",
        }
    }
}

/// Why a session is archived that nobody asked to be.
#[derive(Debug, Clone, Copy)]
enum Occasion {
    Deadline,
    Drain,
}

/// A session that is on its way to be archived.
pub(super) struct Pausing {
    pub(super) tenant: String,
    pub(super) id: String,
    pub(super) actor: String,
    pub(super) begun: PauseBegun,
}

impl Control {
    pub async fn pause_session(
        &self,
        permit: &Permit,
        id: &str,
        mode: PauseMode,
        named: Named,
    ) -> Result<SessionRecord> {
        let (control, by, wanted) = (self.clone(), permit.clone(), id.to_owned());
        let pause = async move { control.pause_now(&by, &wanted, mode).await };
        let word = |made: &SessionRecord| made.id.clone();
        match self.once(permit, "POST /v1/sessions/{id}/pause", id, named, pause, word).await? {
            Done::Now(session) => Ok(session),
            Done::Before(id) => self.get_session(permit, &id).await,
        }
    }

    async fn pause_now(&self, permit: &Permit, id: &str, mode: PauseMode) -> Result<SessionRecord> {
        if mode == PauseMode::Archive {
            self.artifacts()?;
        }
        let event = self.event(permit, "session.paused", id, json!({"mode": mode.as_str()}));
        let order = PauseOrder {
            tenant: permit.tenant().to_owned(),
            id: id.to_owned(),
            pause: mode.pause(),
            ends_steps: None,
            expires_at_ms: None,
            owner: self.parts.instance.clone(),
            event,
        };
        let begun = self.parts.store.begin_pause(order).await?;
        let (tenant, actor) = (permit.tenant().to_owned(), permit.actor().to_owned());
        let pausing = Pausing { tenant, id: id.to_owned(), actor, begun };
        let control = self.clone();
        // Whoever asked may go away meanwhile: then it is done all the same.
        let done = tokio::spawn(async move {
            match mode {
                PauseMode::Freeze => control.freeze(&pausing).await,
                PauseMode::Archive => control.archive(&pausing).await,
            }
        });
        done.await.map_err(|error| ControlError::Unavailable(error.to_string()))??;
        self.get_session(permit, id).await
    }

    fn paused_at(&self, pausing: &Pausing) -> Result<Placed> {
        let id = SessionId::parse("id", &pausing.id)?;
        Ok(Placed { id, generation: pausing.begun.generation })
    }

    async fn freeze(&self, pausing: &Pausing) -> Result<()> {
        let frozen = async {
            let worker = self.session_worker(&pausing.begun.worker).await;
            let worker = worker.ok_or(super::context_restart::UNREACHABLE)?;
            let sessions = worker.sessions().ok_or(super::context_restart::UNREACHABLE)?;
            let frozen = sessions.freeze(&self.paused_at(pausing)?).await;
            frozen.map_err(super::archive::unkept)
        };
        let frozen = frozen.await;
        if frozen.is_err() {
            self.undo(pausing).await;
        }
        frozen
    }

    /// Writes the files away; when they are, and the record says so, the sandbox goes.
    async fn archive(&self, pausing: &Pausing) -> Result<()> {
        let archived = self.try_archive(pausing).await;
        if archived.is_err() {
            self.undo(pausing).await;
        }
        archived
    }

    async fn try_archive(&self, pausing: &Pausing) -> Result<()> {
        let Pausing { tenant, id, begun, .. } = pausing;
        let worker = self.session_worker(&begun.worker).await;
        let worker = worker.ok_or(super::context_restart::UNREACHABLE)?;
        let placed = self.paused_at(pausing)?;
        // It has to stand still until its sandbox is gone: what it did after its files were read would be lost.
        let sessions = worker.sessions().ok_or(super::context_restart::UNREACHABLE)?;
        let held = sessions.hold(&placed).await.map_err(super::archive::unkept)?;
        let source = Source::Live { worker: worker.clone(), placed: placed.clone(), together: None };
        let kept = match self.keep_files(tenant, id, &source).await {
            Ok(written) => self.keep_archive(pausing, written).await,
            Err(error) => Err(error),
        };
        kept?;
        sessions.terminate(&placed.id, placed.generation).await;
        drop(held);
        self.parts.rooms.free(id);
        Ok(())
    }

    async fn keep_archive(&self, pausing: &Pausing, written: Written) -> Result<()> {
        let Pausing { tenant, id, begun, .. } = pausing;
        let Written { attempt, size_bytes, quota_bytes } = written;
        let kept = self.parts.store.session_archived(
            tenant.clone(),
            id.clone(),
            begun.generation,
            attempt.clone(),
            size_bytes,
            quota_bytes,
        );
        let kept = kept.await;
        if kept.is_err() {
            self.abandon(id, attempt).await;
        }
        kept.map_err(refused)
    }

    /// The session is as it was.
    async fn undo(&self, pausing: &Pausing) {
        let Pausing { tenant, id, actor, begun } = pausing;
        let event = AuditEvent {
            at_ms: now_ms(),
            kind: "session.resumed",
            actor: actor.clone(),
            resource: id.clone(),
            details: json!({"why": "it could not be paused"}),
        };
        let (tenant, id) = (tenant.clone(), id.clone());
        let undone = self.parts.store.undo_pause(tenant, id, begun.generation, begun.was_frozen, event).await;
        if let Err(error) = undone {
            // It was ended meanwhile, or the store is gone: its deadline is kept, and ends it in time.
            tracing::warn!("a session that could not be paused stays paused: {error}");
        }
    }

    /// Archives what is to be paused at its deadline, and whose has come. Says whether there was any.
    pub(super) async fn pause_due(&self, now: i64) -> Result<bool> {
        let due = self.parts.store.sessions_to_pause(now).await?;
        let has_some = !due.is_empty();
        for (tenant, id) in due {
            let control = self.clone();
            if let Some(pausing) = self.begin_for(&tenant, &id, Occasion::Deadline).await? {
                tokio::spawn(async move { control.archive_or_end(pausing, EndCause::Expired).await });
            }
        }
        Ok(has_some)
    }

    /// Archives what is to be kept when this process stops.
    pub(crate) async fn archive_before_the_end(&self) {
        self.archive_of(&self.parts.instance).await;
    }

    /// Archives what is to be kept when a worker stops.
    pub(super) async fn archive_of(&self, worker: &str) {
        let Ok(found) = self.parts.store.sessions_to_drain(worker).await else { return };
        let mut tasks = JoinSet::new();
        for (tenant, id) in found {
            if let Ok(Some(pausing)) = self.begin_for(&tenant, &id, Occasion::Drain).await {
                let control = self.clone();
                tasks.spawn(async move {
                    if let Err(error) = control.archive(&pausing).await {
                        tracing::error!(session = pausing.id, "it could not be archived: {error}");
                    }
                });
            }
        }
        while tasks.join_next().await.is_some() {}
    }

    async fn begin_for(&self, tenant: &str, id: &str, occasion: Occasion) -> Result<Option<Pausing>> {
        let now = now_ms();
        let (why, ends_steps) = match occasion {
            Occasion::Deadline => ("its time was over", (JobState::Expired, EndCause::Expired)),
            Occasion::Drain => ("its worker is about to stop", (JobState::Lost, EndCause::Lost)),
        };
        let keep = i64::try_from(self.parts.settings.sessions.archive_ttl.as_millis()).unwrap_or(i64::MAX);
        let order = PauseOrder {
            tenant: tenant.to_owned(),
            id: id.to_owned(),
            pause: Pause::Archiving,
            ends_steps: Some(ends_steps),
            expires_at_ms: matches!(occasion, Occasion::Deadline).then_some(now.saturating_add(keep)),
            owner: self.parts.instance.clone(),
            event: AuditEvent {
                at_ms: now,
                kind: "session.paused",
                actor: "system".to_owned(),
                resource: id.to_owned(),
                details: json!({"mode": "archive", "why": why}),
            },
        };
        match self.parts.store.begin_pause(order).await {
            Ok(begun) => {
                for step in &begun.steps {
                    if let Some(handle) = self.parts.running.get(step) {
                        handle.take_away();
                    }
                }
                let (tenant, id) = (tenant.to_owned(), id.to_owned());
                Ok(Some(Pausing { tenant, id, actor: "system".to_owned(), begun }))
            }
            // Somebody was quicker.
            Err(StoreError::SessionState { .. } | StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// One that was to be kept and cannot be ends.
    pub(super) async fn archive_or_end(&self, pausing: Pausing, cause: EndCause) {
        let Err(error) = self.try_archive(&pausing).await else { return };
        let end = SessionEnd {
            tenant: pausing.tenant,
            id: pausing.id,
            cause,
            message: Some(
                format!("it was to be archived, and could not be kept: {error}").replace('\0', "?"),
            ),
            actor: "system".to_owned(),
            at_ms: now_ms(),
        };
        if let Ok(ended) = self.parts.store.end_session(end).await {
            self.let_go(vec![ended]).await;
        }
    }
}
