//! The two databases, and what is different about them. Nothing outside this file and the migrations asks which
//! one it is.

use crate::{Patience, Result, StoreError};
use sqlx::any::{AnyArguments, AnyConnectOptions, AnyPoolOptions, AnyRow, install_default_drivers};
use sqlx::pool::PoolConnection;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AnyPool, ConnectOptions, Connection, Executor, Row};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

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
    patience: Patience,
}

/// Enough for requests that overlap; a read takes less than a millisecond.
const READERS: u32 = 8;

impl Kind {
    /// What every connection is told first. Full durability: a commit has reached the disk when it returns.
    fn set_up(self) -> &'static str {
        match self {
            Self::Sqlite => {
                // The patience comes first, since the next has to wait for others as well. With the last, the log of
                // changes does not stay as large as it ever was, and what is deleted is overwritten: a key that is destroyed
                // must not lie about in a page that nobody uses.
                "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                 PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 16777216; \
                 PRAGMA secure_delete = ON;"
            }
            Self::Postgres => {
                "SET synchronous_commit = on; SET lock_timeout = 10000; \
                 SET idle_in_transaction_session_timeout = 10000"
            }
        }
    }

    /// Whether a connection may be gone when it is used again: a file does not go away between two statements.
    pub(crate) fn may_restart(self) -> bool {
        self == Self::Postgres
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

    /// What a database is asked that may be new, and told before anything else if the answer is 0: a file from which
    /// something was deleted can give back its space only if it was made for that.
    fn set_up_new(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Sqlite => Some(["PRAGMA page_count", "PRAGMA auto_vacuum = INCREMENTAL"]),
            Self::Postgres => None,
        }
    }

    /// What connections that only read are told besides. A query that nobody waits for any more ends.
    fn set_up_reader(self, patience: Patience) -> Option<String> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some(format!("SET statement_timeout = {}", patience.read.as_millis())),
        }
    }

    /// The pages of a file that hold nothing, and whether they can be given back.
    pub(crate) fn space(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Sqlite => Some(["PRAGMA freelist_count", "PRAGMA auto_vacuum"]),
            Self::Postgres => None,
        }
    }

    /// What a database can be asked about its own soundness: each answers with texts, all of which must be `ok`.
    pub(crate) fn checks(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite => &["PRAGMA integrity_check", "PRAGMA foreign_key_check"],
            // It checks its references as they are written, and its pages with tools of its own.
            Self::Postgres => &[],
        }
    }

    /// Gives back half a megabyte: so much is moved within a millisecond or two.
    pub(crate) fn shrink(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => Some("PRAGMA incremental_vacuum(128)"),
            Self::Postgres => None,
        }
    }

    /// The database's own time, in milliseconds. Leases go by it, so that no two processes disagree about theirs.
    pub(crate) fn now_ms(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            Self::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        }
    }

    /// Has what was deleted leave the log of changes, and the pages that nobody uses.
    pub(crate) fn forget(self) -> &'static str {
        match self {
            Self::Sqlite => "PRAGMA wal_checkpoint(TRUNCATE)",
            Self::Postgres => "VACUUM archives, session_keys, secrets",
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

/// The address of a file that is made if it is not there.
fn sqlite_address(path: &Path) -> Result<String> {
    Ok(file_address(path)? + "?mode=rwc")
}

/// The address of a file that is there.
pub(crate) fn existing_address(path: &Path) -> Result<String> {
    Ok(file_address(path)? + "?mode=rw")
}

/// Whatever could mean something else in an address is written by its number.
fn file_address(path: &Path) -> Result<String> {
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
    Ok(address)
}

impl Engine {
    pub(crate) async fn open(location: &Location, patience: Patience) -> Result<Self> {
        install_default_drivers();
        let (kind, address) = match location {
            Location::Sqlite(path) => (Kind::Sqlite, sqlite_address(path)?),
            Location::Postgres(address) => (Kind::Postgres, address.clone()),
        };
        let options = AnyConnectOptions::from_str(&address)?.disable_statement_logging();
        let set_up = kind.set_up();
        let set_up_reader = kind.set_up_reader(patience);
        let readers = AnyPoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(patience.connect)
            .test_before_acquire(kind.may_restart())
            .after_connect(move |connection, _| {
                let set_up_reader = set_up_reader.clone();
                Box::pin(async move {
                    tell(connection, set_up, patience.connect).await?;
                    if let Some(text) = set_up_reader {
                        connection.execute(sqlx::AssertSqlSafe(text)).await?;
                    }
                    Ok(())
                })
            })
            .connect_lazy_with(options.clone());
        Ok(Self { kind, options, readers, patience })
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn patience(&self) -> Patience {
        self.patience
    }

    /// All rows of a query. Like every read, it gives up on a database that does not answer.
    pub(crate) async fn fetch_all(&self, query: Query<'_, Any, AnyArguments>) -> Result<Vec<AnyRow>> {
        let mut connection = self.reader().await?;
        let rows = tokio::time::timeout(self.patience.read, query.fetch_all(&mut *connection)).await;
        self.answered(connection, rows)
    }

    /// All rows of a query that may take as long as it takes.
    pub(crate) async fn fetch_slow(&self, query: Query<'_, Any, AnyArguments>) -> Result<Vec<AnyRow>> {
        let mut connection = self.connect().await?;
        let rows = query.fetch_all(&mut connection).await;
        let _ = connection.close().await;
        Ok(rows?)
    }

    /// The row of a query, if it has one.
    pub(crate) async fn fetch_optional(&self, query: Query<'_, Any, AnyArguments>) -> Result<Option<AnyRow>> {
        let mut connection = self.reader().await?;
        let row = tokio::time::timeout(self.patience.read, query.fetch_optional(&mut *connection)).await;
        self.answered(connection, row)
    }

    async fn reader(&self) -> Result<PoolConnection<Any>> {
        match self.readers.acquire().await {
            Err(sqlx::Error::PoolTimedOut) => Err(silent(self.patience.connect)),
            other => Ok(other?),
        }
    }

    fn answered<T>(
        &self,
        connection: PoolConnection<Any>,
        answer: std::result::Result<sqlx::Result<T>, tokio::time::error::Elapsed>,
    ) -> Result<T> {
        match answer {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                // Not back to the others: whoever got it next would wait as long.
                drop(connection.detach());
                Err(silent(self.patience.read))
            }
        }
    }

    /// A connection of one's own.
    pub(crate) async fn connect(&self) -> Result<AnyConnection> {
        let connect = async {
            let mut connection = self.options.connect().await?;
            tell(&mut connection, self.kind.set_up(), self.patience.connect).await?;
            Ok(connection)
        };
        self.in_time(connect).await
    }

    /// The first connection, to what may not be there yet.
    pub(crate) async fn connect_first(&self) -> Result<AnyConnection> {
        let connect = async {
            let mut connection = self.options.connect().await?;
            if let Some([size, set_up]) = self.kind.set_up_new()
                && sqlx::query(size).fetch_one(&mut connection).await?.try_get::<i64, _>(0)? == 0
            {
                connection.execute(set_up).await?;
            }
            tell(&mut connection, self.kind.set_up(), self.patience.connect).await?;
            Ok(connection)
        };
        self.in_time(connect).await
    }

    async fn in_time<T>(&self, connect: impl Future<Output = Result<T>>) -> Result<T> {
        let connected = tokio::time::timeout(self.patience.connect, connect).await;
        connected.unwrap_or_else(|_| Err(silent(self.patience.connect)))
    }

    pub(crate) async fn close(&self) {
        self.readers.close().await;
    }
}

/// How long another process is given that sets the same up.
const SET_UP_PAUSE: Duration = Duration::from_millis(5);

/// Tells a connection what every one is told. The first two who turn a new file into one with a log stand in each other's
/// way, and SQLite refuses one of them at once, whatever its patience: it would be waiting for who waits for it.
async fn tell(connection: &mut AnyConnection, text: &'static str, time: Duration) -> sqlx::Result<()> {
    let began = Instant::now();
    loop {
        match connection.execute(text).await {
            Err(error) if is_busy(&error) && began.elapsed() < time => {
                tokio::time::sleep(SET_UP_PAUSE).await;
            }
            other => return other.map(drop),
        }
    }
}

/// Whether SQLite says that somebody else has the file, in any of its words for that. No code of PostgreSQL is a small
/// number.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.and_then(|code| code.parse::<u32>().ok())
        .is_some_and(|code| code < 10_000 && matches!(code & 0xff, 5 | 6))
}

/// A database that said nothing for so long.
pub(crate) fn silent(time: Duration) -> StoreError {
    StoreError::Failed(format!("the database has not answered within {} ms", time.as_millis()))
}
