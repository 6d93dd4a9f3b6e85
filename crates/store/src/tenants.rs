//! Tenants: who owns, and how much each may have where that differs from what all have.

use crate::{AuditEvent, Millis, Result, Store, StoreError, archives, audit, texts};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

/// What is set for one tenant alone; the rest is as for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaOverrides {
    pub max_running: Option<i64>,
    pub max_queued: Option<i64>,
    pub requests_per_second: Option<i64>,
    pub burst: Option<i64>,
    pub artifact_bytes: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantRecord {
    pub id: String,
    pub name: String,
    pub created_at_ms: Millis,
    pub quotas: QuotaOverrides,
}

/// In the order of [`QuotaOverrides`].
pub(crate) const QUOTA_COLUMNS: &str = "tenants.max_running, tenants.max_queued, tenants.requests_per_second, tenants.burst, tenants.artifact_bytes";

/// Reads [`QUOTA_COLUMNS`] from a place of a row on.
pub(crate) fn quotas(row: &AnyRow, from: usize) -> sqlx::Result<QuotaOverrides> {
    Ok(QuotaOverrides {
        max_running: row.try_get(from)?,
        max_queued: row.try_get(from + 1)?,
        requests_per_second: row.try_get(from + 2)?,
        burst: row.try_get(from + 3)?,
        artifact_bytes: row.try_get(from + 4)?,
    })
}

fn record(row: &AnyRow) -> sqlx::Result<TenantRecord> {
    Ok(TenantRecord {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        created_at_ms: row.try_get(2)?,
        quotas: quotas(row, 3)?,
    })
}

impl Store {
    /// Makes a tenant; a name that is taken is refused. The event goes into the chain of whoever made it.
    pub async fn create_tenant(&self, tenant: TenantRecord, by: String, event: AuditEvent) -> Result<()> {
        let TenantRecord { id, name, created_at_ms: _, quotas: _ } = &tenant;
        texts::check([("the tenant's id", id.as_str()), ("the tenant's name", name), ("who makes it", &by)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Create { tenant, by, event }).await
    }

    /// Sets what is a tenant's alone, in the place of what was set before.
    pub async fn set_quotas(
        &self,
        id: String,
        quotas: QuotaOverrides,
        by: String,
        event: AuditEvent,
    ) -> Result<()> {
        texts::check([("the tenant's id", id.as_str()), ("who sets it", &by)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(SetQuotas { id, quotas, by, event }).await
    }

    /// Takes all keys of a tenant back and lets nobody act in it any more. Its records stay, for as long as records
    /// do; its name is free. A tenant with jobs that have not ended is refused.
    pub async fn delete_tenant(&self, id: String, by: String, event: AuditEvent) -> Result<()> {
        texts::check([("the tenant's id", id.as_str()), ("who deletes it", &by)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Delete { id, by, event }).await
    }

    pub async fn tenant(&self, id: &str) -> Result<Option<TenantRecord>> {
        self.tenant_where("tenants.id = $1", id).await
    }

    pub async fn tenant_by_name(&self, name: &str) -> Result<Option<TenantRecord>> {
        self.tenant_where("tenants.name = $1", name).await
    }

    async fn tenant_where(&self, condition: &str, value: &str) -> Result<Option<TenantRecord>> {
        let text = format!(
            "SELECT id, name, created_at_ms, {QUOTA_COLUMNS} FROM tenants WHERE {condition} AND deleted_at_ms IS NULL"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(value);
        let row = self.engine.fetch_optional(query).await?;
        Ok(row.as_ref().map(record).transpose()?)
    }

    /// Tenants in the order of their ids, after one of them.
    pub async fn tenants(&self, after_id: &str, limit: i64) -> Result<Vec<TenantRecord>> {
        let text = format!(
            "SELECT id, name, created_at_ms, {QUOTA_COLUMNS} FROM tenants WHERE id > $1 AND deleted_at_ms IS NULL \
             ORDER BY id LIMIT $2"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(after_id).bind(limit);
        let rows = self.engine.fetch_all(query).await?;
        rows.iter().map(|row| Ok(record(row)?)).collect()
    }

    /// The tenants that have jobs waiting for a worker and for nothing else, each with its oldest. A tenant takes two
    /// steps in an index, however many of its jobs wait, and one more for each that waits for another attempt.
    pub async fn waiting_tenants(&self) -> Result<Vec<(String, String)>> {
        let now = self.engine.kind().now_ms();
        let query = sqlx::query(sqlx::AssertSqlSafe(format!(
            "WITH RECURSIVE waiting (tenant_id) AS ( \
               SELECT MIN(tenant_id) FROM jobs WHERE state = 'queued' \
               UNION ALL \
               SELECT (SELECT MIN(jobs.tenant_id) FROM jobs \
                       WHERE jobs.state = 'queued' AND jobs.tenant_id > waiting.tenant_id) \
               FROM waiting WHERE waiting.tenant_id IS NOT NULL \
             ) SELECT tenant_id, (SELECT jobs.id FROM jobs WHERE jobs.state = 'queued' \
                 AND jobs.tenant_id = waiting.tenant_id \
                 AND (jobs.not_before_ms IS NULL OR jobs.not_before_ms <= {now}) \
                 ORDER BY jobs.created_at_ms, jobs.id LIMIT 1) \
             FROM waiting WHERE tenant_id IS NOT NULL"
        )));
        let mut waiting = Vec::new();
        for row in self.engine.fetch_all(query).await? {
            // None where all of a tenant's jobs wait for another attempt.
            let oldest: Option<String> = row.try_get(1)?;
            waiting.extend(oldest.map(|job| Ok::<_, StoreError>((row.try_get(0)?, job))).transpose()?);
        }
        Ok(waiting)
    }
}

/// How many of a tenant's jobs wait, counted inside the transaction that is about to add one.
pub(crate) async fn count_queued(connection: &mut AnyConnection, tenant: &str) -> Result<i64> {
    let row = sqlx::query("SELECT COUNT(*) FROM jobs WHERE tenant_id = $1 AND state = 'queued'")
        .bind(tenant)
        .fetch_one(connection)
        .await?;
    Ok(row.try_get(0)?)
}

struct Create {
    tenant: TenantRecord,
    by: String,
    event: AuditEvent,
}

impl crate::writer::Act<()> for Create {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let TenantRecord { id, name, created_at_ms, quotas } = self.tenant;
        let done = sqlx::query(
            "INSERT INTO tenants (id, name, created_at_ms, max_running, max_queued, requests_per_second, burst, \
             artifact_bytes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (name) DO NOTHING",
        )
        .bind(id)
        .bind(name)
        .bind(created_at_ms)
        .bind(quotas.max_running)
        .bind(quotas.max_queued)
        .bind(quotas.requests_per_second)
        .bind(quotas.burst)
        .bind(quotas.artifact_bytes)
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::Taken { what: "tenant" });
        }
        audit::append(connection, &self.by, &[self.event]).await
    }
}

struct SetQuotas {
    id: String,
    quotas: QuotaOverrides,
    by: String,
    event: AuditEvent,
}

impl crate::writer::Act<()> for SetQuotas {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let QuotaOverrides { max_running, max_queued, requests_per_second, burst, artifact_bytes } =
            self.quotas;
        let done = sqlx::query(
            "UPDATE tenants SET max_running = $1, max_queued = $2, requests_per_second = $3, burst = $4, \
             artifact_bytes = $5 WHERE id = $6 AND deleted_at_ms IS NULL",
        )
        .bind(max_running)
        .bind(max_queued)
        .bind(requests_per_second)
        .bind(burst)
        .bind(artifact_bytes)
        .bind(self.id)
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::NotFound { what: "tenant" });
        }
        audit::append(connection, &self.by, &[self.event]).await
    }
}

