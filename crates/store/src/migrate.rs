//! The tables, and how they come to be: each step once, in order, with its number kept.

use crate::engine::Kind;
use crate::{Result, StoreError};
use sqlx::{AnyConnection, Executor, Row};

/// In order; a step that was published never changes.
const STEPS: [&str; 3] = [
    include_str!("../migrations/0001_jobs.sql"),
    include_str!("../migrations/0002_proofs.sql"),
    include_str!("../migrations/0006_workers.sql"),
];

/// Brings the tables up to date. Each step is one transaction, so a crash leaves the one before or the one after.
pub(crate) async fn migrate(connection: &mut AnyConnection, kind: Kind) -> Result<()> {
    for (i, step) in STEPS.into_iter().enumerate() {
        let version = i as i64 + 1;
        connection.execute(kind.begin()).await?;
        let done = apply(connection, kind, version, step).await;
        connection.execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
        done?;
    }
    let newest = version(connection).await?;
    if newest > STEPS.len() as i64 {
        let text = format!("its tables are of version {newest}, this program knows {}", STEPS.len());
        return Err(StoreError::Unreadable(text));
    }
    Ok(())
}

async fn version(connection: &mut AnyConnection) -> Result<i64> {
    let row =
        sqlx::query("SELECT COALESCE(MAX(version), 0) FROM schema_version").fetch_one(connection).await?;
    Ok(row.try_get(0)?)
}

async fn apply(connection: &mut AnyConnection, kind: Kind, number: i64, step: &str) -> Result<()> {
    // Inside the transaction: another process may have been quicker, or be at it right now.
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)").await?;
    if version(connection).await? >= number {
        return Ok(());
    }
    for statement in step.replace("{{bytes}}", kind.bytes_type()).split(';').map(str::trim) {
        if !statement.is_empty() {
            connection.execute(sqlx::AssertSqlSafe(statement.to_owned())).await?;
        }
    }
    sqlx::query("INSERT INTO schema_version (version) VALUES ($1)").bind(number).execute(connection).await?;
    Ok(())
}
