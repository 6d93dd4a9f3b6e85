//! How far many things are, in one question: for whoever watches over all that is followed.

use crate::{Result, Store};
use cofferdam_core::JobState;
use sqlx::Row;
use std::collections::HashMap;

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub id: String,
    pub state: JobState,
    /// The number of the last of its output; 0 where there is none.
    pub last_seq: i64,
}

/// So many at a time; a statement has only so many places.
const CHUNK: usize = 500;

/// `$1, $2, …`
fn places(count: usize) -> String {
    (1..=count).map(|place| format!("${place}")).collect::<Vec<_>>().join(", ")
}

pub(crate) fn of_jobs(count: usize) -> String {
    format!(
        "SELECT id, state, (SELECT COALESCE(MAX(seq), 0) FROM output WHERE job_id = jobs.id) \
         FROM jobs WHERE id IN ({})",
        places(count)
    )
}

pub(crate) fn of_tenants(count: usize) -> String {
    format!("SELECT tenant_id, seq FROM audit_heads WHERE tenant_id IN ({})", places(count))
}

impl Store {
    /// Jobs that are not there are left out.
    pub async fn progress(&self, ids: &[&str]) -> Result<Vec<Progress>> {
        let mut found = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(CHUNK) {
            let text = of_jobs(chunk.len());
            let mut query = sqlx::query(sqlx::AssertSqlSafe(text));
            for id in chunk {
                query = query.bind(*id);
            }
            for row in self.engine.fetch_all(query).await? {
                let state = crate::jobs::state(row.try_get(1)?)?;
                found.push(Progress { id: row.try_get(0)?, state, last_seq: row.try_get(2)? });
            }
        }
        Ok(found)
    }

    /// The number of the last entry in the audit of each tenant that has one.
    pub async fn audit_heads(&self, tenants: &[&str]) -> Result<HashMap<String, i64>> {
        let mut heads = HashMap::with_capacity(tenants.len());
        for chunk in tenants.chunks(CHUNK) {
            let text = of_tenants(chunk.len());
            let mut query = sqlx::query(sqlx::AssertSqlSafe(text));
            for tenant in chunk {
                query = query.bind(*tenant);
            }
            for row in self.engine.fetch_all(query).await? {
                heads.insert(row.try_get(0)?, row.try_get(1)?);
            }
        }
        Ok(heads)
    }
}
