//! A job is not wanted any more.

use super::guard::current;
use super::record::state;
use super::tell::tell;
use crate::{AuditEvent, Result, Store, audit, texts};
use cofferdam_core::JobState;
use sqlx::{AnyConnection, Row};

impl Store {
    /// Cancels a job that has not started; a running one is only marked, by whoever came first. Returns the state that
    /// it is in now.
    pub async fn cancel(
        &self,
        tenant: String,
        id: String,
        by: String,
        event: AuditEvent,
    ) -> Result<JobState> {
        texts::check([("the tenant", tenant.as_str()), ("the job's id", &id), ("who cancels", &by)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Cancel { tenant, id, by, event }).await
    }
}

struct Cancel {
    tenant: String,
    id: String,
    by: String,
    event: AuditEvent,
}

impl crate::writer::Act<JobState> for Cancel {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<JobState>
    where
        Self: 'c,
    {
        let Self { tenant, id, by, event } = self;
        let row = sqlx::query(
            "UPDATE jobs SET cancelled_by = COALESCE(cancelled_by, $1), transition_at_ms = CASE WHEN state = 'running' THEN \
             transition_at_ms ELSE $2 END, state = CASE WHEN state = 'running' THEN 'running' ELSE 'cancelled' END, \
             reason = CASE WHEN state = 'running' THEN reason ELSE 'cancelled' END \
             WHERE id = $3 AND tenant_id = $4 AND state IN ('accepted', 'queued', 'running') \
             RETURNING state, starts, has_webhook",
        )
        .bind(by)
        .bind(event.at_ms)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .fetch_optional(&mut *connection)
        .await?;
        let Some(row) = row else { return current(connection, &tenant, &id).await };
        let now = state(row.try_get(0)?)?;
        if now.is_final() && row.try_get::<i64, _>(2)? != 0 {
            tell(connection, &id, "finished", row.try_get(1)?, now, None, event.at_ms).await?;
        }
        audit::append(connection, &tenant, &[event]).await?;
        Ok(now)
    }
}
