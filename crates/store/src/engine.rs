//! The two databases, and what is different about them. Nothing outside this file and the migrations asks which
//! one it is.

use crate::{Result, StoreError};
use sqlx::any::{AnyConnectOptions, AnyPoolOptions, install_default_drivers};
use sqlx::{AnyConnection, AnyPool, ConnectOptions, Executor};
use std::path::PathBuf;
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
            Self::Postgres => "SET synchronous_commit = on",
        }
    }

    /// Begins a transaction that will write. SQLite is told at once, so that two writers wait for each other
    /// instead of failing half-way.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
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

impl Engine {
    pub(crate) async fn open(location: &Location) -> Result<Self> {
        install_default_drivers();
        let (kind, address) = match location {
            Location::Sqlite(path) => (Kind::Sqlite, format!("sqlite://{}?mode=rwc", path.display())),
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
