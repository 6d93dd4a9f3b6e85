//! `snapshot.create`, `snapshot.list`, `snapshot.delete`: files of a session under a name, to make others from.

use super::archive::{Source, Written, refused};
use super::context_restart::UNREACHABLE;
use crate::once::{Done, Named};
use crate::session_worker::Placed;
use crate::{Control, ControlError, Result, ids, timestamp};
use cofferdam_api::Snapshot;
use cofferdam_core::{InvalidValue, SessionId, SessionState};
use cofferdam_policy::Permit;
use cofferdam_store::{NewSnapshot, Page, Pause, SessionRecord, SnapshotRecord};
use serde_json::json;

/// As long as a host name may be.
const MAX_NAME: usize = 63;

impl Control {
    pub async fn create_snapshot(
        &self,
        permit: &Permit,
        session: &str,
        name: &str,
        named: Named,
    ) -> Result<SnapshotRecord> {
        let route = "POST /v1/sessions/{id}/snapshots";
        let (control, by) = (self.clone(), permit.clone());
        let (of, called) = (session.to_owned(), name.to_owned());
        let make = async move { control.snapshot_now(&by, &of, &called).await };
        let word = |made: &SnapshotRecord| made.id.clone();
        match self.once(permit, route, session, named, make, word).await? {
            Done::Now(snapshot) => Ok(snapshot),
            Done::Before(id) => {
                let found = self.parts.store.snapshot(permit.tenant(), &id).await?;
                found.ok_or(ControlError::NotFound { what: "snapshot" })
            }
        }
    }

    async fn snapshot_now(&self, permit: &Permit, session: &str, name: &str) -> Result<SnapshotRecord> {
        check_name(name)?;
        let tenant = permit.tenant().to_owned();
        let record = self.get_session(permit, session).await?;
        if self.parts.store.snapshot(&tenant, name).await?.is_some() {
            return Err(ControlError::Taken { what: "snapshot" });
        }
        let source = self.source_of(&record).await?;
        let id = ids::snapshot()?;
        let event = self.event(permit, "session.snapshotted", session, json!({"snapshot": id, "name": name}));
        let (control, created_by) = (self.clone(), permit.actor().to_owned());
        let (wanted, name, session) = (id.clone(), name.to_owned(), session.to_owned());
        // Whoever asked may go away meanwhile: then it is done all the same.
        let done = tokio::spawn(async move {
            let Written { attempt, size_bytes, quota_bytes } =
                control.keep_files(&tenant, &id, &source).await?;
            let snapshot = NewSnapshot {
                id: id.clone(),
                tenant,
                name,
                session,
                created_by,
                attempt: attempt.clone(),
                size_bytes,
                quota_bytes,
            };
            let kept = control.parts.store.create_snapshot(snapshot, event).await;
            if kept.is_err() {
                control.abandon(&id, attempt).await;
            }
            kept.map_err(refused)
        });
        done.await.map_err(|error| ControlError::Unavailable(error.to_string()))??;
        let made = self.parts.store.snapshot(permit.tenant(), &wanted).await?;
        made.ok_or(ControlError::NotFound { what: "snapshot" })
    }

    pub async fn list_snapshots(
        &self,
        permit: &Permit,
        before: Option<Page>,
        limit: i64,
    ) -> Result<Vec<SnapshotRecord>> {
        Ok(self.parts.store.snapshots(permit.tenant(), before, limit).await?)
    }

    pub async fn delete_snapshot(&self, permit: &Permit, wanted: &str) -> Result<()> {
        let found = self.parts.store.snapshot(permit.tenant(), wanted).await?;
        let SnapshotRecord { id, name, .. } = found.ok_or(ControlError::NotFound { what: "snapshot" })?;
        let event = self.event(permit, "snapshot.deleted", &id, json!({"name": name, "key_destroyed": true}));
        self.parts.store.delete_snapshot(permit.tenant().to_owned(), id, event).await?;
        self.sweep_archives_soon();
        Ok(())
    }

    /// The files of a snapshot, by its id or its name.
    pub(super) async fn snapshot_source(&self, tenant: &str, wanted: &str) -> Result<Source> {
        let unknown = || {
            let fix = "there is no such snapshot; see GET /v1/snapshots";
            ControlError::from(InvalidValue::new("snapshot", wanted, fix))
        };
        let found = self.parts.store.snapshot(tenant, wanted).await?.ok_or_else(unknown)?;
        let archive = self.parts.store.archive(tenant, &found.id).await?;
        Ok(Source::Kept(archive.ok_or_else(unknown)?))
    }

    /// Where the files of a session are.
    pub(super) async fn source_of(&self, session: &SessionRecord) -> Result<Source> {
        let busy = |text: &str| ControlError::Conflict { text: text.to_owned() };
        match (session.state, session.pause) {
            (SessionState::Ready, _) | (SessionState::Paused, Some(Pause::Freeze)) => {
                let worker = self.session_worker(&session.worker).await.ok_or(UNREACHABLE)?;
                let id = SessionId::parse("id", &session.id)?;
                let placed = Placed { id, generation: session.generation };
                Ok(Source::Live { worker, placed, together: None })
            }
            (SessionState::Paused, Some(Pause::Archive)) => {
                let archive = self.parts.store.archive(&session.tenant, &session.id).await?;
                Ok(Source::Kept(archive.ok_or(ControlError::NotFound { what: "archive" })?))
            }
            (SessionState::Paused, Some(Pause::Archiving)) => Err(busy("the session is being archived")),
            (SessionState::Paused, _) => Err(busy("the session is being resumed")),
            (state, _) => Err(ControlError::SessionState { state, cause: session.cause }),
        }
    }
}

fn check_name(name: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    // One that looks like an id could be mistaken for another's.
    let is_fine = (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with('-')
        && !name.starts_with("snp-");
    match is_fine {
        true => Ok(()),
        false => {
            let fix = "it must be 1 to 63 small letters, digits and -, and begin with neither - nor snp-";
            Err(InvalidValue::new("name", name, fix).into())
        }
    }
}

pub fn snapshot_view(snapshot: SnapshotRecord) -> Snapshot {
    let SnapshotRecord { id, name, session, created_by, size_bytes, created_at_ms } = snapshot;
    let size_bytes = size_bytes.unsigned_abs();
    Snapshot { id, name, session, created_by, size_bytes, created_at: timestamp(created_at_ms) }
}
