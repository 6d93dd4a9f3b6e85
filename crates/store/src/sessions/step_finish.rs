//! A step comes to its end.

use super::guard::why_step;
use crate::{AuditEvent, Millis, OutputEvent, Result, Store, audit, output, texts};
use cofferdam_core::JobState;
use sqlx::AnyConnection;

/// How a step ended.
#[derive(Debug, Clone)]
pub struct StepFinish {
    pub id: String,
    pub session: String,
    pub tenant: String,
    pub generation: i64,
    pub state: JobState,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub result: Option<String>,
    pub at_ms: Millis,
}

impl Store {
    /// Writes how a step ended, with the last of its output. The session counts as used until now.
    pub async fn finish_step(
        &self,
        end: StepFinish,
        output: Vec<OutputEvent>,
        event: AuditEvent,
    ) -> Result<()> {
        texts::check([("the step's id", end.id.as_str()), ("the tenant", &end.tenant)])?;
        texts::check([
            ("the reason", end.reason.as_deref()),
            ("the message", end.message.as_deref()),
            ("the result", end.result.as_deref()),
        ])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Finish { end, output, event }).await
    }
}

struct Finish {
    end: StepFinish,
    output: Vec<OutputEvent>,
    event: AuditEvent,
}

impl crate::writer::Act<()> for Finish {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let StepFinish { id, session, tenant, generation, state, reason, message, result, at_ms } = self.end;
        if !state.is_final() {
            return Err(why_step(connection, &id, generation, state).await);
        }
        let done = sqlx::query(
            "UPDATE steps SET state = $1, reason = $2, message = $3, result = $4, transition_at_ms = $5 \
             WHERE id = $6 AND generation = $7 AND state IN ('queued', 'running')",
        )
        .bind(state.as_str())
        .bind(reason)
        .bind(message)
        .bind(result)
        .bind(at_ms)
        .bind(id.as_str())
        .bind(generation)
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 0 {
            return Err(why_step(connection, &id, generation, state).await);
        }
        output::append(connection, &id, self.output).await?;
        sqlx::query("UPDATE sessions SET used_at_ms = $1 WHERE id = $2 AND used_at_ms < $1")
            .bind(at_ms)
            .bind(session)
            .execute(&mut *connection)
            .await?;
        audit::append(connection, &tenant, &[self.event]).await
    }
}
