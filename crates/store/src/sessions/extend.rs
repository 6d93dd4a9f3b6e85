//! A session's deadline is put further off. It never comes nearer.

use super::guard::why;
use super::record::{COLUMNS, SessionRecord, record};
use crate::{AuditEvent, Millis, Result, Store, audit, texts};
use sqlx::AnyConnection;

impl Store {
    /// Puts the deadline off to a time, unless it is later already. Counts as a use.
    pub async fn extend_session(
        &self,
        tenant: String,
        id: String,
        expires_at_ms: Millis,
        event: AuditEvent,
    ) -> Result<SessionRecord> {
        texts::check([("the tenant", tenant.as_str()), ("the session's id", &id)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Extend { tenant, id, expires_at_ms, event }).await
    }

    /// Notes that a session was used, and that it may be: it is ready, and its time is not over.
    pub async fn use_session(
        &self,
        tenant: String,
        id: String,
        now: Millis,
        event: Option<AuditEvent>,
    ) -> Result<SessionRecord> {
        texts::check([("the tenant", tenant.as_str()), ("the session's id", &id)])?;
        self.writer.write(Use { tenant, id, now, event }).await
    }
}

struct Extend {
    tenant: String,
    id: String,
    expires_at_ms: Millis,
    event: AuditEvent,
}

impl crate::writer::Act<SessionRecord> for Extend {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<SessionRecord>
    where
        Self: 'c,
    {
        let Self { tenant, id, expires_at_ms, event } = self;
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE sessions SET expires_at_ms = CASE WHEN expires_at_ms > $1 THEN expires_at_ms ELSE $1 END, \
             used_at_ms = $2 WHERE id = $3 AND tenant_id = $4 AND state <> 'ended' AND expires_at_ms > $2 \
             RETURNING {COLUMNS}"
        )))
        .bind(expires_at_ms)
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

struct Use {
    tenant: String,
    id: String,
    now: Millis,
    event: Option<AuditEvent>,
}

impl crate::writer::Act<SessionRecord> for Use {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<SessionRecord>
    where
        Self: 'c,
    {
        let Self { tenant, id, now, event } = self;
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE sessions SET used_at_ms = $1 WHERE id = $2 AND tenant_id = $3 AND state = 'ready' \
             AND expires_at_ms > $1 RETURNING {COLUMNS}"
        )))
        .bind(now)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .fetch_optional(&mut *connection)
        .await?;
        let Some(row) = row else { return Err(why(connection, &tenant, &id, now).await) };
        if let Some(event) = event {
            audit::append(connection, &tenant, &[event]).await?;
        }
        record(&row)
    }
}
