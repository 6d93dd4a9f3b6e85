//! A session's sandbox is made.

use super::guard::why;
use crate::{AuditEvent, Result, Store, audit, texts};
use sqlx::AnyConnection;

impl Store {
    /// Makes a session ready that was being made, under the same generation.
    pub async fn session_ready(
        &self,
        tenant: String,
        id: String,
        generation: i64,
        runtime: String,
        event: AuditEvent,
    ) -> Result<()> {
        texts::check([
            ("the tenant", tenant.as_str()),
            ("the session's id", &id),
            ("the sandbox", &runtime),
        ])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Ready { tenant, id, generation, runtime, event }).await
    }
}

struct Ready {
    tenant: String,
    id: String,
    generation: i64,
    runtime: String,
    event: AuditEvent,
}

impl crate::writer::Act<()> for Ready {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let Self { tenant, id, generation, runtime, event } = self;
        let done = sqlx::query(
            "UPDATE sessions SET state = 'ready', runtime = $1, transition_at_ms = $2, used_at_ms = $2 \
             WHERE id = $3 AND tenant_id = $4 AND state = 'creating' AND generation = $5",
        )
        .bind(runtime)
        .bind(event.at_ms)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(generation)
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 0 {
            return Err(why(connection, &tenant, &id, event.at_ms).await);
        }
        audit::append(connection, &tenant, &[event]).await
    }
}
