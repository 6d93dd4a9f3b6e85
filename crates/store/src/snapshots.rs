//! Snapshots: files of a session under a name, from which others are made. They do not change.

use crate::{AuditEvent, Millis, Page, Result, Store, StoreError, archives, audit, limit, texts};
use sqlx::{AnyConnection, Row};

/// A snapshot whose bytes are written.
#[derive(Debug, Clone)]
pub struct NewSnapshot {
    pub id: String,
    pub tenant: String,
    pub name: String,
    pub session: String,
    pub created_by: String,
    /// The writing of its files, which was begun before.
    pub attempt: String,
    pub size_bytes: i64,
    /// What all that a tenant keeps may take.
    pub quota_bytes: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRecord {
    pub id: String,
    pub name: String,
    pub session: String,
    pub created_by: String,
    pub size_bytes: i64,
    pub created_at_ms: Millis,
}

const COLUMNS: &str = "id, name, session_id, created_by, size_bytes, created_at_ms";

fn record(row: &sqlx::any::AnyRow) -> Result<SnapshotRecord> {
    Ok(SnapshotRecord {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        session: row.try_get(2)?,
        created_by: row.try_get(3)?,
        size_bytes: row.try_get(4)?,
        created_at_ms: row.try_get(5)?,
    })
}

impl Store {
    /// Keeps a snapshot, if the tenant has none of that name.
    pub async fn create_snapshot(&self, snapshot: NewSnapshot, event: AuditEvent) -> Result<()> {
        texts::check([("the name", snapshot.name.as_str()), ("the tenant", &snapshot.tenant)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Create { snapshot, event }).await
    }

    /// A tenant's snapshot, by its id or its name.
    pub async fn snapshot(&self, tenant: &str, wanted: &str) -> Result<Option<SnapshotRecord>> {
        let text = format!("SELECT {COLUMNS} FROM snapshots WHERE tenant_id = $1 AND (id = $2 OR name = $2)");
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(tenant).bind(wanted);
        self.engine.fetch_optional(query).await?.as_ref().map(record).transpose()
    }

    /// A tenant's snapshots, the newest first.
    pub async fn snapshots(
        &self,
        tenant: &str,
        before: Option<Page>,
        limit: i64,
    ) -> Result<Vec<SnapshotRecord>> {
        limit::check(limit)?;
        let page = before.unwrap_or(Page { created_at_ms: i64::MAX, id: String::new() });
        let text = format!(
            "SELECT {COLUMNS} FROM snapshots WHERE tenant_id = $1 AND (created_at_ms, id) < ($2, $3) \
             ORDER BY created_at_ms DESC, id DESC LIMIT $4"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(tenant);
        let query = query.bind(page.created_at_ms).bind(page.id).bind(limit);
        self.engine.fetch_all(query).await?.iter().map(record).collect()
    }

    /// Takes a snapshot away, its key first.
    pub async fn delete_snapshot(&self, tenant: String, id: String, event: AuditEvent) -> Result<()> {
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Delete { tenant, id, event }).await
    }
}

struct Create {
    snapshot: NewSnapshot,
    event: AuditEvent,
}

impl crate::writer::Act<()> for Create {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let Self { snapshot, event } = self;
        let NewSnapshot { id, tenant, name, session, created_by, attempt, size_bytes, quota_bytes } =
            snapshot;
        let taken = sqlx::query("SELECT 1 FROM snapshots WHERE tenant_id = $1 AND name = $2");
        let taken = taken.bind(tenant.as_str()).bind(name.as_str()).fetch_optional(&mut *connection).await?;
        if taken.is_some() {
            return Err(StoreError::Taken { what: "snapshot" });
        }
        archives::finish(connection, &tenant, &id, &attempt, size_bytes, quota_bytes).await?;
        sqlx::query(
            "INSERT INTO snapshots (id, tenant_id, name, session_id, created_by, size_bytes, created_at_ms) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(id)
        .bind(tenant.as_str())
        .bind(name)
        .bind(session)
        .bind(created_by)
        .bind(size_bytes)
        .bind(event.at_ms)
        .execute(&mut *connection)
        .await?;
        audit::append(connection, &tenant, &[event]).await
    }
}

struct Delete {
    tenant: String,
    id: String,
    event: AuditEvent,
}

impl crate::writer::Act<()> for Delete {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let done = sqlx::query("DELETE FROM snapshots WHERE id = $1 AND tenant_id = $2")
            .bind(self.id.as_str())
            .bind(self.tenant.as_str())
            .execute(&mut *connection)
            .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::NotFound { what: "snapshot" });
        }
        archives::destroy_keys(connection, &self.id).await?;
        audit::append(connection, &self.tenant, &[self.event]).await
    }
}
