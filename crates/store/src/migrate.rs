//! The tables, and how they come to be: each step once, in order, with its number kept.

use crate::engine::Kind;
use crate::{Result, StoreError};
use sqlx::{AnyConnection, Executor, Row};

/// In order, each with its number; a step that was published never changes.
const STEPS: &[(i64, &str)] = &[
    (1, include_str!("../migrations/0001_jobs.sql")),
    (2, include_str!("../migrations/0002_proofs.sql")),
    (3, include_str!("../migrations/0003_keeping.sql")),
    (4, include_str!("../migrations/0004_artifacts.sql")),
    (5, include_str!("../migrations/0005_tenants.sql")),
    (6, include_str!("../migrations/0006_workers.sql")),
    (7, include_str!("../migrations/0007_operations.sql")),
    (8, include_str!("../migrations/0008_sessions.sql")),
    (9, include_str!("../migrations/0009_pause.sql")),
    (10, include_str!("../migrations/0010_step_artifacts.sql")),
    (11, include_str!("../migrations/0011_worker_problems.sql")),
    (12, include_str!("../migrations/0012_apart.sql")),
    (13, include_str!("../migrations/0013_keys.sql")),
    (14, include_str!("../migrations/0014_images.sql")),
    (15, include_str!("../migrations/0015_worker_images.sql")),
];

/// Brings the tables up to date. Each step is one transaction, so a crash leaves the one before or the one after.
pub(crate) async fn migrate(connection: &mut AnyConnection, kind: Kind) -> Result<()> {
    // In a transaction of its own, since two who make it at once would be in each other's way.
    connection.execute(kind.begin()).await?;
    let made =
        connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)").await;
    connection.execute(if made.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    made?;
    // Before anything is changed: what a newer program has made is not touched.
    check(connection).await?;
    for &(number, step) in STEPS {
        if steps(connection).await?.contains(&number) {
            continue;
        }
        connection.execute(kind.begin()).await?;
        let done = apply(connection, kind, number, step).await;
        connection.execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
        done?;
    }
    Ok(())
}

/// Refuses tables of a newer program.
pub(crate) async fn check(connection: &mut AnyConnection) -> Result<()> {
    let newest = steps(connection).await?.into_iter().max().unwrap_or(0);
    let known = STEPS[STEPS.len() - 1].0;
    if newest > known {
        return Err(StoreError::Unreadable(format!(
            "its tables are of version {newest}, this program knows {known}; use a newer program"
        )));
    }
    Ok(())
}

/// Refuses any tables but those of this program.
pub(crate) async fn check_same(connection: &mut AnyConnection) -> Result<()> {
    check(connection).await?;
    let taken = steps(connection).await?;
    if STEPS.iter().all(|(number, _)| taken.contains(number)) {
        return Ok(());
    }
    let text =
        "its tables are of an older version; start the server on it once, which brings them up to date";
    Err(StoreError::Unreadable(text.to_owned()))
}

/// The steps that were taken.
async fn steps(connection: &mut AnyConnection) -> Result<Vec<i64>> {
    let rows = sqlx::query("SELECT version FROM schema_version").fetch_all(connection).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

async fn apply(connection: &mut AnyConnection, kind: Kind, number: i64, step: &str) -> Result<()> {
    // Inside the transaction: another process may have been quicker, or be at it right now.
    if steps(connection).await?.contains(&number) {
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

/// The indexes that there are after the last step, each with the statement that makes it.
#[cfg(feature = "bulk")]
pub(crate) fn indexes() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for statement in STEPS.iter().flat_map(|(_, step)| step.split(';')).map(str::trim) {
        let name = statement.strip_prefix("CREATE INDEX ").and_then(|rest| rest.split_whitespace().next());
        let dropped = statement.strip_prefix("DROP INDEX ");
        if let Some(name) = name.or(dropped) {
            found.retain(|(known, _)| known != name);
        }
        if let Some(name) = name {
            found.push((name.to_owned(), statement.to_owned()));
        }
    }
    found
}
