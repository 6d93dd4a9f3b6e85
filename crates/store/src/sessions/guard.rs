//! What stands in the way of a change, and how it is said.

use super::record::{cause, state};
use crate::{Millis, Result, StoreError};
use cofferdam_core::{EndCause, JobState, SessionState};
use sqlx::{AnyConnection, Row};

/// Why a guarded change of a session changed nothing. One whose time is over counts as ended, even if nobody has said
/// so yet.
pub(super) async fn why(connection: &mut AnyConnection, tenant: &str, id: &str, now: Millis) -> StoreError {
    match look(connection, tenant, id, now).await {
        Ok(error) | Err(error) => error,
    }
}

async fn look(connection: &mut AnyConnection, tenant: &str, id: &str, now: Millis) -> Result<StoreError> {
    let row =
        sqlx::query("SELECT state, cause, expires_at_ms FROM sessions WHERE id = $1 AND tenant_id = $2")
            .bind(id)
            .bind(tenant)
            .fetch_optional(connection)
            .await?;
    let Some(row) = row else { return Ok(StoreError::NotFound { what: "session" }) };
    let named: Option<String> = row.try_get(1)?;
    let (state, cause) = (state(row.try_get(0)?)?, named.map(cause).transpose()?);
    if state != SessionState::Ended && row.try_get::<i64, _>(2)? <= now {
        return Ok(StoreError::SessionState { state: SessionState::Ended, cause: Some(EndCause::Expired) });
    }
    Ok(StoreError::SessionState { state, cause })
}

/// Why a guarded change of a step changed nothing.
pub(super) async fn why_step(
    connection: &mut AnyConnection,
    id: &str,
    generation: i64,
    wanted: JobState,
) -> StoreError {
    let row = sqlx::query("SELECT state, generation FROM steps WHERE id = $1").bind(id);
    let read = |row: sqlx::any::AnyRow| {
        Ok::<_, StoreError>((super::step_record::state(row.try_get(0)?)?, row.try_get::<i64, _>(1)?))
    };
    match row.fetch_optional(connection).await.map(|row| row.map(read)) {
        Ok(None) => StoreError::NotFound { what: "step" },
        Ok(Some(Ok((_, last)))) if last != generation => StoreError::Fenced,
        Ok(Some(Ok((state, _)))) => StoreError::WrongState { state, wanted },
        Ok(Some(Err(error))) => error,
        Err(error) => error.into(),
    }
}
