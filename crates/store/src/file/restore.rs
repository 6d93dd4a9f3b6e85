//! A store from a backup.

use super::{FILES, KeptFile, alone, beside, bytes, connect, failed, rename, settle};
use crate::{Checked, Location, Millis, Result, Settled, Store, StoreError, migrate};
use sqlx::{AnyConnection, Connection, Executor, Row};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What came of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    pub checked: Checked,
    pub settled: Settled,
    pub bytes: u64,
    /// Where the store lies now that was there before.
    pub before: Option<PathBuf>,
    /// What belongs beside the store. The caller puts it there.
    pub files: Vec<KeptFile>,
}

/// Puts what is in the backup `from` to `to`, where no store may be unless `replaces`. What was there is not deleted.
/// What ran or waited when the backup was made is settled first: see [`Store::settle_restored`].
pub async fn restore(
    from: &Path,
    to: &Path,
    replaces: bool,
    keeps_queued: bool,
    now: Millis,
) -> Result<Restored> {
    if to.exists() && !replaces {
        return Err(StoreError::Failed(format!("there is a store at {} already", to.display())));
    }
    let partial = beside(to, ".restoring");
    let done = unpack(from, &partial, keeps_queued, now).await;
    if done.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    let (files, checked, settled) = done?;
    let before = if to.exists() { Some(set_aside(to, now).await?) } else { None };
    rename(&partial, to)?;
    Ok(Restored { checked, settled, bytes: bytes(to)?, before, files })
}

async fn unpack(
    from: &Path,
    to: &Path,
    keeps_queued: bool,
    now: Millis,
) -> Result<(Vec<KeptFile>, Checked, Settled)> {
    copy(from, to)?;
    let mut copied = connect(to).await?;
    let files = take_files(&mut copied, from).await?;
    migrate::check(&mut copied).await?;
    copied.close().await?;
    let store = Store::open(&Location::Sqlite(to.to_owned())).await?;
    let done = async {
        let checked = store.check().await?;
        Ok((files, checked, store.settle_restored(keeps_queued, now).await?))
    };
    let done: Result<_> = done.await;
    store.close().await;
    let done = done?;
    settle(to).await?;
    Ok(done)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut source = std::fs::File::open(from).map_err(|error| failed("opening", from, &error))?;
    let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to);
    let mut target = made.map_err(|error| failed("making", to, &error))?;
    std::io::copy(&mut source, &mut target).map_err(|error| failed("writing", to, &error))?;
    Ok(())
}

/// The small files out of a copy, which is a store again without them.
async fn take_files(connection: &mut AnyConnection, from: &Path) -> Result<Vec<KeptFile>> {
    let text = format!("SELECT path, mode, bytes FROM {FILES} ORDER BY path");
    let rows = sqlx::query(sqlx::AssertSqlSafe(text)).fetch_all(&mut *connection).await.map_err(|error| {
        StoreError::Unreadable(format!("{} is not a whole backup: {error}", from.display()))
    })?;
    let read = |row: &sqlx::any::AnyRow| -> Result<KeptFile> {
        let mode: i64 = row.try_get(1)?;
        let mode =
            u32::try_from(mode).map_err(|_| StoreError::Unreadable(format!("a file of mode {mode}")))?;
        Ok(KeptFile { path: row.try_get(0)?, mode, bytes: row.try_get(2)? })
    };
    let files = rows.iter().map(read).collect();
    connection.execute(sqlx::AssertSqlSafe(format!("DROP TABLE {FILES}"))).await?;
    files
}

/// Moves a store out of the way, if nobody has it open.
async fn set_aside(path: &Path, now: Millis) -> Result<PathBuf> {
    let mut connection = connect(path).await?;
    alone(&mut connection, path).await?;
    connection.close().await?;
    let aside = beside(path, &format!(".before-{now}"));
    rename(path, &aside)?;
    Ok(aside)
}
