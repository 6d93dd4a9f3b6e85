//! A session stands still: its sandbox is frozen, or its files are kept and the sandbox goes.
//!
//! What is being archived is not what is archived: until the files are whole, the session has its sandbox, and goes the
//! way of its worker.

use super::end::{UNFINISHED, finish_step};
use super::guard::why;
use super::record::Pause;
use crate::{AuditEvent, Millis, Result, Store, StoreError, archives, audit, texts};
use cofferdam_core::{EndCause, JobState};
use sqlx::{AnyConnection, Row};

/// How a session is to be paused.
#[derive(Debug, Clone)]
pub struct PauseOrder {
    pub tenant: String,
    pub id: String,
    /// `Freeze` or `Archiving`.
    pub pause: Pause,
    /// Its steps that have not ended end so, with the cause. Where this is not given, they are in the way.
    pub ends_steps: Option<(JobState, EndCause)>,
    /// A deadline in the place of the one that it has.
    pub expires_at_ms: Option<Millis>,
    /// Who sees to it: should they go away, somebody else does.
    pub owner: String,
    pub event: AuditEvent,
}

/// A session that nobody can use any more, until it is resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseBegun {
    pub worker: String,
    pub generation: i64,
    /// It was frozen before.
    pub was_frozen: bool,
    /// Its steps that have just ended.
    pub steps: Vec<String>,
}

impl Store {
    /// Begins to pause a session that is ready, or to archive one that is frozen.
    pub async fn begin_pause(&self, order: PauseOrder) -> Result<PauseBegun> {
        texts::check([("the tenant", order.tenant.as_str()), ("the session's id", &order.id)])?;
        texts::check_events(std::slice::from_ref(&order.event))?;
        self.writer.write(Begin { order }).await
    }

    /// The pause did not come to be: the session is as it was.
    pub async fn undo_pause(
        &self,
        tenant: String,
        id: String,
        generation: i64,
        is_frozen: bool,
        event: AuditEvent,
    ) -> Result<()> {
        self.writer.write(Undo { tenant, id, generation, is_frozen, event }).await
    }

    /// The files of a session are kept, and so it needs no sandbox.
    pub async fn session_archived(
        &self,
        tenant: String,
        id: String,
        generation: i64,
        attempt: String,
        size_bytes: i64,
        quota_bytes: i64,
    ) -> Result<()> {
        self.writer.write(Archived { tenant, id, generation, attempt, size_bytes, quota_bytes }).await
    }

