//! The one task that writes. What has come in while the last commit was on its way to the disk is committed next,
//! all at once: a commit costs the same for one and for a hundred.

use crate::counts::Told;
use crate::engine::{Engine, Kind, silent};
use crate::{Result, StoreError};
use sqlx::{AnyConnection, Connection, Executor};
use std::future::Future;
use std::pin::Pin;
use tokio::sync::{mpsc, oneshot};

/// More in one transaction would only make the first of them wait.
const BATCH: usize = 256;

/// Waiting writes; whoever comes next waits for room.
const QUEUE: usize = 1024;

type Done<'c> = Pin<Box<dyn Future<Output = ()> + Send + 'c>>;

/// One write: what it does inside the transaction, and how its caller hears of it after the commit.
trait Write: Send {
    fn apply<'c>(&'c mut self, connection: &'c mut AnyConnection) -> Done<'c>;
    /// Whether what it did may stay.
    fn is_sound(&self) -> bool;
    /// Whether the database, and not a guard, refused it.
    fn has_failed(&self) -> bool;
    fn answer(self: Box<Self>, commit: Result<()>);
}

struct Task<T, F> {
    act: Option<F>,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

/// What a write does: statements on the transaction's connection.
pub(crate) trait Act<T>: Send {
    fn act<'c>(self, connection: &'c mut AnyConnection) -> impl Future<Output = Result<T>> + Send + 'c
    where
        Self: 'c;
}

impl<T: Send, F: Act<T>> Write for Task<T, F> {
    fn apply<'c>(&'c mut self, connection: &'c mut AnyConnection) -> Done<'c> {
        Box::pin(async move {
            if let Some(act) = self.act.take() {
                self.result = Some(act.act(connection).await);
            }
        })
    }

    fn is_sound(&self) -> bool {
        !matches!(self.result, Some(Err(_)))
    }

    fn has_failed(&self) -> bool {
        matches!(self.result, Some(Err(StoreError::Failed(_))))
    }

    fn answer(self: Box<Self>, commit: Result<()>) {
        let Self { result, reply, .. } = *self;
        let answer = match (commit, result) {
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(StoreError::Failed("the write was never begun".to_owned())),
            (Err(_), Some(Err(own @ StoreError::Failed(_)))) => Err(own),
            // Also for what was refused: that was for what it saw of others, and those are undone as well.
            (Err(error), _) => Err(error),
        };
        // Whoever asked may have gone; what was written stays.
        let _ = reply.send(answer);
    }
}

/// The way to the task that writes.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Message>,
}

enum Message {
    Write(Box<dyn Write>),
    Stop(oneshot::Sender<()>),
}

impl Writer {
    pub(crate) fn start(engine: Engine, connection: AnyConnection, told: Told) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(run(engine, connection, waiting, told));
        Self { queue }
    }

    /// Does something in a transaction, and returns when that is on the disk.
    pub(crate) async fn write<T: Send + 'static>(&self, act: impl Act<T> + 'static) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let task = Task { act: Some(act), result: None, reply };
        let closed = || StoreError::Failed("the store is closed".to_owned());
        self.queue.send(Message::Write(Box::new(task))).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    pub(crate) async fn stop(&self) {
        let (reply, answer) = oneshot::channel();
        if self.queue.send(Message::Stop(reply)).await.is_ok() {
            let _ = answer.await;
        }
    }
}

async fn run(engine: Engine, connection: AnyConnection, mut waiting: mpsc::Receiver<Message>, told: Told) {
    let mut connection = Some(connection);
    let mut messages = Vec::with_capacity(BATCH);
    while waiting.recv_many(&mut messages, BATCH).await > 0 {
        let mut batch = Vec::with_capacity(messages.len());
        let mut stop = None;
        for message in messages.drain(..) {
            match message {
                Message::Write(write) => batch.push(write),
                Message::Stop(reply) => stop = Some(reply),
            }
        }
        if !batch.is_empty() {
            connection = commit(&engine, connection, batch, &told).await;
        }
        if let Some(reply) = stop {
            if let Some(connection) = connection {
                let _ = connection.close().await;
            }
            let _ = reply.send(());
            return;
        }
    }
}

