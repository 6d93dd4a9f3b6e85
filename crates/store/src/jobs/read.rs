//! Jobs are looked at.

use super::record::{COLUMNS, JobRecord, record};
use crate::{Millis, Result, Store};
use cofferdam_core::JobState;

/// Which jobs of a tenant to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    pub state: Option<JobState>,
    pub task_id: Option<String>,
    pub limit: i64,
    /// Where the page before ended.
    pub before: Option<Page>,
}

/// A place in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub created_at_ms: Millis,
    pub id: String,
}

impl Store {
    pub async fn job(&self, tenant: &str, id: &str) -> Result<Option<JobRecord>> {
        let text = format!("SELECT {COLUMNS} FROM jobs WHERE id = $1 AND tenant_id = $2");
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(id).bind(tenant);
        query.fetch_optional(self.engine.readers()).await?.as_ref().map(record).transpose()
    }

    pub async fn jobs(&self, tenant: &str, filter: &JobFilter) -> Result<Vec<JobRecord>> {
        let page = filter.before.clone().unwrap_or(Page { created_at_ms: i64::MAX, id: String::new() });
        let text = format!(
            "SELECT {COLUMNS} FROM jobs WHERE tenant_id = $1 AND ($2 = '' OR state = $2) \
             AND ($3 = '' OR task_id = $3) AND (created_at_ms < $4 OR (created_at_ms = $4 AND id < $5)) \
             ORDER BY created_at_ms DESC, id DESC LIMIT $6"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(text))
            .bind(tenant)
            .bind(filter.state.map_or("", JobState::as_str))
            .bind(filter.task_id.as_deref().unwrap_or(""))
            .bind(page.created_at_ms)
            .bind(page.id)
            .bind(filter.limit)
            .fetch_all(self.engine.readers())
            .await?;
        rows.iter().map(record).collect()
    }

    /// Jobs that wait for a worker, oldest first.
    pub async fn queued(&self, limit: i64) -> Result<Vec<JobRecord>> {
        let text =
            format!("SELECT {COLUMNS} FROM jobs WHERE state = 'queued' ORDER BY created_at_ms, id LIMIT $1");
        let rows =
            sqlx::query(sqlx::AssertSqlSafe(text)).bind(limit).fetch_all(self.engine.readers()).await?;
        rows.iter().map(record).collect()
    }
}
