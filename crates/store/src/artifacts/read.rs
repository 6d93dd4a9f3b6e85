//! Finding and listing artifacts.

use super::{ArtifactRecord, COLUMNS, record};
use crate::{Page, Result, Store};
use sqlx::Row;

/// Which artifacts of a tenant to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct ArtifactFilter {
    pub job: Option<String>,
    /// Only those of this session.
    pub session: Option<String>,
    pub limit: i64,
    /// Where the page before ended.
    pub before: Option<Page>,
}

impl Store {
    /// An artifact that is not about to go.
    pub async fn artifact(&self, tenant: &str, id: &str) -> Result<Option<ArtifactRecord>> {
        let found = self.artifact_of_anyone(id).await?;
        Ok(found.filter(|artifact| artifact.tenant == tenant))
    }

    /// The same, for whoever has proven otherwise that they may know of it.
    pub async fn artifact_of_anyone(&self, id: &str) -> Result<Option<ArtifactRecord>> {
        let text = format!("SELECT {COLUMNS} FROM artifacts WHERE id = $1 AND state <> 'deleting'");
        let row = self.engine.fetch_optional(sqlx::query(sqlx::AssertSqlSafe(text)).bind(id)).await?;
        row.as_ref().map(record).transpose()
    }

    pub async fn artifacts(&self, tenant: &str, filter: &ArtifactFilter) -> Result<Vec<ArtifactRecord>> {
        let page = filter.before.clone().unwrap_or(Page { created_at_ms: i64::MAX, id: String::new() });
        let text = format!(
            "SELECT {COLUMNS} FROM artifacts WHERE tenant_id = $1 AND ($2 = '' OR job_id = $2) \
             AND ($6 = '' OR session_id = $6) AND state <> 'deleting' AND (created_at_ms < $3 OR (created_at_ms = $3 AND id < $4)) \
             ORDER BY created_at_ms DESC, id DESC LIMIT $5"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(text))
            .bind(tenant)
            .bind(filter.job.as_deref().unwrap_or(""))
            .bind(page.created_at_ms)
            .bind(page.id)
            .bind(filter.limit)
            .bind(filter.session.as_deref().unwrap_or(""));
        self.engine.fetch_all(query).await?.iter().map(record).collect()
    }

    /// How many bytes a tenant's artifacts take, those that are on their way included.
    pub async fn artifact_bytes(&self, tenant: &str) -> Result<i64> {
        let query = sqlx::query("SELECT bytes FROM artifact_usage WHERE tenant_id = $1").bind(tenant);
        let row = self.engine.fetch_optional(query).await?;
        row.map_or(Ok(0), |row| Ok(row.try_get(0)?))
    }

    /// The same, counted anew: artifacts, and the files that snapshots and paused sessions keep.
    pub async fn recount_artifact_bytes(&self, tenant: &str) -> Result<i64> {
        let query = sqlx::query(
            "SELECT CAST((SELECT COALESCE(SUM(size_bytes), 0) FROM artifacts WHERE tenant_id = $1 AND state <> 'deleting') \
             + (SELECT COALESCE(SUM(size_bytes), 0) FROM archives WHERE tenant_id = $1 AND state <> 'deleting') AS BIGINT)",
        )
        .bind(tenant);
        let row = self.engine.fetch_optional(query).await?;
        row.map_or(Ok(0), |row| Ok(row.try_get(0)?))
    }

    /// Whether a key of a tenant is one that still counts, at a time.
    pub async fn is_key_valid(&self, tenant: &str, id: &str, now: crate::Millis) -> Result<bool> {
        let query = sqlx::query(
            "SELECT 1 FROM keys WHERE id = $1 AND tenant_id = $2 AND revoked_at_ms IS NULL \
             AND (expires_at_ms IS NULL OR expires_at_ms > $3)",
        )
        .bind(id)
        .bind(tenant)
        .bind(now);
        Ok(self.engine.fetch_optional(query).await?.is_some())
    }
}
