//! That a key was used: noted once in a period, however often it is.

use crate::{AuditEvent, Millis, Result, Store, audit, texts};
use sqlx::{AnyConnection, Row};

impl Store {
    /// Notes that a key was used, unless that is known since `since`. Returns whether it was noted.
    pub async fn note_key_use(
        &self,
        tenant: String,
        id: String,
        since: Millis,
        event: AuditEvent,
    ) -> Result<bool> {
        texts::check([("the tenant", tenant.as_str()), ("the key's id", &id)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(NoteUse { tenant, id, since, event }).await
    }
}

struct NoteUse {
    tenant: String,
    id: String,
    since: Millis,
    event: AuditEvent,
}

impl crate::writer::Act<bool> for NoteUse {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<bool>
    where
        Self: 'c,
    {
        let Self { tenant, id, since, mut event } = self;
        let row = sqlx::query("SELECT last_used_at_ms FROM keys WHERE id = $1 AND tenant_id = $2")
            .bind(id.as_str())
            .bind(tenant.as_str())
            .fetch_optional(&mut *connection)
            .await?;
        let Some(row) = row else { return Ok(false) };
        let last: Option<Millis> = row.try_get(0)?;
        if last.is_some_and(|last| last >= since) {
            return Ok(false);
        }
        sqlx::query("UPDATE keys SET last_used_at_ms = $1 WHERE id = $2")
            .bind(event.at_ms)
            .bind(id.as_str())
            .execute(&mut *connection)
            .await?;
        event.details["first"] = last.is_none().into();
        audit::append(connection, &tenant, &[event]).await?;
        Ok(true)
    }
}
