//! How the one task that writes (`cofferdam-turns`) uses a database: its transactions, and what its failures are.

use crate::counts::Told;
use crate::engine::{Engine, silent};
use crate::{Result, StoreError};
use cofferdam_turns::Database;
use sqlx::{AnyConnection, Connection, Executor};
use std::future::Future;
use std::time::Duration;

/// What a write does: statements on the transaction's connection.
pub(crate) trait Act<T>: Send {
    fn act<'c>(self, connection: &'c mut AnyConnection) -> impl Future<Output = Result<T>> + Send + 'c
    where
        Self: 'c;
}

struct Statements<A>(A);

impl<T, A: Act<T>> cofferdam_turns::Act<Written, T> for Statements<A> {
    fn act<'c>(self, connection: &'c mut AnyConnection) -> impl Future<Output = Result<T>> + Send + 'c
    where
        Self: 'c,
    {
        self.0.act(connection)
    }
}

/// The way to the task that writes.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    inner: cofferdam_turns::Writer<Written>,
}

impl Writer {
    pub(crate) fn start(engine: Engine, connection: AnyConnection, told: Told) -> Self {
        let (inner, task) = cofferdam_turns::Writer::new(Written { engine, told }, connection);
        tokio::spawn(task);
        Self { inner }
    }

    /// Does something in a transaction, and returns when that is on the disk.
    pub(crate) async fn write<T: Send + 'static>(&self, act: impl Act<T> + 'static) -> Result<T> {
        self.inner.write(Statements(act)).await
    }

    pub(crate) async fn stop(&self) {
        self.inner.stop().await;
    }
}

/// What is written to.
#[derive(Debug)]
struct Written {
    engine: Engine,
    told: Told,
}

async fn execute(connection: &mut AnyConnection, text: &'static str) -> Result<()> {
    connection.execute(text).await?;
    Ok(())
}

impl Database for Written {
    type Connection = AnyConnection;
    type Error = StoreError;

    /// A server may have been restarted; a file is where it was, and asking would take as long as a statement.
    async fn usable(&self, connection: Option<AnyConnection>) -> Result<AnyConnection> {
        if let Some(mut connection) = connection
            && (!self.engine.kind().may_restart() || connection.ping().await.is_ok())
        {
            return Ok(connection);
        }
        self.engine.connect().await
    }

    async fn begin(&self, connection: &mut AnyConnection) -> Result<()> {
        execute(connection, self.engine.kind().begin()).await
    }

    async fn mark(&self, connection: &mut AnyConnection) -> Result<()> {
        execute(connection, "SAVEPOINT one").await
    }

    async fn keep(&self, connection: &mut AnyConnection) -> Result<()> {
        execute(connection, "RELEASE SAVEPOINT one").await
    }

    async fn undo(&self, connection: &mut AnyConnection) -> Result<()> {
        execute(connection, "ROLLBACK TO SAVEPOINT one; RELEASE SAVEPOINT one").await
    }

    async fn commit(&self, connection: &mut AnyConnection) -> Result<()> {
        execute(connection, "COMMIT").await
    }

    async fn roll_back(&self, connection: &mut AnyConnection) -> Result<()> {
        execute(connection, "ROLLBACK").await
    }

    async fn close(&self, connection: AnyConnection) {
        let _ = connection.close().await;
    }

    fn patience(&self) -> Duration {
        self.engine.patience().write
    }

    fn silent(&self, time: Duration) -> StoreError {
        silent(time)
    }

    fn closed() -> StoreError {
        StoreError::Failed("the store is closed".to_owned())
    }

    fn never_begun() -> StoreError {
        StoreError::Failed("the write was never begun".to_owned())
    }

    fn is_failure(error: &StoreError) -> bool {
        matches!(error, StoreError::Failed(_))
    }

    fn tell(&self, writes: usize, time: Duration, is_committed: bool, has_failed: bool) {
        self.told.tell(writes, time, is_committed, has_failed);
    }
}
