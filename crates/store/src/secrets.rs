//! Secrets of tenants, sealed before they come here. No list has their values.

use crate::{AuditEvent, Millis, Result, Store, StoreError, audit, texts};
use sqlx::{AnyConnection, Row};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRecord {
    pub name: String,
    pub changed_by: String,
    pub created_at_ms: Millis,
    pub changed_at_ms: Millis,
}

impl Store {
    /// Keeps a secret under a name; one that was there goes. At most `most` of a tenant's.
    pub async fn put_secret(
        &self,
        tenant: String,
        name: String,
        sealed: String,
        most: i64,
        event: AuditEvent,
    ) -> Result<SecretRecord> {
        texts::check([("the name", name.as_str()), ("the secret", &sealed)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Put { tenant, name, sealed, most, event }).await
    }

    /// A tenant's secrets by name, after one.
    pub async fn secrets(&self, tenant: &str, after: &str, limit: i64) -> Result<Vec<SecretRecord>> {
        let text = "SELECT name, changed_by, created_at_ms, changed_at_ms FROM secrets \
                    WHERE tenant_id = $1 AND name > $2 ORDER BY name LIMIT $3";
        let rows = self.engine.fetch_all(sqlx::query(text).bind(tenant).bind(after).bind(limit)).await?;
        rows.iter().map(record).collect()
    }

    /// A tenant's secret by its name.
    pub async fn secret(&self, tenant: &str, name: &str) -> Result<Option<SecretRecord>> {
        let text = "SELECT name, changed_by, created_at_ms, changed_at_ms FROM secrets \
                    WHERE tenant_id = $1 AND name = $2";
        let row = self.engine.fetch_optional(sqlx::query(text).bind(tenant).bind(name)).await?;
        row.as_ref().map(record).transpose()
    }

    /// A secret as it was sealed.
    pub async fn sealed_secret(&self, tenant: &str, name: &str) -> Result<Option<String>> {
        let text = "SELECT sealed FROM secrets WHERE tenant_id = $1 AND name = $2";
        let row = self.engine.fetch_optional(sqlx::query(text).bind(tenant).bind(name)).await?;
        row.map(|row| Ok(row.try_get(0)?)).transpose()
    }

    pub async fn delete_secret(&self, tenant: String, name: String, event: AuditEvent) -> Result<()> {
        texts::check([("the name", name.as_str())])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Delete { tenant, name, event }).await
    }
}

fn record(row: &sqlx::any::AnyRow) -> Result<SecretRecord> {
    Ok(SecretRecord {
        name: row.try_get(0)?,
        changed_by: row.try_get(1)?,
        created_at_ms: row.try_get(2)?,
        changed_at_ms: row.try_get(3)?,
    })
}

struct Put {
    tenant: String,
    name: String,
    sealed: String,
    most: i64,
    event: AuditEvent,
}

impl crate::writer::Act<SecretRecord> for Put {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<SecretRecord>
    where
        Self: 'c,
    {
        let Self { tenant, name, sealed, most, event } = self;
        let row = sqlx::query(
            "INSERT INTO secrets (tenant_id, name, sealed, changed_by, created_at_ms, changed_at_ms) \
             VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT (tenant_id, name) DO UPDATE SET sealed = excluded.sealed, \
             changed_by = excluded.changed_by, changed_at_ms = excluded.changed_at_ms \
             RETURNING name, changed_by, created_at_ms, changed_at_ms",
        )
        .bind(tenant.as_str())
        .bind(name)
        .bind(sealed)
        .bind(event.actor.as_str())
        .bind(event.at_ms)
        .fetch_one(&mut *connection)
        .await?;
        let count = sqlx::query("SELECT COUNT(*) FROM secrets WHERE tenant_id = $1").bind(tenant.as_str());
        let count: i64 = count.fetch_one(&mut *connection).await?.try_get(0)?;
        if count > most {
            return Err(StoreError::OverQuota { used: count - 1, asked: 1, limit: most });
        }
        audit::append(connection, &tenant, &[event]).await?;
        record(&row)
    }
}

struct Delete {
    tenant: String,
    name: String,
    event: AuditEvent,
}

impl crate::writer::Act<()> for Delete {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let done = sqlx::query("DELETE FROM secrets WHERE tenant_id = $1 AND name = $2")
            .bind(self.tenant.as_str())
            .bind(self.name)
            .execute(&mut *connection)
            .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::NotFound { what: "secret" });
        }
        audit::append(connection, &self.tenant, &[self.event]).await
    }
}