struct Delete {
    id: String,
    by: String,
    event: AuditEvent,
}

impl crate::writer::Act<()> for Delete {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let unfinished = sqlx::query(
            "SELECT (SELECT COUNT(*) FROM jobs WHERE tenant_id = $1 AND state IN ('accepted', 'queued', 'running')) + \
             (SELECT COUNT(*) FROM sessions WHERE tenant_id = $1 AND state <> 'ended')",
        )
        .bind(self.id.as_str())
        .fetch_one(&mut *connection)
        .await?;
        let unfinished: i64 = unfinished.try_get(0)?;
        let done = sqlx::query(
            "UPDATE tenants SET deleted_at_ms = $1, name = id WHERE id = $2 AND deleted_at_ms IS NULL",
        )
        .bind(self.event.at_ms)
        .bind(self.id.as_str())
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::NotFound { what: "tenant" });
        }
        if unfinished > 0 {
            return Err(StoreError::InUse { what: "tenant", count: unfinished });
        }
        // What it keeps to make sessions from goes, and what it would give them.
        let snapshots = sqlx::query("DELETE FROM snapshots WHERE tenant_id = $1 RETURNING id")
            .bind(self.id.as_str())
            .fetch_all(&mut *connection)
            .await?;
        for row in snapshots {
            archives::destroy_keys(connection, &row.try_get::<String, _>(0)?).await?;
        }
        for statement in ["DELETE FROM secrets WHERE tenant_id = $1", "DELETE FROM images WHERE owner = $1"] {
            sqlx::query(statement).bind(self.id.as_str()).execute(&mut *connection).await?;
        }
        sqlx::query("UPDATE keys SET revoked_at_ms = COALESCE(revoked_at_ms, $1) WHERE tenant_id = $2")
            .bind(self.event.at_ms)
            .bind(self.id)
            .execute(&mut *connection)
            .await?;
        audit::append(connection, &self.by, &[self.event]).await
    }
}
