//! Steps are looked at.

use super::step_record::{COLUMNS, StepRecord, record};
use crate::{Result, Store, limit};

impl Store {
    pub async fn step(&self, tenant: &str, session: &str, id: &str) -> Result<Option<StepRecord>> {
        let query = sqlx::query(sqlx::AssertSqlSafe(one())).bind(id).bind(session).bind(tenant);
        self.engine.fetch_optional(query).await?.as_ref().map(record).transpose()
    }

    /// A session's steps after a number, in order.
    pub async fn steps(
        &self,
        tenant: &str,
        session: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<StepRecord>> {
        limit::check(limit)?;
        let query =
            sqlx::query(sqlx::AssertSqlSafe(list())).bind(session).bind(tenant).bind(after).bind(limit);
        self.engine.fetch_all(query).await?.iter().map(record).collect()
    }
}

pub(crate) fn one() -> String {
    format!(
        "SELECT {COLUMNS} FROM steps JOIN sessions ON sessions.id = session_id \
         WHERE steps.id = $1 AND session_id = $2 AND tenant_id = $3"
    )
}

pub(crate) fn list() -> String {
    format!(
        "SELECT {COLUMNS} FROM steps JOIN sessions ON sessions.id = session_id \
         WHERE session_id = $1 AND tenant_id = $2 AND number > $3 ORDER BY number LIMIT $4"
    )
}
