//! A session ends, and with it every step that had not.

use super::guard::why;
use super::step_keys;
use crate::{AuditEvent, Millis, Result, Store, StoreError, archives, audit, texts};
use cofferdam_core::{EndCause, JobState};
use sqlx::{AnyConnection, Row};

/// How a session is to end.
#[derive(Debug, Clone)]
pub struct SessionEnd {
    pub tenant: String,
    pub id: String,
    pub cause: EndCause,
    pub message: Option<String>,
    /// Who wants it, as it is noted.
    pub actor: String,
    pub at_ms: Millis,
}

/// A session that has just ended: whoever has its sandbox can let go of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSession {
    pub id: String,
    pub tenant: String,
    pub cause: EndCause,
    pub worker: String,
    pub generation: i64,
    /// Its steps that had not ended.
    pub steps: Vec<String>,
    /// Its files were kept, and their key is destroyed.
    pub has_archive: bool,
}

impl Store {
    /// Ends a session that has not ended.
    pub async fn end_session(&self, end: SessionEnd) -> Result<EndedSession> {
        texts::check([("the tenant", end.tenant.as_str()), ("the session's id", &end.id)])?;
        texts::check([("the message", end.message.as_deref()), ("the actor", Some(end.actor.as_str()))])?;
        self.writer.write(End { end }).await
    }

    /// Ends every session of workers whose name begins so, but for one worker: they are gone, and so is what they had.
    pub async fn lose_sessions(&self, begins: String, but: String, now: Millis) -> Result<Vec<EndedSession>> {
        texts::check([("the worker", begins.as_str()), ("the worker", &but)])?;
        self.writer.write(Lose { begins, but, now }).await
    }
}

struct End {
    end: SessionEnd,
}

impl crate::writer::Act<EndedSession> for End {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<EndedSession>
    where
        Self: 'c,
    {
        let (tenant, id, now) = (self.end.tenant.clone(), self.end.id.clone(), self.end.at_ms);
        match end(connection, self.end).await? {
            Some(ended) => Ok(ended),
            None => Err(why(connection, &tenant, &id, now).await),
        }
    }
}

/// The steps of a session that have not ended.
pub(crate) const UNFINISHED: &str =
    "SELECT id, state FROM steps WHERE session_id = $1 AND state IN ('queued', 'running') ORDER BY number";

/// Ends a session, if it has not ended.
pub(super) async fn end(connection: &mut AnyConnection, end: SessionEnd) -> Result<Option<EndedSession>> {
    let SessionEnd { tenant, id, cause, message, actor, at_ms } = end;
    let row = sqlx::query(
        "UPDATE sessions SET state = 'ended', cause = $1, message = $2, transition_at_ms = $3 \
         WHERE id = $4 AND tenant_id = $5 AND state <> 'ended' RETURNING worker, generation",
    )
    .bind(cause.as_str())
    .bind(message)
    .bind(at_ms)
    .bind(id.as_str())
    .bind(tenant.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let kind = match cause {
        EndCause::Deleted => "session.deleted",
        EndCause::Expired => "session.expired",
        EndCause::Idle | EndCause::Lost | EndCause::Errored => "session.ended",
    };
    let event = |kind, resource: &str, details| AuditEvent {
        at_ms,
        kind,
        actor: actor.clone(),
        resource: resource.to_owned(),
        details,
    };
    let mut events = Vec::new();
    let mut steps = Vec::new();
    for unfinished in sqlx::query(UNFINISHED).bind(id.as_str()).fetch_all(&mut *connection).await? {
        let (step, state): (String, String) = (unfinished.try_get(0)?, unfinished.try_get(1)?);
        let state = JobState::from_name(&state)
            .ok_or_else(|| StoreError::Unreadable(format!("a step that is {state:?}")))?;
        let next = ended_step(cause, state);
        events.push(event("step.finished", &step, serde_json::json!({"session": id, "state": next})));
        finish_step(connection, &step, next, cause, at_ms).await?;
        steps.push(step);
    }
    let is_destroyed = archives::destroy_keys(connection, &id).await?;
    // What its steps were can be looked at after its end, unless it was deleted.
    let is_shut = cause == EndCause::Deleted && step_keys::destroy(connection, &id).await?;
    let mut details = serde_json::json!({"cause": cause});
    if is_destroyed || is_shut {
        details["key_destroyed"] = true.into();
    }
    events.push(event(kind, &id, details));
    audit::append(connection, &tenant, &events).await?;
    let (worker, generation) = (row.try_get(0)?, row.try_get(1)?);
    let has_archive = is_destroyed;
    Ok(Some(EndedSession { id, tenant, cause, worker, generation, steps, has_archive }))
}

/// What becomes of a step when its session ends under it. One that still waited was certainly not run.
fn ended_step(cause: EndCause, state: JobState) -> JobState {
    match (cause, state) {
        (EndCause::Expired | EndCause::Idle, _) => JobState::Expired,
        (EndCause::Deleted, _) | (_, JobState::Queued) => JobState::Cancelled,
        (EndCause::Lost | EndCause::Errored, _) => JobState::Lost,
    }
}

pub(super) async fn finish_step(
    connection: &mut AnyConnection,
    id: &str,
    state: JobState,
    cause: EndCause,
    at_ms: Millis,
) -> Result<()> {
    sqlx::query(
        "UPDATE steps SET state = $1, reason = 'session_ended', message = $2, transition_at_ms = $3 WHERE id = $4",
    )
    .bind(state.as_str())
    .bind(format!("its session ended: {cause}"))
    .bind(at_ms)
    .bind(id)
    .execute(connection)
    .await?;
    Ok(())
}

struct Lose {
    begins: String,
    but: String,
    now: Millis,
}

impl crate::writer::Act<Vec<EndedSession>> for Lose {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<Vec<EndedSession>>
    where
        Self: 'c,
    {
        let rows =
            sqlx::query("SELECT id, tenant_id, worker, pause_mode FROM sessions WHERE state <> 'ended'")
                .fetch_all(&mut *connection)
                .await?;
        let mut lost = Vec::new();
        for row in rows {
            let (id, tenant, worker): (String, String, String) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let pause: Option<String> = row.try_get(3)?;
            // What is kept without a sandbox is kept, and what was being brought back is kept still.
            let is_kept = pause.as_deref() == Some("archive");
            if !worker.starts_with(&self.begins) || worker == self.but || is_kept {
                continue;
            }
            if pause.as_deref() == Some("resuming") {
                let text = "UPDATE sessions SET pause_mode = 'archive', runtime = NULL WHERE id = $1";
                sqlx::query(text).bind(id).execute(&mut *connection).await?;
                continue;
            }
            let message = Some("its worker went away, and everything in it".to_owned());
            let actor = "system".to_owned();
            let (cause, at_ms) = (EndCause::Lost, self.now);
            lost.extend(end(connection, SessionEnd { tenant, id, cause, message, actor, at_ms }).await?);
        }
        archives::abandon_of(connection, &self.begins, &self.but).await?;
        Ok(lost)
    }
}
