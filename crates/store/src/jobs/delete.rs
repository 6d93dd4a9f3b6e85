//! A job that is over, and everything of it, goes.

use super::guard::current;
use crate::{AuditEvent, Result, Store, StoreError, audit, texts};
use sqlx::AnyConnection;

impl Store {
    /// Removes a finished job and its output.
    pub async fn delete_job(&self, tenant: String, id: String, event: AuditEvent) -> Result<()> {
        texts::check([("the tenant", tenant.as_str()), ("the job's id", &id)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Delete { tenant, id, event }).await
    }
}

/// Every table that has something of a job; the job itself comes last.
const REMOVE: [&str; 3] = [
    "DELETE FROM output WHERE job_id = $1",
    "DELETE FROM webhooks WHERE job_id = $1",
    "DELETE FROM jobs WHERE id = $1",
];

/// Removes a job and everything that is its own.
pub(crate) async fn remove(connection: &mut AnyConnection, id: &str) -> Result<()> {
    crate::artifacts::delete_of_job(connection, id).await?;
    for text in REMOVE {
        sqlx::query(text).bind(id).execute(&mut *connection).await?;
    }
    Ok(())
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
        let Self { tenant, id, event } = self;
        let state = current(connection, &tenant, &id).await?;
        if !state.is_final() {
            return Err(StoreError::WrongState { state, wanted: state });
        }
        remove(connection, &id).await?;
        audit::append(connection, &tenant, &[event]).await
    }
}
