//! Jobs whose worker is gone.

use super::tell::tell;
use crate::{AuditEvent, Millis, Result, Store, audit, texts};
use cofferdam_core::JobState;
use sqlx::{AnyConnection, Row};

impl Store {
    /// Gives up jobs whose worker is gone for good: all that run and are not `worker`'s. Returns their ids.
    pub async fn lose_all_but(&self, worker: String, now: Millis) -> Result<Vec<String>> {
        texts::check([("the worker", worker.as_str())])?;
        self.writer.write(LoseOthers { worker, now }).await
    }
}

/// The states twice: once as they are wanted, and once in the words of the index of unfinished jobs.
pub(crate) const LOSE: &str = "UPDATE jobs SET state = 'lost', reason = 'worker_gone', \
    message = 'its worker went away while it ran', lease_until_ms = NULL, transition_at_ms = $1 \
    WHERE state = 'running' AND state IN ('accepted', 'queued', 'running') AND worker <> $2 \
    RETURNING id, tenant_id, worker, fence, has_webhook";

struct LoseOthers {
    worker: String,
    now: Millis,
}

impl crate::writer::Act<Vec<String>> for LoseOthers {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<Vec<String>>
    where
        Self: 'c,
    {
        let rows = sqlx::query(LOSE).bind(self.now).bind(self.worker).fetch_all(&mut *connection).await?;
        let mut lost = Vec::with_capacity(rows.len());
        for row in rows {
            let (id, tenant, worker): (String, String, String) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let event = AuditEvent {
                at_ms: self.now,
                kind: "job.finished",
                actor: "system".to_owned(),
                resource: id.clone(),
                details: serde_json::json!({"state": "lost", "worker": worker}),
            };
            audit::append(connection, &tenant, &[event]).await?;
            if row.try_get::<i64, _>(4)? != 0 {
                tell(connection, &id, "finished", row.try_get(3)?, JobState::Lost, None, self.now).await?;
            }
            lost.push(id);
        }
        Ok(lost)
    }
}
