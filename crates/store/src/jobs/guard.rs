//! What stands in the way of a change, and how it is said.

use super::record::state;
use crate::{Result, StoreError};
use cofferdam_core::JobState;
use sqlx::{AnyConnection, Row};

/// Why a guarded change changed nothing.
pub(crate) async fn why(
    connection: &mut AnyConnection,
    id: &str,
    fence: Option<i64>,
    wanted: JobState,
) -> StoreError {
    let row =
        sqlx::query("SELECT state, fence FROM jobs WHERE id = $1").bind(id).fetch_optional(connection).await;
    let read =
        |row: sqlx::any::AnyRow| Ok::<_, StoreError>((state(row.try_get(0)?)?, row.try_get::<i64, _>(1)?));
    match row.map(|row| row.map(read)) {
        Ok(None) => StoreError::NotFound { what: "job" },
        Ok(Some(Ok((_, last)))) if fence.is_some_and(|fence| fence != last) => StoreError::Fenced,
        Ok(Some(Ok((state, _)))) => StoreError::WrongState { state, wanted },
        Ok(Some(Err(error))) => error,
        Err(error) => error.into(),
    }
}

/// Whether a claim is the last one, and its job still runs.
pub(crate) async fn check_fence(connection: &mut AnyConnection, id: &str, fence: i64) -> Result<()> {
    let row = sqlx::query("SELECT 1 FROM jobs WHERE id = $1 AND fence = $2 AND state = 'running'")
        .bind(id)
        .bind(fence)
        .fetch_optional(&mut *connection)
        .await?;
    match row {
        Some(_) => Ok(()),
        None => Err(why(connection, id, Some(fence), JobState::Running).await),
    }
}

pub(super) async fn current(connection: &mut AnyConnection, tenant: &str, id: &str) -> Result<JobState> {
    let row = sqlx::query("SELECT state FROM jobs WHERE id = $1 AND tenant_id = $2")
        .bind(id)
        .bind(tenant)
        .fetch_optional(connection)
        .await?;
    state(row.ok_or(StoreError::NotFound { what: "job" })?.try_get(0)?)
}
