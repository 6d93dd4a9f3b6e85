//! Jobs are looked at.

use super::record::{COLUMNS, JobRecord, record};
use crate::engine::Kind;
use crate::{Millis, Result, Store, limit};
use cofferdam_core::JobState;
use sqlx::Row;

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
        let query = sqlx::query(sqlx::AssertSqlSafe(get())).bind(id).bind(tenant);
        self.engine.fetch_optional(query).await?.as_ref().map(record).transpose()
    }

    pub async fn jobs(&self, tenant: &str, filter: &JobFilter) -> Result<Vec<JobRecord>> {
        limit::check(filter.limit)?;
        let page = filter.before.clone().unwrap_or(Page { created_at_ms: i64::MAX, id: String::new() });
        let text = list(filter);
        let mut query = sqlx::query(sqlx::AssertSqlSafe(text))
            .bind(tenant)
            .bind(page.created_at_ms)
            .bind(page.id)
            .bind(filter.limit);
        if let Some(task) = &filter.task_id {
            query = query.bind(task.as_str());
        }
        self.engine.fetch_all(query).await?.iter().map(record).collect()
    }

    /// How many jobs wait for a worker, whoever's they are.
    pub async fn count_queued(&self) -> Result<i64> {
        let row = self.engine.fetch_optional(sqlx::query(COUNT_QUEUED)).await?;
        row.map_or(Ok(0), |row| Ok(row.try_get(0)?))
    }

    /// A tenant's jobs that wait for a worker and for nothing else, oldest first.
    pub async fn queued_of(&self, tenant: &str, limit: i64) -> Result<Vec<JobRecord>> {
        limit::check(limit)?;
        let query = sqlx::query(sqlx::AssertSqlSafe(queued(self.engine.kind()))).bind(tenant).bind(limit);
        self.engine.fetch_all(query).await?.iter().map(record).collect()
    }
}

/// The state twice, the second time in the words of the index of unfinished jobs.
pub(crate) const COUNT_QUEUED: &str =
    "SELECT COUNT(*) FROM jobs WHERE state = 'queued' AND state IN ('accepted', 'queued', 'running')";

pub(crate) fn get() -> String {
    format!("SELECT {COLUMNS} FROM jobs WHERE id = $1 AND tenant_id = $2")
}

/// Only the conditions that are asked for: an index serves what is there, not what might be. A state is one of a few
/// words of ours, and a planner that sees which takes the right index: that of a tenant's ended jobs, or that of the
/// unfinished ones, which are few, whoever's they are.
pub(crate) fn list(filter: &JobFilter) -> String {
    let (tenant, state) = match filter.state {
        None => ("tenant_id", String::new()),
        Some(state) if state.is_final() => ("tenant_id", format!("AND state = '{state}' AND {ENDED} ")),
        // Written so that the index of all the tenant's jobs is not taken.
        Some(state) => ("tenant_id || ''", format!("AND state = '{state}' AND {UNFINISHED} ")),
    };
    let task = if filter.task_id.is_some() { "AND task_id = $5 " } else { "" };
    format!(
        "SELECT {COLUMNS} FROM jobs WHERE {tenant} = $1 {state}{task}AND (created_at_ms, id) < ($2, $3) \
         ORDER BY created_at_ms DESC, id DESC LIMIT $4"
    )
}

/// In the words of the indexes of such jobs: SQLite takes them for nothing less.
const UNFINISHED: &str = "state IN ('accepted', 'queued', 'running')";
const ENDED: &str = "state NOT IN ('accepted', 'queued', 'running')";

pub(crate) fn queued(kind: Kind) -> String {
    let now = kind.now_ms();
    format!(
        "SELECT {COLUMNS} FROM jobs WHERE state = 'queued' AND tenant_id = $1 \
         AND (not_before_ms IS NULL OR not_before_ms <= {now}) ORDER BY created_at_ms, id LIMIT $2"
    )
}
