//! A worker takes a job that waits.

use super::guard::why;
use super::tell::tell;
use crate::engine::Kind;
use crate::workers::{WorkerRoom, has_room, may_run, size_of};
use crate::{AuditEvent, Result, Store, StoreError, audit, texts};
use cofferdam_core::JobState;
use sqlx::{AnyConnection, Row};

/// Who runs a job, and for how long that is believed without another word.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The process that answers for the job: it renews the lease and writes the end.
    pub owner: String,
    /// Where it runs.
    pub worker: String,
    pub lease_ms: i64,
    /// What the worker has in all, where several processes give it work: then the store sees to it that they do not
    /// give it more.
    pub room: Option<WorkerRoom>,
    /// How many of the tenant's jobs may run, where several processes start them.
    pub most_running: Option<i64>,
}

impl Store {
    /// Gives a queued job to a worker; the fence is what the worker will show for it.
    pub async fn claim(&self, id: String, claim: Claim, event: AuditEvent) -> Result<i64> {
        texts::check([
            ("the job's id", id.as_str()),
            ("the owner", &claim.owner),
            ("the worker", &claim.worker),
        ])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(ClaimQueued { id, claim, event, kind: self.engine.kind() }).await
    }
}

struct ClaimQueued {
    id: String,
    claim: Claim,
    event: AuditEvent,
    kind: Kind,
}

impl crate::writer::Act<i64> for ClaimQueued {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<i64>
    where
        Self: 'c,
    {
        if self.claim.room.is_some() || self.claim.most_running.is_some() {
            let (tenant, size) = size_of(connection, &self.id).await?;
            if !may_run(connection, &self.claim, &tenant).await? {
                return Err(StoreError::AtQuota { tenant });
            }
            if !has_room(connection, &self.claim, size).await? {
                return Err(StoreError::Full { worker: self.claim.worker });
            }
        }
        let now = self.kind.now_ms();
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE jobs SET state = 'running', fence = fence + 1, starts = starts + 1, owner = $1, worker = $2, \
             lease_until_ms = {now} + $3, transition_at_ms = $4, started_at_ms = $4, not_before_ms = NULL, \
             reason = NULL, message = NULL WHERE id = $5 AND state = 'queued' \
             RETURNING fence, tenant_id, starts, has_webhook"
        )))
        .bind(self.claim.owner)
        .bind(self.claim.worker)
        .bind(self.claim.lease_ms)
        .bind(self.event.at_ms)
        .bind(self.id.as_str())
        .fetch_optional(&mut *connection)
        .await?;
        let Some(row) = row else { return Err(why(connection, &self.id, None, JobState::Running).await) };
        let (fence, tenant): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
        if row.try_get::<i64, _>(3)? != 0 {
            let (attempt, at_ms) = (row.try_get(2)?, self.event.at_ms);
            tell(connection, &self.id, "running", attempt, JobState::Running, None, at_ms).await?;
        }
        audit::append(connection, &tenant, &[self.event]).await?;
        Ok(fence)
    }
}
