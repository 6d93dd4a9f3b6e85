//! Sessions are looked at.

use super::record::{COLUMNS, SessionRecord, record};
use crate::{Page, Result, Store, limit};
use cofferdam_core::SessionState;

/// Which sessions of a tenant to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    pub state: Option<SessionState>,
    pub task_id: Option<String>,
    pub agent: Option<String>,
    pub limit: i64,
    /// Where the page before ended.
    pub before: Option<Page>,
}

impl Store {
    pub async fn session(&self, tenant: &str, id: &str) -> Result<Option<SessionRecord>> {
        let query = sqlx::query(sqlx::AssertSqlSafe(get())).bind(id).bind(tenant);
        self.engine.fetch_optional(query).await?.as_ref().map(record).transpose()
    }

    /// The same, for whoever has proven otherwise that they may know of it.
    pub async fn session_of_anyone(&self, id: &str) -> Result<Option<SessionRecord>> {
        let text = format!("SELECT {COLUMNS} FROM sessions WHERE id = $1");
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(id);
        self.engine.fetch_optional(query).await?.as_ref().map(record).transpose()
    }

    pub async fn sessions(&self, tenant: &str, filter: &SessionFilter) -> Result<Vec<SessionRecord>> {
        limit::check(filter.limit)?;
        let page = filter.before.clone().unwrap_or(Page { created_at_ms: i64::MAX, id: String::new() });
        let mut query = sqlx::query(sqlx::AssertSqlSafe(list(filter)))
            .bind(tenant)
            .bind(page.created_at_ms)
            .bind(page.id)
            .bind(filter.limit);
        for text in [&filter.task_id, &filter.agent].into_iter().flatten() {
            query = query.bind(text.as_str());
        }
        self.engine.fetch_all(query).await?.iter().map(record).collect()
    }
}

pub(crate) fn get() -> String {
    format!("SELECT {COLUMNS} FROM sessions WHERE id = $1 AND tenant_id = $2")
}

/// Only the conditions that are asked for: an index serves what is there, not what might be.
pub(crate) fn list(filter: &SessionFilter) -> String {
    let state = match filter.state {
        None => String::new(),
        Some(SessionState::Ended) => "AND state = 'ended' ".to_owned(),
        Some(state) => format!("AND state = '{state}' AND state <> 'ended' "),
    };
    let mut next = 5;
    let mut condition = |name: &str, is_asked: bool| match is_asked {
        false => String::new(),
        true => {
            next += 1;
            format!("AND {name} = ${} ", next - 1)
        }
    };
    let task = condition("task_id", filter.task_id.is_some());
    let agent = condition("agent", filter.agent.is_some());
    format!(
        "SELECT {COLUMNS} FROM sessions WHERE tenant_id = $1 {state}{task}{agent}AND (created_at_ms, id) < ($2, $3) \
         ORDER BY created_at_ms DESC, id DESC LIMIT $4"
    )
}
