//! A store that comes from a backup is not where it was: what ran or waited then may have ended since, and nobody here
//! knows how.

use crate::{AuditEvent, Millis, Result, Store, audit, jobs};
use cofferdam_core::JobState;
use sqlx::{AnyConnection, Row};

/// Jobs that are ended in one write.
const AT_ONCE: i64 = 500;

/// What became of jobs that had not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settled {
    /// They ran.
    pub lost: u64,
    /// They waited.
    pub errored: u64,
}

impl Store {
    /// Ends what had not ended when the backup was made, so that nothing runs twice: what ran is `lost`, what waited
    /// is `errored`, unless the caller knows that it was not run since.
    pub async fn settle_restored(&self, keeps_queued: bool, now: Millis) -> Result<Settled> {
        let lost = self.writer.write(LoseRunning { now }).await?;
        // Their sandboxes were elsewhere, or long ago.
        self.lose_sessions(String::new(), String::new(), now).await?;
        let mut errored = 0;
        if !keeps_queued {
            loop {
                match self.writer.write(EndQueued { now }).await? {
                    0 => break,
                    ended => errored += ended,
                }
            }
        }
        for tenant in self.audit_tenants().await? {
            let event = AuditEvent {
                at_ms: now,
                kind: "store.restored",
                actor: "system".to_owned(),
                resource: tenant.clone(),
                details: serde_json::json!({"keeps_queued": keeps_queued}),
            };
            self.note(tenant, event).await?;
        }
        Ok(Settled { lost, errored })
    }
}

/// The states twice: once as they are wanted, and once in the words of the index of unfinished jobs.
pub(crate) const LOSE: &str = "UPDATE jobs SET state = 'lost', reason = 'worker_gone', \
    message = 'its worker went away while it ran', lease_until_ms = NULL, owner = NULL, transition_at_ms = $1 \
    WHERE state = 'running' AND state IN ('accepted', 'queued', 'running') \
    RETURNING id, tenant_id, worker, starts, has_webhook";

/// No worker that the backup knows of runs any more.
struct LoseRunning {
    now: Millis,
}

impl crate::writer::Act<u64> for LoseRunning {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<u64>
    where
        Self: 'c,
    {
        let rows = sqlx::query(LOSE).bind(self.now).fetch_all(&mut *connection).await?;
        for row in &rows {
            let (id, tenant): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let worker: Option<String> = row.try_get(2)?;
            if row.try_get::<i64, _>(4)? != 0 {
                let attempt = row.try_get(3)?;
                jobs::tell(connection, &id, "finished", attempt, JobState::Lost, None, self.now).await?;
            }
            let event = AuditEvent {
                at_ms: self.now,
                kind: "job.finished",
                actor: "system".to_owned(),
                resource: id,
                details: serde_json::json!({"state": "lost", "worker": worker}),
            };
            audit::append(connection, &tenant, &[event]).await?;
        }
        Ok(rows.len() as u64)
    }
}

struct EndQueued {
    now: Millis,
}

impl crate::writer::Act<u64> for EndQueued {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<u64>
    where
        Self: 'c,
    {
        let rows = sqlx::query(
            "UPDATE jobs SET state = 'errored', reason = 'restored', message = 'it waited when the backup was made; \
             whether it was run since is not known', transition_at_ms = $1 WHERE id IN \
             (SELECT id FROM jobs WHERE state IN ('accepted', 'queued') LIMIT $2) \
             RETURNING id, tenant_id, starts, has_webhook",
        )
        .bind(self.now)
        .bind(AT_ONCE)
        .fetch_all(&mut *connection)
        .await?;
        for row in &rows {
            let (id, tenant): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            if row.try_get::<i64, _>(3)? != 0 {
                let attempt = row.try_get(2)?;
                jobs::tell(connection, &id, "finished", attempt, JobState::Errored, None, self.now).await?;
            }
            let event = AuditEvent {
                at_ms: self.now,
                kind: "job.finished",
                actor: "system".to_owned(),
                resource: id,
                details: serde_json::json!({"state": "errored", "reason": "restored"}),
            };
            audit::append(connection, &tenant, &[event]).await?;
        }
        Ok(rows.len() as u64)
    }
}
