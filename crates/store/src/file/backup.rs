//! A copy of a store that is in use, in one file, looked through before it has its name.

use super::{FILES, beside, bytes, connect, failed, rename, settle};
use crate::{Checked, Location, Result, Store, StoreError, migrate};
use sqlx::{AnyConnection, Connection, Executor};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A small file that belongs to a store, such as a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile {
    /// From the folder of the store, with slashes.
    pub path: String,
    pub mode: u32,
    pub bytes: Vec<u8>,
}

/// What a backup has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    pub checked: Checked,
    pub bytes: u64,
}

/// Copies the store at `from` as it is at one moment, with some files, to `to`. Whoever uses the store goes on.
pub async fn back_up(from: &Path, to: &Path, files: &[KeptFile]) -> Result<Backup> {
    if to.exists() {
        let text = format!("{} is there already; a backup replaces nothing", to.display());
        return Err(StoreError::Failed(text));
    }
    let mut source = connect(from).await?;
    migrate::check_same(&mut source).await?;
    let partial = beside(to, ".partial");
    let done = copy(&mut source, &partial, files).await;
    let _ = source.close().await;
    let checked = match done {
        Ok(()) => check(&partial).await,
        Err(error) => Err(error),
    };
    if checked.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    let checked = checked?;
    settle(&partial).await?;
    rename(&partial, to)?;
    Ok(Backup { checked, bytes: bytes(to)? })
}

async fn copy(source: &mut AnyConnection, to: &Path, files: &[KeptFile]) -> Result<()> {
    // Its owner's alone from the beginning: it has code, output and keys.
    let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to);
    made.map_err(|error| failed("making", to, &error))?;
    let name = to.to_str().ok_or_else(|| {
        StoreError::Failed(format!("{} is not UTF-8, which the name of a backup must be", to.display()))
    })?;
    sqlx::query("VACUUM INTO $1").bind(name).execute(source).await?;
    let mut copy = connect(to).await?;
    let table =
        format!("CREATE TABLE {FILES} (path TEXT PRIMARY KEY, mode BIGINT NOT NULL, bytes BLOB NOT NULL)");
    copy.execute(sqlx::AssertSqlSafe(table)).await?;
    for file in files {
        let text = format!("INSERT INTO {FILES} (path, mode, bytes) VALUES ($1, $2, $3)");
        sqlx::query(sqlx::AssertSqlSafe(text))
            .bind(file.path.as_str())
            .bind(i64::from(file.mode))
            .bind(file.bytes.as_slice())
            .execute(&mut copy)
            .await?;
    }
    Ok(copy.close().await?)
}

/// Opens a copy as a server would, and looks at everything.
async fn check(path: &Path) -> Result<Checked> {
    let store = Store::open(&Location::Sqlite(path.to_owned())).await?;
    let checked = store.check().await;
    store.close().await;
    checked
}
