//! A step as it is kept.

use crate::{Millis, Result, StoreError};
use cofferdam_core::JobState;
use sqlx::Row;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRecord {
    pub id: String,
    pub session: String,
    pub number: i64,
    /// The queue that it is in.
    pub context: String,
    pub state: JobState,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub created_at_ms: Millis,
    pub started_at_ms: Option<Millis>,
    pub transition_at_ms: Millis,
    /// The request.
    pub spec: String,
    pub result: Option<String>,
    pub generation: i64,
    pub cancelled_by: Option<String>,
}

pub(super) const COLUMNS: &str = "steps.id, session_id, number, context, steps.state, reason, steps.message, \
    steps.created_at_ms, started_at_ms, steps.transition_at_ms, steps.spec, result, steps.generation, cancelled_by";

pub(super) fn record(row: &sqlx::any::AnyRow) -> Result<StepRecord> {
    Ok(StepRecord {
        id: row.try_get(0)?,
        session: row.try_get(1)?,
        number: row.try_get(2)?,
        context: row.try_get(3)?,
        state: state(row.try_get(4)?)?,
        reason: row.try_get(5)?,
        message: row.try_get(6)?,
        created_at_ms: row.try_get(7)?,
        started_at_ms: row.try_get(8)?,
        transition_at_ms: row.try_get(9)?,
        spec: row.try_get(10)?,
        result: row.try_get(11)?,
        generation: row.try_get(12)?,
        cancelled_by: row.try_get(13)?,
    })
}

pub(super) fn state(name: String) -> Result<JobState> {
    JobState::from_name(&name).ok_or_else(|| StoreError::Unreadable(format!("a step that is {name:?}")))
}
