//! A step that waited begins, or is told to end.

use super::guard::why_step;
use crate::{AuditEvent, Millis, Result, Store, StoreError, audit, texts};
use cofferdam_core::JobState;
use sqlx::{AnyConnection, Row};

impl Store {
    /// Notes that a step which waited runs now.
    pub async fn begin_step(&self, id: String, generation: i64, now: Millis) -> Result<()> {
        texts::check([("the step's id", id.as_str())])?;
        self.writer.write(Begin { id, generation, now }).await
    }

    /// Notes who wants a step to end, and says how it stands. One that has ended stays as it is.
    pub async fn interrupt_step(
        &self,
        tenant: String,
        session: String,
        id: String,
        by: String,
        event: AuditEvent,
    ) -> Result<JobState> {
        texts::check([("the step's id", id.as_str()), ("the session's id", &session), ("the actor", &by)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Interrupt { tenant, session, id, by, event }).await
    }
}

struct Begin {
    id: String,
    generation: i64,
    now: Millis,
}

impl crate::writer::Act<()> for Begin {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let done = sqlx::query(
            "UPDATE steps SET state = 'running', started_at_ms = $1, transition_at_ms = $1 \
             WHERE id = $2 AND generation = $3 AND state = 'queued'",
        )
        .bind(self.now)
        .bind(self.id.as_str())
        .bind(self.generation)
        .execute(&mut *connection)
        .await?;
        match done.rows_affected() {
            0 => Err(why_step(connection, &self.id, self.generation, JobState::Running).await),
            _ => Ok(()),
        }
    }
}

struct Interrupt {
    tenant: String,
    session: String,
    id: String,
    by: String,
    event: AuditEvent,
}

impl crate::writer::Act<JobState> for Interrupt {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<JobState>
    where
        Self: 'c,
    {
        let Self { tenant, session, id, by, event } = self;
        let row = sqlx::query(
            "SELECT steps.state FROM steps JOIN sessions ON sessions.id = session_id \
             WHERE steps.id = $1 AND session_id = $2 AND tenant_id = $3",
        )
        .bind(id.as_str())
        .bind(session)
        .bind(tenant.as_str())
        .fetch_optional(&mut *connection)
        .await?;
        let state = super::step_record::state(row.ok_or(StoreError::NotFound { what: "step" })?.try_get(0)?)?;
        if state.is_final() {
            return Ok(state);
        }
        // Whoever asked first has ended it.
        let done = sqlx::query("UPDATE steps SET cancelled_by = $1 WHERE id = $2 AND cancelled_by IS NULL")
            .bind(by)
            .bind(id)
            .execute(&mut *connection)
            .await?;
        if done.rows_affected() > 0 {
            audit::append(connection, &tenant, &[event]).await?;
        }
        Ok(state)
    }
}
