//! Tenants and their keys. A key's secret is not here, only its hash.

use crate::{AuditEvent, Millis, Result, Store, StoreError, audit, texts};
use sqlx::{AnyConnection, Row};

#[derive(Debug, Clone)]
pub struct NewKey {
    pub id: String,
    pub tenant: String,
    pub name: String,
    pub hash: String,
    /// Separated by spaces.
    pub scopes: String,
    pub agent: Option<String>,
    pub created_at_ms: Millis,
    pub expires_at_ms: Option<Millis>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub id: String,
    pub tenant: String,
    pub name: String,
    pub scopes: String,
    pub agent: Option<String>,
    pub created_at_ms: Millis,
    pub expires_at_ms: Option<Millis>,
    pub revoked_at_ms: Option<Millis>,
    /// To the hour or so; see `note_key_use`.
    pub last_used_at_ms: Option<Millis>,
}

const COLUMNS: &str = "id, tenant_id, name, scopes, agent, created_at_ms, expires_at_ms, revoked_at_ms, \
                       last_used_at_ms";

fn record(row: &sqlx::any::AnyRow) -> sqlx::Result<KeyRecord> {
    Ok(KeyRecord {
        id: row.try_get(0)?,
        tenant: row.try_get(1)?,
        name: row.try_get(2)?,
        scopes: row.try_get(3)?,
        agent: row.try_get(4)?,
        created_at_ms: row.try_get(5)?,
        expires_at_ms: row.try_get(6)?,
        revoked_at_ms: row.try_get(7)?,
        last_used_at_ms: row.try_get(8)?,
    })
}

impl Store {
    /// Makes a tenant, unless one of that name is there, and returns its id.
    pub async fn ensure_tenant(&self, id: String, name: String, now: Millis) -> Result<String> {
        texts::check([("the tenant's id", id.as_str()), ("the tenant's name", &name)])?;
        self.writer.write(EnsureTenant { id, name, now }).await
    }

    /// The id of the tenant of that name.
    pub async fn find_tenant(&self, name: &str) -> Result<Option<String>> {
        let row = sqlx::query("SELECT id FROM tenants WHERE name = $1").bind(name);
        let row = row.fetch_optional(self.engine.readers()).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    pub async fn create_key(&self, key: NewKey, event: AuditEvent) -> Result<()> {
        check_new(&key)?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(CreateKey { key, event }).await
    }

    pub async fn key_by_hash(&self, hash: &str) -> Result<Option<KeyRecord>> {
        let text = format!("SELECT {COLUMNS} FROM keys WHERE hash = $1");
        let row =
            sqlx::query(sqlx::AssertSqlSafe(text)).bind(hash).fetch_optional(self.engine.readers()).await?;
        Ok(row.as_ref().map(record).transpose()?)
    }

    pub async fn keys(&self, tenant: &str) -> Result<Vec<KeyRecord>> {
        let text = format!("SELECT {COLUMNS} FROM keys WHERE tenant_id = $1 ORDER BY created_at_ms, id");
        let rows =
            sqlx::query(sqlx::AssertSqlSafe(text)).bind(tenant).fetch_all(self.engine.readers()).await?;
        rows.iter().map(|row| Ok(record(row)?)).collect()
    }

    /// Takes a key back; one that is not there, or is another tenant's, is not found.
    pub async fn revoke_key(&self, tenant: String, id: String, event: AuditEvent) -> Result<()> {
        texts::check([("the tenant", tenant.as_str()), ("the key's id", &id)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(RevokeKey { tenant, id, event }).await
    }
}

fn check_new(key: &NewKey) -> Result<()> {
    let NewKey { id, tenant, name, hash, scopes, agent, created_at_ms: _, expires_at_ms: _ } = key;
    texts::check([("the agent", agent.as_deref())])?;
    texts::check([
        ("the key's id", id.as_str()),
        ("the tenant", tenant),
        ("the key's name", name),
        ("the key's hash", hash),
        ("the key's scopes", scopes),
    ])
}

struct EnsureTenant {
    id: String,
    name: String,
    now: Millis,
}

impl crate::writer::Act<String> for EnsureTenant {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<String>
    where
        Self: 'c,
    {
        sqlx::query(
            "INSERT INTO tenants (id, name, created_at_ms) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING",
        )
        .bind(self.id)
        .bind(self.name.as_str())
        .bind(self.now)
        .execute(&mut *connection)
        .await?;
        let row = sqlx::query("SELECT id FROM tenants WHERE name = $1").bind(self.name).fetch_one(connection);
        Ok(row.await?.try_get(0)?)
    }
}

struct CreateKey {
    key: NewKey,
    event: AuditEvent,
}

impl crate::writer::Act<()> for CreateKey {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let NewKey { id, tenant, name, hash, scopes, agent, created_at_ms, expires_at_ms } = self.key;
        sqlx::query(
            "INSERT INTO keys (id, tenant_id, name, hash, scopes, agent, created_at_ms, expires_at_ms) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(id)
        .bind(tenant.as_str())
        .bind(name)
        .bind(hash)
        .bind(scopes)
        .bind(agent)
        .bind(created_at_ms)
        .bind(expires_at_ms)
        .execute(&mut *connection)
        .await?;
        audit::append(connection, &tenant, &[self.event]).await
    }
}

struct RevokeKey {
    tenant: String,
    id: String,
    event: AuditEvent,
}

impl crate::writer::Act<()> for RevokeKey {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let done = sqlx::query(
            "UPDATE keys SET revoked_at_ms = COALESCE(revoked_at_ms, $1) WHERE id = $2 AND tenant_id = $3",
        )
        .bind(self.event.at_ms)
        .bind(self.id)
        .bind(self.tenant.as_str())
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::NotFound { what: "key" });
        }
        audit::append(connection, &self.tenant, &[self.event]).await
    }
}
