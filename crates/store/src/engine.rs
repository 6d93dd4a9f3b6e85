//! The two databases, and what is different about them. Nothing outside this file and the migrations asks which
//! one it is.

use crate::{Result, StoreError};
use sqlx::any::{AnyConnectOptions, AnyPoolOptions, install_default_drivers};
use sqlx::{AnyConnection, AnyPool, ConnectOptions, Executor};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A file, for one machine.
    Sqlite(PathBuf),
    /// A server, as a `postgres://` address.
    Postgres(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

#[derive(Debug, Clone)]
pub(crate) struct Engine {
    kind: Kind,
    options: AnyConnectOptions,
    readers: AnyPool,
}

/// Enough for requests that overlap; a read takes less than a millisecond.
const READERS: u32 = 8;

impl Kind {
    /// What every connection is told first. Full durability: a commit has reached the disk when it returns.
    fn set_up(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
                 PRAGMA busy_timeout = 10000; PRAGMA temp_store = MEMORY;"
            }
            Self::Postgres => {
                "SET synchronous_commit = on; SET lock_timeout = 10000; \
                 SET idle_in_transaction_session_timeout = 10000"
            }
        }
    }

    /// Begins a transaction that will write. Writers of several processes wait for each other here, instead of
    /// failing half-way: a batch holds rows of many tenants, in any order, so two at once could each wait for the
    /// other's. The number is only a name for that lock.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN; SELECT pg_advisory_xact_lock(4819037562)",
        }
    }

    /// The database's own time, in milliseconds. Leases go by it, so that no two processes disagree about theirs.
    pub(crate) fn now_ms(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            Self::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        }
    }

    /// The name of a column type that the two do not share.
    pub(crate) fn bytes_type(self) -> &'static str {
        match self {
            Self::Sqlite => "BLOB",
            Self::Postgres => "BYTEA",
        }
    }
}

/// The address of a file. Whatever could mean something else in an address is written by its number.
fn sqlite_address(path: &Path) -> Result<String> {
    let unusable = |error| StoreError::Failed(format!("{} cannot be used: {error}", path.display()));
    let path = std::path::absolute(path).map_err(unusable)?;
    let mut address = "sqlite://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => address.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => address.push(byte.into()),
            _ => address.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(address + "?mode=rwc")
}

impl Engine {
    pub(crate) async fn open(location: &Location) -> Result<Self> {
        install_default_drivers();
        let (kind, address) = match location {
            Location::Sqlite(path) => (Kind::Sqlite, sqlite_address(path)?),
            Location::Postgres(address) => (Kind::Postgres, address.clone()),
        };
        let options = AnyConnectOptions::from_str(&address)?.disable_statement_logging();
        let set_up = kind.set_up();
        let readers = AnyPoolOptions::new()
            .max_connections(READERS)
            .after_connect(move |connection, _| {
                Box::pin(async move { connection.execute(set_up).await.map(drop) })
            })
            .connect_lazy_with(options.clone());
        Ok(Self { kind, options, readers })
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn readers(&self) -> &AnyPool {
        &self.readers
    }

    /// A connection of one's own.
    pub(crate) async fn connect(&self) -> Result<AnyConnection> {
        let mut connection = self.options.connect().await.map_err(StoreError::from)?;
        connection.execute(self.kind.set_up()).await?;
        Ok(connection)
    }

    pub(crate) async fn close(&self) {
        self.readers.close().await;
    }
}
