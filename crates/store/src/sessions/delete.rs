//! A session that has ended goes, and everything of it.

use super::guard::why;
use super::step_keys;
use crate::{Millis, Result, Store, texts};
use sqlx::{AnyConnection, Row};

/// Every table that has something of a session; the session itself comes last.
const REMOVE: [&str; 4] = [
    // The key first: whatever else is left of it means nothing from then on.
    step_keys::DESTROY,
    "DELETE FROM output WHERE job_id IN (SELECT id FROM steps WHERE session_id = $1)",
    "DELETE FROM steps WHERE session_id = $1",
    "DELETE FROM sessions WHERE id = $1",
];

/// Sessions that ended long ago.
pub(crate) const FIND: &str =
    "SELECT id, tenant_id FROM sessions WHERE state = 'ended' AND transition_at_ms < $1 LIMIT $2";

impl Store {
    /// Removes what the steps of an ended session were and wrote, and the environment that it had; with `whole`, the
    /// session itself, too.
    pub async fn clear_session(&self, tenant: String, id: String, whole: bool, now: Millis) -> Result<()> {
        texts::check([("the tenant", tenant.as_str()), ("the session's id", &id)])?;
        self.writer.write(Clear { tenant, id, whole, now }).await
    }
}

struct Clear {
    tenant: String,
    id: String,
    whole: bool,
    now: Millis,
}

impl crate::writer::Act<()> for Clear {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let row =
            sqlx::query("SELECT spec FROM sessions WHERE id = $1 AND tenant_id = $2 AND state = 'ended'")
                .bind(self.id.as_str())
                .bind(self.tenant.as_str())
                .fetch_optional(&mut *connection)
                .await?;
        let Some(row) = row else {
            return Err(why(connection, &self.tenant, &self.id, self.now).await);
        };
        if !self.whole {
            let spec = without_environment(row.try_get("spec")?);
            let update = sqlx::query("UPDATE sessions SET spec = $2 WHERE id = $1");
            update.bind(self.id.as_str()).bind(spec).execute(&mut *connection).await?;
        }
        let parts = if self.whole { &REMOVE[..] } else { &REMOVE[..3] };
        for text in parts {
            sqlx::query(*text).bind(self.id.as_str()).execute(&mut *connection).await?;
        }
        Ok(())
    }
}

/// What was asked for, without what its processes were given: nobody needs that any more.
fn without_environment(spec: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(spec) {
        Ok(serde_json::Value::Object(mut request)) => {
            request.insert("env".to_owned(), serde_json::json!({}));
            serde_json::Value::Object(request).to_string()
        }
        _ => "{}".to_owned(),
    }
}
