//! Names of requests that are too old to be sent again.

use super::{ROWS, Removed};
use crate::{Millis, Result, Store};
use sqlx::AnyConnection;

pub(crate) const REMOVE: &str = "DELETE FROM idempotency WHERE (tenant_id, route, name) IN \
    (SELECT tenant_id, route, name FROM idempotency WHERE created_at_ms < $1 ORDER BY created_at_ms LIMIT $2)";

impl Store {
    /// Forgets some names that were taken before a time. They can be taken again.
    pub async fn expire_idempotency(&self, before: Millis) -> Result<Removed> {
        self.writer.write(Expire { before }).await
    }
}

struct Expire {
    before: Millis,
}

impl crate::writer::Act<Removed> for Expire {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<Removed>
    where
        Self: 'c,
    {
        let done = sqlx::query(REMOVE).bind(self.before).bind(ROWS).execute(connection).await?;
        let count = done.rows_affected();
        Ok(Removed { count, is_more: count == ROWS as u64 })
    }
}
