//! A worker takes a job that waits.

use super::guard::why;
use super::tell::tell;
use crate::{AuditEvent, Millis, Result, Store, audit, texts};
use cofferdam_core::JobState;
use sqlx::{AnyConnection, Row};

/// Who runs a job, and until when that is believed without another word.
#[derive(Debug, Clone)]
pub struct Claim {
    pub worker: String,
    pub lease_until_ms: Millis,
}

impl Store {
    /// Gives a queued job to a worker; the fence is what the worker will show for it.
    pub async fn claim(&self, id: String, claim: Claim, event: AuditEvent) -> Result<i64> {
        texts::check([("the job's id", id.as_str()), ("the worker", &claim.worker)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(ClaimQueued { id, claim, event }).await
    }
}

struct ClaimQueued {
    id: String,
    claim: Claim,
    event: AuditEvent,
}

impl crate::writer::Act<i64> for ClaimQueued {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<i64>
    where
        Self: 'c,
    {
        let row = sqlx::query(
            "UPDATE jobs SET state = 'running', fence = fence + 1, starts = starts + 1, worker = $1, \
             lease_until_ms = $2, transition_at_ms = $3, started_at_ms = $3 WHERE id = $4 AND state = 'queued' \
             RETURNING fence, tenant_id, has_webhook",
        )
        .bind(self.claim.worker)
        .bind(self.claim.lease_until_ms)
        .bind(self.event.at_ms)
        .bind(self.id.as_str())
        .fetch_optional(&mut *connection)
        .await?;
        let Some(row) = row else { return Err(why(connection, &self.id, None, JobState::Running).await) };
        let (fence, tenant): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
        if row.try_get::<i64, _>(2)? != 0 {
            tell(connection, &self.id, "running", fence, JobState::Running, None, self.event.at_ms).await?;
        }
        audit::append(connection, &tenant, &[self.event]).await?;
        Ok(fence)
    }
}
