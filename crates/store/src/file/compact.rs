//! A file that is made anew, without holes. Once for those that were made before space could be given back in use.

use super::{alone, bytes, connect};
use crate::{Result, migrate};
use sqlx::{Connection, Executor};
use std::path::Path;

/// The sizes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    pub bytes_before: u64,
    pub bytes_after: u64,
}

/// Writes a store anew, and has it give back what it does not need from then on. Nobody else may have it open, and the
/// disk needs room for a second one meanwhile.
pub async fn compact(path: &Path) -> Result<Compacted> {
    let mut connection = connect(path).await?;
    migrate::check(&mut connection).await?;
    alone(&mut connection, path).await?;
    let bytes_before = bytes(path)?;
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL; VACUUM; PRAGMA journal_mode = WAL").await?;
    connection.close().await?;
    Ok(Compacted { bytes_before, bytes_after: bytes(path)? })
}
