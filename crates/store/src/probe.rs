//! Whether the database can be read and written, found out by doing it. This is for those who watch over a store:
//! whoever wants something done just asks, and hears when it fails.

use crate::engine::Engine;
use crate::{Counts, Millis, Store, StoreError};
use sqlx::{AnyConnection, Connection, Executor};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A database that takes longer is as good as away.
const PATIENCE: Duration = Duration::from_secs(3);

/// It lies in a table, so that it cannot be answered without the database.
const READ: &str = "SELECT MAX(version) FROM schema_version";

/// So much is written: a disk that is full often has room for a few bytes more.
const PROBE_BYTES: usize = 64 << 10;

/// What a probe found. The text is what the database said, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    Sound,
    Unreachable(String),
    /// It can be read, and writing fails for lack of room.
    Full(String),
    /// It can be read, and writing fails for another reason.
    ReadOnly(String),
}

impl Store {
    /// Reads something that lies in the database.
    pub async fn probe_reading(&self) -> Probe {
        let read = self.engine.fetch_optional(sqlx::query(READ));
        if let Ok(Ok(_)) = tokio::time::timeout(PATIENCE, read).await {
            return Probe::Sound;
        }
        // Perhaps others only held all the connections for that long: one of its own tells.
        let own = async {
            let mut connection = self.engine.connect().await?;
            sqlx::query(READ).fetch_one(&mut connection).await?;
            let _ = connection.close().await;
            Ok::<_, StoreError>(())
        };
        match tokio::time::timeout(PATIENCE, own).await {
            Ok(Ok(())) => Probe::Sound,
            Ok(Err(error)) => Probe::Unreachable(error.to_string()),
            Err(_) => Probe::Unreachable("it does not answer".to_owned()),
        }
    }

    /// Reads and writes, on a connection of its own.
    pub async fn probe_writing(&self, now: Millis) -> Probe {
        let read = self.probe_reading().await;
        if read != Probe::Sound {
            return read;
        }
        match tokio::time::timeout(PATIENCE, write(&self.engine, now)).await {
            Ok(Ok(())) => Probe::Sound,
            Ok(Err(Failure::Connect(text))) => Probe::Unreachable(text),
            Ok(Err(Failure::Write(error))) => classify(&error),
            Err(_) => Probe::ReadOnly("a write does not end".to_owned()),
        }
    }

    /// Changes with each commit of this process.
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.told.committed.subscribe()
    }

    /// Changes when something could not be written.
    pub fn failures(&self) -> watch::Receiver<u64> {
        self.told.failed.subscribe()
    }

    pub fn counts(&self) -> &Arc<Counts> {
        &self.told.counts
    }
}

enum Failure {
    Connect(String),
    Write(sqlx::Error),
}

async fn write(engine: &Engine, now: Millis) -> Result<(), Failure> {
    let mut connection = engine.connect().await.map_err(|error| Failure::Connect(error.to_string()))?;
    let written = write_one(&mut connection, engine.kind().begin(), now).await;
    let _ = connection.close().await;
    written.map_err(Failure::Write)
}

async fn write_one(connection: &mut AnyConnection, begin: &'static str, now: Millis) -> sqlx::Result<()> {
    connection.execute(begin).await?;
    sqlx::query(
        "INSERT INTO probes (id, at_ms, bytes) VALUES (1, $1, $2) \
         ON CONFLICT (id) DO UPDATE SET at_ms = excluded.at_ms, bytes = excluded.bytes",
    )
    .bind(now)
    .bind(vec![0x5a; PROBE_BYTES])
    .execute(&mut *connection)
    .await?;
    // What it proved is proved; the room is others'.
    sqlx::query("DELETE FROM probes").execute(&mut *connection).await?;
    connection.execute("COMMIT").await?;
    Ok(())
}

/// By the codes of SQLite and PostgreSQL, none of which the other has.
fn classify(error: &sqlx::Error) -> Probe {
    /// Full; and shared memory, a file beside the database, that cannot grow.
    const FULL: [&str; 3] = ["13", "4874", "53100"];
    let text = error.to_string();
    let code = error.as_database_error().and_then(|error| error.code().map(|code| code.into_owned()));
    match code {
        Some(code) if FULL.contains(&code.as_str()) => Probe::Full(text),
        Some(_) => Probe::ReadOnly(text),
        None => Probe::Unreachable(text),
    }
}
