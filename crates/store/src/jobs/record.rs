//! A job as it is kept.

use crate::{Millis, Result, StoreError};
use cofferdam_core::JobState;
use sqlx::Row;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    pub id: String,
    pub tenant: String,
    pub agent: Option<String>,
    pub task_id: String,
    pub state: JobState,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub created_at_ms: Millis,
    pub transition_at_ms: Millis,
    pub spec: String,
    pub result: Option<String>,
    pub fence: i64,
    pub starts: i64,
    pub worker: Option<String>,
    pub cancelled_by: Option<String>,
    /// Of the last start; none if it never ran.
    pub started_at_ms: Option<Millis>,
    pub terms: Option<String>,
    /// Since when its output is not kept any more, if it had any.
    pub output_expired_at_ms: Option<Millis>,
    /// The process that answers for it while it runs.
    pub owner: Option<String>,
    pub lease_until_ms: Option<Millis>,
    pub traceparent: Option<String>,
}

pub(crate) const COLUMNS: &str = "id, tenant_id, agent, task_id, state, reason, message, created_at_ms, \
                       transition_at_ms, spec, result, fence, starts, worker, cancelled_by, started_at_ms, terms, \
                       output_expired_at_ms, owner, lease_until_ms, traceparent";

/// How many [`COLUMNS`] there are.
pub(crate) const COLUMN_COUNT: usize = 21;

pub(crate) fn record(row: &sqlx::any::AnyRow) -> Result<JobRecord> {
    Ok(JobRecord {
        id: row.try_get(0)?,
        tenant: row.try_get(1)?,
        agent: row.try_get(2)?,
        task_id: row.try_get(3)?,
        state: state(row.try_get(4)?)?,
        reason: row.try_get(5)?,
        message: row.try_get(6)?,
        created_at_ms: row.try_get(7)?,
        transition_at_ms: row.try_get(8)?,
        spec: row.try_get(9)?,
        result: row.try_get(10)?,
        fence: row.try_get(11)?,
        starts: row.try_get(12)?,
        worker: row.try_get(13)?,
        cancelled_by: row.try_get(14)?,
        started_at_ms: row.try_get(15)?,
        terms: row.try_get(16)?,
        output_expired_at_ms: row.try_get(17)?,
        owner: row.try_get(18)?,
        lease_until_ms: row.try_get(19)?,
        traceparent: row.try_get(20)?,
    })
}

pub(crate) fn state(name: String) -> Result<JobState> {
    JobState::from_name(&name).ok_or_else(|| StoreError::Unreadable(format!("a job that is {name:?}")))
}
