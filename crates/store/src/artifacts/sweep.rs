//! What a sweep asks and writes: records whose time is over, whose job is gone, or whose bytes are.

use super::{ArtifactRecord, COLUMNS, record, write};
use crate::{AuditEvent, Millis, Result, Store, audit, texts};
use sqlx::{AnyConnection, Row};

impl Store {
    /// Takes away artifacts whose time is over: unfinished uploads and old ones. Returns how many there were, at most
    /// `limit` at a time.
    pub async fn expire_artifacts(&self, now: Millis, limit: i64) -> Result<usize> {
        let text =
            "SELECT id, tenant_id FROM artifacts WHERE expires_at_ms <= $1 AND state <> 'deleting' LIMIT $2";
        self.writer.write(Expire { text, kind: "artifact.expired", now, limit }).await
    }

    /// Takes away artifacts of jobs that are no longer there, however those went.
    pub async fn expire_artifacts_without_job(&self, now: Millis, limit: i64) -> Result<usize> {
        let text = "SELECT id, tenant_id FROM artifacts WHERE $1 > 0 AND job_id IS NOT NULL AND state <> 'deleting' \
                    AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = artifacts.job_id) LIMIT $2";
        self.writer.write(Expire { text, kind: "artifact.deleted", now, limit }).await
    }

    /// Artifacts that nobody can read any more and whose bytes may still be there: tenant and id.
    pub async fn deleting_artifacts(&self, limit: i64) -> Result<Vec<(String, String)>> {
        let text = "SELECT tenant_id, id FROM artifacts WHERE state = 'deleting' ORDER BY id LIMIT $1";
        let rows = self.engine.fetch_all(sqlx::query(text).bind(limit)).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Removes the record of an artifact whose bytes are gone.
    pub async fn forget_artifact(&self, id: String) -> Result<()> {
        texts::check([("the artifact's id", id.as_str())])?;
        self.writer.write(Forget { id }).await
    }

    /// Whether bytes belong to something: a record names this writing of this artifact.
    pub async fn has_attempt(&self, tenant: &str, id: &str, attempt: &str) -> Result<bool> {
        let text = "SELECT 1 FROM artifacts WHERE id = $1 AND tenant_id = $2 AND attempt = $3 AND state <> 'deleting' \
                    UNION ALL SELECT 1 FROM archives WHERE owner = $1 AND tenant_id = $2 AND attempt = $3 \
                    AND state <> 'deleting'";
        let query = sqlx::query(text).bind(id).bind(tenant).bind(attempt);
        Ok(self.engine.fetch_optional(query).await?.is_some())
    }

    /// Readable artifacts of all tenants, by id, after one.
    pub async fn ready_artifacts(&self, after: &str, limit: i64) -> Result<Vec<ArtifactRecord>> {
        let text =
            format!("SELECT {COLUMNS} FROM artifacts WHERE id > $1 AND state = 'ready' ORDER BY id LIMIT $2");
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(after).bind(limit);
        self.engine.fetch_all(query).await?.iter().map(record).collect()
    }
}

struct Expire {
    text: &'static str,
    kind: &'static str,
    now: Millis,
    limit: i64,
}

impl crate::writer::Act<usize> for Expire {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<usize>
    where
        Self: 'c,
    {
        let rows = sqlx::query(self.text).bind(self.now).bind(self.limit).fetch_all(&mut *connection).await?;
        for row in &rows {
            let (id, tenant): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            write::mark_deleting(connection, &id, None).await?;
            let event = AuditEvent {
                at_ms: self.now,
                kind: self.kind,
                actor: "system".to_owned(),
                resource: id,
                details: serde_json::json!({}),
            };
            audit::append(connection, &tenant, &[event]).await?;
        }
        Ok(rows.len())
    }
}

struct Forget {
    id: String,
}

impl crate::writer::Act<()> for Forget {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let text = "DELETE FROM artifacts WHERE id = $1 AND state = 'deleting'";
        sqlx::query(text).bind(self.id).execute(connection).await?;
        Ok(())
    }
}