    /// Sessions whose time is over and that are to be paused then: tenant and id.
    pub async fn sessions_to_pause(&self, now: Millis) -> Result<Vec<(String, String)>> {
        let rows = self.engine.fetch_all(sqlx::query(TO_PAUSE).bind(now)).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Sessions of a worker that are to be archived when it stops: tenant and id.
    pub async fn sessions_to_drain(&self, worker: &str) -> Result<Vec<(String, String)>> {
        let text = "SELECT tenant_id, id FROM sessions WHERE worker = $1 AND state <> 'ended' AND on_drain = 'archive' \
                    AND state IN ('ready', 'paused') AND COALESCE(pause_mode, 'freeze') = 'freeze'";
        let rows = self.engine.fetch_all(sqlx::query(text).bind(worker)).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }
}

/// Those that have a sandbox: what is archived already has nothing to be kept any further.
pub(crate) const TO_PAUSE: &str = "SELECT tenant_id, id FROM sessions WHERE on_expiry = 'pause' AND state <> 'ended' \
     AND state <> 'creating' AND COALESCE(pause_mode, 'freeze') = 'freeze' \
     AND (expires_at_ms <= $1 OR (idle_ms IS NOT NULL AND used_at_ms + idle_ms <= $1 \
     AND NOT EXISTS (SELECT 1 FROM steps WHERE steps.session_id = sessions.id \
     AND steps.state IN ('queued', 'running')))) LIMIT 100";

struct Begin {
    order: PauseOrder,
}

impl crate::writer::Act<PauseBegun> for Begin {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<PauseBegun>
    where
        Self: 'c,
    {
        let PauseOrder { tenant, id, pause, ends_steps, expires_at_ms, owner, event } = self.order;
        let before = sqlx::query("SELECT pause_mode FROM sessions WHERE id = $1 AND tenant_id = $2")
            .bind(id.as_str())
            .bind(tenant.as_str())
            .fetch_optional(&mut *connection)
            .await?;
        let before: Option<String> = before.map(|row| row.try_get(0)).transpose()?.flatten();
        // One whose time is over may be paused only with a new deadline.
        let row = sqlx::query(
            "UPDATE sessions SET state = 'paused', pause_mode = $1, transition_at_ms = $2, \
             expires_at_ms = COALESCE($3, expires_at_ms), owner = $6 WHERE id = $4 AND tenant_id = $5 \
             AND (state = 'ready' OR (state = 'paused' AND pause_mode = 'freeze' AND $1 = 'archiving')) \
             AND COALESCE($3, expires_at_ms) > $2 RETURNING worker, generation",
        )
        .bind(pause.as_str())
        .bind(event.at_ms)
        .bind(expires_at_ms)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(owner)
        .fetch_optional(&mut *connection)
        .await?;
        let Some(row) = row else { return Err(why(connection, &tenant, &id, event.at_ms).await) };
        let unfinished = sqlx::query(UNFINISHED).bind(id.as_str()).fetch_all(&mut *connection).await?;
        let mut steps = Vec::new();
        let mut events = Vec::new();
        for step in &unfinished {
            let Some((state, cause)) = ends_steps else {
                return Err(StoreError::SessionBusy { count: unfinished.len() as i64 });
            };
            let step: String = step.try_get(0)?;
            finish_step(connection, &step, state, cause, event.at_ms).await?;
            let details = serde_json::json!({"session": id, "state": state});
            let (kind, resource) = ("step.finished", step.clone());
            events.push(AuditEvent { kind, resource, details, ..event.clone() });
            steps.push(step);
        }
        events.push(event);
        audit::append(connection, &tenant, &events).await?;
        let was_frozen = before.as_deref() == Some(Pause::Freeze.as_str());
        Ok(PauseBegun { worker: row.try_get(0)?, generation: row.try_get(1)?, was_frozen, steps })
    }
}

struct Undo {
    tenant: String,
    id: String,
    generation: i64,
    is_frozen: bool,
    event: AuditEvent,
}

impl crate::writer::Act<()> for Undo {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let (state, pause) = if self.is_frozen { ("paused", Some("freeze")) } else { ("ready", None) };
        let done = sqlx::query(
            "UPDATE sessions SET state = $1, pause_mode = $2, transition_at_ms = $3 WHERE id = $4 AND tenant_id = $5 \
             AND state = 'paused' AND pause_mode IN ('freeze', 'archiving') AND generation = $6",
        )
        .bind(state)
        .bind(pause)
        .bind(self.event.at_ms)
        .bind(self.id.as_str())
        .bind(self.tenant.as_str())
        .bind(self.generation)
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 0 {
            return Err(why(connection, &self.tenant, &self.id, self.event.at_ms).await);
        }
        audit::append(connection, &self.tenant, &[self.event]).await
    }
}

struct Archived {
    tenant: String,
    id: String,
    generation: i64,
    attempt: String,
    size_bytes: i64,
    quota_bytes: i64,
}

impl crate::writer::Act<()> for Archived {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let Self { tenant, id, generation, attempt, size_bytes, quota_bytes } = self;
        let done = sqlx::query(
            "UPDATE sessions SET pause_mode = 'archive', runtime = NULL WHERE id = $1 AND tenant_id = $2 \
             AND state = 'paused' AND pause_mode = 'archiving' AND generation = $3",
        )
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(generation)
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 0 {
            return Err(why(connection, &tenant, &id, 0).await);
        }
        archives::finish(connection, &tenant, &id, &attempt, size_bytes, quota_bytes).await
    }
}
