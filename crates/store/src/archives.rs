//! Archives: the files of a session or a snapshot, kept without a sandbox. What is here says whose they are and has the
//! wrapped key without which the bytes say nothing; the bytes are elsewhere.
//!
//! The rows are small, so that a key lies in one piece, and a key that is taken away is taken away first.

use crate::{Millis, Result, Store, StoreError, artifacts, texts};
use sqlx::{AnyConnection, Row};

/// One writing of somebody's files, as it begins.
#[derive(Debug, Clone)]
pub struct NewArchive {
    /// A session or a snapshot.
    pub owner: String,
    pub tenant: String,
    pub attempt: String,
    pub wrapped_key: String,
    /// Who writes it. What they have not finished when they are gone is nobody's.
    pub writer: String,
    pub at_ms: Millis,
}

/// An archive that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveRecord {
    pub owner: String,
    pub tenant: String,
    pub attempt: String,
    pub wrapped_key: String,
    pub size_bytes: i64,
}

impl Store {
    /// Notes that bytes are about to be written.
    pub async fn begin_archive(&self, archive: NewArchive) -> Result<()> {
        texts::check([("the owner", archive.owner.as_str()), ("the tenant", &archive.tenant)])?;
        self.writer.write(Begin { archive }).await
    }

    /// The bytes of a writing are not wanted.
    pub async fn abandon_archive(&self, owner: String, attempt: String) -> Result<()> {
        self.writer.write(Abandon { owner, attempt }).await
    }

    /// The files of a session or a snapshot, where they are kept.
    pub async fn archive(&self, tenant: &str, owner: &str) -> Result<Option<ArchiveRecord>> {
        let text = "SELECT owner, tenant_id, attempt, wrapped_key, size_bytes FROM archives \
                    WHERE owner = $1 AND tenant_id = $2 AND state = 'ready' AND wrapped_key IS NOT NULL";
        let row = self.engine.fetch_optional(sqlx::query(text).bind(owner).bind(tenant)).await?;
        let read = |row: sqlx::any::AnyRow| {
            Ok(ArchiveRecord {
                owner: row.try_get(0)?,
                tenant: row.try_get(1)?,
                attempt: row.try_get(2)?,
                wrapped_key: row.try_get(3)?,
                size_bytes: row.try_get(4)?,
            })
        };
        row.map(read).transpose()
    }

    /// Archives that nobody can read any more and whose bytes may still be there: tenant, owner and attempt.
    pub async fn deleting_archives(&self, limit: i64) -> Result<Vec<(String, String, String)>> {
        let text = "SELECT tenant_id, owner, attempt FROM archives WHERE state = 'deleting' LIMIT $1";
        let rows = self.engine.fetch_all(sqlx::query(text).bind(limit)).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect()
    }

    /// Removes the record of an archive whose bytes are gone.
    pub async fn forget_archive(&self, owner: String, attempt: String) -> Result<()> {
        self.writer.write(Forget { owner, attempt }).await
    }

    /// How many keys there are for what a session or a snapshot keeps.
    pub async fn archive_keys(&self, owner: &str) -> Result<i64> {
        let text = "SELECT (SELECT COUNT(*) FROM archives WHERE owner = $1 AND wrapped_key IS NOT NULL) \
                    + (SELECT COUNT(*) FROM session_keys WHERE session_id = $1)";
        let row = self.engine.fetch_optional(sqlx::query(text).bind(owner)).await?;
        row.map(|row| Ok(row.try_get(0)?)).unwrap_or(Ok(0))
    }

    /// Has what was deleted leave the files of the database, too. False where somebody was in the way.
    pub async fn forget_deleted(&self) -> Result<bool> {
        let row = self.engine.fetch_optional(sqlx::query(self.engine.kind().forget())).await?;
        Ok(row.is_none_or(|row| row.try_get::<i64, _>(0).unwrap_or(0) == 0))
    }
}

struct Begin {
    archive: NewArchive,
}

impl crate::writer::Act<()> for Begin {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let NewArchive { owner, tenant, attempt, wrapped_key, writer, at_ms } = self.archive;
        sqlx::query(
            "INSERT INTO archives (owner, attempt, tenant_id, state, writer, wrapped_key, size_bytes, created_at_ms) \
             VALUES ($1, $2, $3, 'writing', $4, $5, 0, $6)",
        )
        .bind(owner)
        .bind(attempt)
        .bind(tenant)
        .bind(writer)
        .bind(wrapped_key)
        .bind(at_ms)
        .execute(connection)
        .await?;
        Ok(())
    }
}

struct Abandon {
    owner: String,
    attempt: String,
}

impl crate::writer::Act<()> for Abandon {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let text = "UPDATE archives SET state = 'deleting', wrapped_key = NULL \
                    WHERE owner = $1 AND attempt = $2 AND state = 'writing'";
        sqlx::query(text).bind(self.owner).bind(self.attempt).execute(connection).await?;
        Ok(())
    }
}

struct Forget {
    owner: String,
    attempt: String,
}

impl crate::writer::Act<()> for Forget {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let text = "DELETE FROM archives WHERE owner = $1 AND attempt = $2 AND state = 'deleting'";
        sqlx::query(text).bind(self.owner).bind(self.attempt).execute(connection).await?;
        Ok(())
    }
}

/// A writing is whole, and counts.
pub(crate) async fn finish(
    connection: &mut AnyConnection,
    tenant: &str,
    owner: &str,
    attempt: &str,
    size_bytes: i64,
    quota_bytes: i64,
) -> Result<()> {
    artifacts::count(connection, tenant, size_bytes, Some(quota_bytes)).await?;
    let done = sqlx::query(
        "UPDATE archives SET state = 'ready', size_bytes = $1 \
         WHERE owner = $2 AND attempt = $3 AND state = 'writing' AND wrapped_key IS NOT NULL",
    )
    .bind(size_bytes)
    .bind(owner)
    .bind(attempt)
    .execute(connection)
    .await?;
    if done.rows_affected() == 1 { Ok(()) } else { Err(StoreError::NotFound { what: "archive" }) }
}

/// Takes away the keys of what somebody keeps, and no longer counts it. Says whether there were any.
pub(crate) async fn destroy_keys(connection: &mut AnyConnection, owner: &str) -> Result<bool> {
    let rows = sqlx::query(
        "UPDATE archives SET state = 'deleting', wrapped_key = NULL WHERE owner = $1 AND state <> 'deleting' \
         RETURNING tenant_id, size_bytes",
    )
    .bind(owner)
    .fetch_all(&mut *connection)
    .await?;
    for row in &rows {
        let (tenant, size): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        if size > 0 {
            artifacts::count(connection, &tenant, -size, None).await?;
        }
    }
    Ok(!rows.is_empty())
}

/// What writers whose name begins so had not finished is nobody's, but for one.
pub(crate) async fn abandon_of(connection: &mut AnyConnection, begins: &str, but: &str) -> Result<()> {
    let rows = sqlx::query("SELECT owner, attempt, writer FROM archives WHERE state = 'writing'")
        .fetch_all(&mut *connection)
        .await?;
    for row in rows {
        let (owner, attempt, writer): (String, String, String) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if writer.starts_with(begins) && writer != but {
            let text = "UPDATE archives SET state = 'deleting', wrapped_key = NULL WHERE owner = $1 AND attempt = $2";
            sqlx::query(text).bind(owner).bind(attempt).execute(&mut *connection).await?;
        }
    }
    Ok(())
}