/// Commits a batch, and answers each of it. Returns the connection, unless something is wrong with it.
async fn commit(
    engine: &Engine,
    connection: Option<AnyConnection>,
    mut batch: Vec<Box<dyn Write>>,
    told: &Told,
) -> Option<AnyConnection> {
    let (size, began) = (batch.len(), std::time::Instant::now());
    let time = engine.patience().write;
    let attempt = tokio::time::timeout(time, attempt(engine, connection, &mut batch)).await;
    // The connection of one that was given up is gone with it.
    let (committed, connection) = attempt.unwrap_or_else(|_| (Err(silent(time)), None));
    let has_failed = committed.is_err() || batch.iter().any(|write| write.has_failed());
    // Before the answers: whoever has one finds it counted.
    told.tell(size, began.elapsed(), committed.is_ok(), has_failed);
    for write in batch {
        write.answer(committed.clone());
    }
    connection
}

async fn attempt(
    engine: &Engine,
    connection: Option<AnyConnection>,
    batch: &mut [Box<dyn Write>],
) -> (Result<()>, Option<AnyConnection>) {
    match usable(engine, connection).await {
        Ok(mut connection) => {
            let committed = transaction(engine.kind(), &mut connection, batch).await;
            // What is left of a batch that failed must not be committed with the next.
            let is_clean = committed.is_ok() || connection.execute("ROLLBACK").await.is_ok();
            (committed, is_clean.then_some(connection))
        }
        Err(error) => (Err(error), None),
    }
}

/// The connection if it still answers, otherwise a new one: the server may have been restarted.
async fn usable(engine: &Engine, connection: Option<AnyConnection>) -> Result<AnyConnection> {
    if let Some(mut connection) = connection
        && connection.ping().await.is_ok()
    {
        return Ok(connection);
    }
    engine.connect().await
}

async fn transaction(kind: Kind, connection: &mut AnyConnection, batch: &mut [Box<dyn Write>]) -> Result<()> {
    connection.execute(kind.begin()).await?;
    // A write that fails must not take others down that only happened to come at the same time.
    let is_alone = batch.len() == 1;
    for write in batch.iter_mut() {
        if !is_alone {
            connection.execute("SAVEPOINT one").await?;
        }
        write.apply(connection).await;
        match (write.is_sound(), is_alone) {
            (true, true) => {}
            (true, false) => {
                connection.execute("RELEASE SAVEPOINT one").await?;
            }
            (false, true) => {
                connection.execute("ROLLBACK").await?;
                return Ok(());
            }
            (false, false) => {
                connection.execute("ROLLBACK TO SAVEPOINT one; RELEASE SAVEPOINT one").await?;
            }
        }
    }
    connection.execute("COMMIT").await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::JobState;

    struct Nothing;

    impl Act<()> for Nothing {
        async fn act<'c>(self, _: &'c mut AnyConnection) -> Result<()>
        where
            Self: 'c,
        {
            Ok(())
        }
    }

    fn heard(result: Option<Result<()>>, commit: Result<()>) -> Result<()> {
        let (reply, mut answer) = oneshot::channel();
        Box::new(Task { act: Some(Nothing), result, reply }).answer(commit);
        answer.try_recv().unwrap()
    }

    #[test]
    fn nobody_believes_what_was_rolled_back() {
        let refusal = || Err(StoreError::WrongState { state: JobState::Lost, wanted: JobState::Failed });
        let failed = || Err(StoreError::Failed("the disk is full".to_owned()));
        assert!(heard(Some(Ok(())), Ok(())).is_ok());
        assert!(matches!(heard(Some(refusal()), Ok(())), Err(StoreError::WrongState { .. })));
        for result in [Some(Ok(())), Some(refusal()), None] {
            let answer = heard(result, failed());
            assert!(matches!(&answer, Err(StoreError::Failed(text)) if text.contains("full")), "{answer:?}");
        }
        let own = heard(Some(Err(StoreError::Failed("own".to_owned()))), failed());
        assert!(matches!(&own, Err(StoreError::Failed(text)) if text == "own"), "{own:?}");
        assert!(heard(None, Ok(())).is_err());
    }
}
