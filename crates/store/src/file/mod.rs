//! A store that is a file, as a file: copies of it, and its size. A server's database has tools of its own for that.

mod backup;
mod compact;
mod restore;

pub use backup::{Backup, KeptFile, back_up};
pub use compact::{Compacted, compact};
pub use restore::{Restored, restore};

use crate::engine::existing_address;
use crate::{Result, StoreError};
use sqlx::any::{AnyConnectOptions, install_default_drivers};
use sqlx::{AnyConnection, ConnectOptions, Connection, Executor, Row};
use std::fs::File;
use std::path::Path;
use std::str::FromStr;

/// The table in a copy that has the small files which belong to it.
const FILES: &str = "backup_files";

/// A connection to a file that is there. Nothing in it is changed by that.
async fn connect(path: &Path) -> Result<AnyConnection> {
    install_default_drivers();
    if !path.is_file() {
        return Err(StoreError::Failed(format!("there is no store at {}", path.display())));
    }
    let options = AnyConnectOptions::from_str(&existing_address(path)?)?.disable_statement_logging();
    let mut connection = options.connect().await?;
    connection.execute("PRAGMA busy_timeout = 10000").await?;
    Ok(connection)
}

/// Takes a file for oneself: fails while anybody else has it open. Afterwards it is one file, without a log beside it.
async fn alone(connection: &mut AnyConnection, path: &Path) -> Result<()> {
    let taken = sqlx::query("PRAGMA journal_mode = DELETE").fetch_one(connection).await;
    let mode = taken.and_then(|row| row.try_get::<String, _>(0));
    if mode.is_ok_and(|mode| mode == "delete") {
        return Ok(());
    }
    Err(StoreError::Failed(format!("{} is in use; stop the server first", path.display())))
}

/// Lets go of a file, so that it is on the disk and has nothing beside it.
async fn settle(path: &Path) -> Result<()> {
    let mut connection = connect(path).await?;
    alone(&mut connection, path).await?;
    connection.close().await?;
    synced(path)
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Failed(format!("{what} {} failed: {error}", path.display()))
}

fn synced(path: &Path) -> Result<()> {
    let sync = File::open(path).and_then(|file| file.sync_all());
    sync.map_err(|error| failed("writing", path, &error))
}

/// Gives a finished file its name, for good.
fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).map_err(|error| failed("renaming", from, &error))?;
    match to.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => synced(folder),
        None => Ok(()),
    }
}

/// The size of a file.
fn bytes(path: &Path) -> Result<u64> {
    Ok(std::fs::metadata(path).map_err(|error| failed("reading", path, &error))?.len())
}

/// A name beside another, for what is not finished.
fn beside(path: &Path, ending: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
