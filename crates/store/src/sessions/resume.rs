//! A session that was paused goes on: where it is, or from its files, somewhere.

use super::guard::why;
use super::record::{COLUMNS, SessionRecord, record};
use crate::jobs::{Claim, JobSize};
use crate::workers::{has_room, may_run};
use crate::{AuditEvent, Millis, Result, Store, StoreError, archives, audit, texts};
use sqlx::{AnyConnection, Row};

impl Store {
    /// A frozen session is ready again.
    pub async fn session_thawed(
        &self,
        tenant: String,
        id: String,
        event: AuditEvent,
    ) -> Result<SessionRecord> {
        texts::check([("the tenant", tenant.as_str()), ("the session's id", &id)])?;
        self.writer.write(Thaw { tenant, id, event }).await
    }

    /// Gives an archived session to a worker, under a new generation, which is returned. It is not ready yet.
    pub async fn begin_resume(&self, tenant: String, id: String, claim: Claim, now: Millis) -> Result<i64> {
        texts::check([("the tenant", tenant.as_str()), ("the session's id", &id)])?;
        self.writer.write(Begin { tenant, id, claim, now }).await
    }

    /// The files of an archived session are in its new sandbox: what was kept of them goes, its key first.
    pub async fn session_resumed(
        &self,
        tenant: String,
        id: String,
        generation: i64,
        runtime: String,
        latest_ms: Option<Millis>,
        event: AuditEvent,
    ) -> Result<()> {
        texts::check([("the sandbox", runtime.as_str())])?;
        self.writer.write(Resumed { tenant, id, generation, runtime, latest_ms, event }).await
    }

    /// It did not come to be: the session is archived as before.
    pub async fn undo_resume(&self, tenant: String, id: String, generation: i64) -> Result<()> {
        self.writer.write(Undo { tenant, id, generation }).await
    }
}

struct Thaw {
    tenant: String,
    id: String,
    event: AuditEvent,
}

impl crate::writer::Act<SessionRecord> for Thaw {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<SessionRecord>
    where
        Self: 'c,
    {
        let Self { tenant, id, event } = self;
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE sessions SET state = 'ready', pause_mode = NULL, transition_at_ms = $1, used_at_ms = $1 \
             WHERE id = $2 AND tenant_id = $3 AND state = 'paused' AND pause_mode = 'freeze' AND expires_at_ms > $1 \
             RETURNING {COLUMNS}"
        )))
        .bind(event.at_ms)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .fetch_optional(&mut *connection)
        .await?;
        let Some(row) = row else { return Err(why(connection, &tenant, &id, event.at_ms).await) };
        audit::append(connection, &tenant, &[event]).await?;
        record(&row)
    }
}

struct Begin {
    tenant: String,
    id: String,
    claim: Claim,
    now: Millis,
}

impl crate::writer::Act<i64> for Begin {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<i64>
    where
        Self: 'c,
    {
        let Self { tenant, id, claim, now } = self;
        let size = sqlx::query("SELECT cpus_millis, memory_bytes FROM sessions WHERE id = $1")
            .bind(id.as_str())
            .fetch_optional(&mut *connection)
            .await?;
        let size = size.ok_or(StoreError::NotFound { what: "session" })?;
        let size = JobSize { cpus_millis: size.try_get(0)?, memory_bytes: size.try_get(1)? };
        if !may_run(connection, &claim, &tenant).await? {
            return Err(StoreError::AtQuota { tenant });
        }
        if !has_room(connection, &claim, size).await? {
            return Err(StoreError::Full { worker: claim.worker });
        }
        let row = sqlx::query(
            "UPDATE sessions SET pause_mode = 'resuming', worker = $1, owner = $5, generation = generation + 1 \
             WHERE id = $2 AND tenant_id = $3 AND state = 'paused' AND pause_mode = 'archive' AND expires_at_ms > $4 \
             RETURNING generation",
        )
        .bind(claim.worker)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(now)
        .bind(claim.owner)
        .fetch_optional(&mut *connection)
        .await?;
        match row {
            Some(row) => Ok(row.try_get(0)?),
            None => Err(why(connection, &tenant, &id, now).await),
        }
    }
}

struct Resumed {
    tenant: String,
    id: String,
    generation: i64,
    runtime: String,
    latest_ms: Option<Millis>,
    event: AuditEvent,
}

impl crate::writer::Act<()> for Resumed {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let Self { tenant, id, generation, runtime, latest_ms, event } = self;
        let done = sqlx::query(
            "UPDATE sessions SET state = 'ready', pause_mode = NULL, runtime = $1, transition_at_ms = $2, \
             used_at_ms = $2, expires_at_ms = CASE WHEN expires_at_ms > $3 THEN $3 ELSE expires_at_ms END \
             WHERE id = $4 AND tenant_id = $5 AND state = 'paused' AND pause_mode = 'resuming' AND generation = $6",
        )
        .bind(runtime)
        .bind(event.at_ms)
        .bind(latest_ms.unwrap_or(i64::MAX))
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(generation)
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 0 {
            return Err(why(connection, &tenant, &id, event.at_ms).await);
        }
        archives::destroy_keys(connection, &id).await?;
        audit::append(connection, &tenant, &[event]).await
    }
}

struct Undo {
    tenant: String,
    id: String,
    generation: i64,
}

impl crate::writer::Act<()> for Undo {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        sqlx::query(
            "UPDATE sessions SET pause_mode = 'archive', runtime = NULL WHERE id = $1 AND tenant_id = $2 \
             AND state = 'paused' AND pause_mode = 'resuming' AND generation = $3",
        )
        .bind(self.id)
        .bind(self.tenant)
        .bind(self.generation)
        .execute(connection)
        .await?;
        Ok(())
    }
}
