//! Who asked to hear of a job is told of its changes.

use crate::{Millis, Result, webhooks};
use cofferdam_core::JobState;
use sqlx::AnyConnection;

/// Notes a change of state for the job's webhook. The result is the job's, from which the outcome is taken.
pub(crate) async fn tell(
    connection: &mut AnyConnection,
    id: &str,
    event: &'static str,
    attempt: i64,
    state: JobState,
    result: Option<&str>,
    at_ms: Millis,
) -> Result<()> {
    let result: serde_json::Value =
        result.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let facts = serde_json::json!({
        "job_id": id, "attempt": attempt, "state": state, "exit_code": result["exit_code"],
        "container_id": result["container_id"], "outcome": result["outcome"], "at_ms": at_ms,
    });
    webhooks::note(connection, id, event, attempt, &facts, at_ms).await
}
