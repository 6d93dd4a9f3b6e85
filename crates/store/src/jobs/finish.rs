//! A job that was claimed comes to its end.

use super::guard::{current, why};
use super::tell::tell;
use crate::{AuditEvent, Millis, OutputEvent, Result, Store, audit, output, texts};
use cofferdam_core::JobState;
use sqlx::{AnyConnection, Row};

/// How a claimed job ended.
#[derive(Debug, Clone)]
pub struct Finish {
    pub id: String,
    pub tenant: String,
    pub fence: i64,
    pub state: JobState,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub result: Option<String>,
    pub at_ms: Millis,
}

impl Store {
    /// Writes how a job ended, with the last of its output.
    pub async fn finish(&self, end: Finish, output: Vec<OutputEvent>, event: AuditEvent) -> Result<()> {
        check_finish(&end)?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(FinishClaimed { end, output, event }).await
    }
}

fn check_finish(end: &Finish) -> Result<()> {
    let Finish { id, tenant, fence: _, state: _, reason, message, result, at_ms: _ } = end;
    texts::check([("the job's id", id.as_str()), ("the tenant", tenant)])?;
    texts::check([
        ("the reason", reason.as_deref()),
        ("the message", message.as_deref()),
        ("the result", result.as_deref()),
    ])
}

struct FinishClaimed {
    end: Finish,
    output: Vec<OutputEvent>,
    event: AuditEvent,
}

impl crate::writer::Act<()> for FinishClaimed {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let Finish { id, tenant, fence, state, reason, message, result, at_ms } = self.end;
        if !state.is_final() {
            return Err(why(connection, &id, Some(fence), state).await);
        }
        let done = sqlx::query(
            "UPDATE jobs SET state = $1, reason = $2, message = $3, result = $4, transition_at_ms = $5, \
             lease_until_ms = NULL WHERE id = $6 AND fence = $7 AND state = 'running' AND tenant_id = $8 \
             RETURNING starts, has_webhook",
        )
        .bind(state.as_str())
        .bind(reason)
        .bind(message)
        .bind(result.as_deref())
        .bind(at_ms)
        .bind(id.as_str())
        .bind(fence)
        .bind(tenant.as_str())
        .fetch_optional(&mut *connection)
        .await?;
        let Some(done) = done else {
            // Another tenant's is not found, whatever it is.
            current(connection, &tenant, &id).await?;
            return Err(why(connection, &id, Some(fence), state).await);
        };
        if done.try_get::<i64, _>(1)? != 0 {
            tell(connection, &id, "finished", done.try_get(0)?, state, result.as_deref(), at_ms).await?;
        }
        output::append(connection, &id, self.output).await?;
        audit::append(connection, &tenant, &[self.event]).await
    }
}
