//! The one task that writes. What has come in while the last commit was on its way to the disk is committed next,
//! all at once: a commit costs the same for one and for a hundred.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// More in one transaction would only make the first of them wait.
const BATCH: usize = 256;

/// Waiting writes; whoever comes next waits for room.
const QUEUE: usize = 1024;

type Done<'c> = Pin<Box<dyn Future<Output = ()> + Send + 'c>>;

type Outcome<D> = Result<(), <D as Database>::Error>;

/// What is written to: transactions, and marks inside of them to which a part can be undone.
pub trait Database: Send + Sync + 'static {
    type Connection: Send + 'static;
    type Error: Clone + Send + 'static;

    /// The connection if it still answers, otherwise a new one.
    fn usable(
        &self,
        connection: Option<Self::Connection>,
    ) -> impl Future<Output = Result<Self::Connection, Self::Error>> + Send;
    fn begin(&self, connection: &mut Self::Connection) -> impl Future<Output = Outcome<Self>> + Send;
    /// Begins a part that can be undone by itself.
    fn mark(&self, connection: &mut Self::Connection) -> impl Future<Output = Outcome<Self>> + Send;
    /// Ends that part, which stays.
    fn keep(&self, connection: &mut Self::Connection) -> impl Future<Output = Outcome<Self>> + Send;
    /// Ends that part, and undoes it.
    fn undo(&self, connection: &mut Self::Connection) -> impl Future<Output = Outcome<Self>> + Send;
    fn commit(&self, connection: &mut Self::Connection) -> impl Future<Output = Outcome<Self>> + Send;
    fn roll_back(&self, connection: &mut Self::Connection) -> impl Future<Output = Outcome<Self>> + Send;
    fn close(&self, connection: Self::Connection) -> impl Future<Output = ()> + Send;

    /// A commit that takes longer is given up.
    fn patience(&self) -> Duration;
    fn silent(&self, time: Duration) -> Self::Error;
    fn closed() -> Self::Error;
    fn never_begun() -> Self::Error;
    /// Whether the database, and not a guard, said this.
    fn is_failure(error: &Self::Error) -> bool;
    /// Hears of each batch, before whoever wrote it does.
    fn tell(&self, writes: usize, time: Duration, is_committed: bool, has_failed: bool);
}

/// What a write does: statements on the transaction's connection.
pub trait Act<D: Database, T>: Send {
    fn act<'c>(
        self,
        connection: &'c mut D::Connection,
    ) -> impl Future<Output = Result<T, D::Error>> + Send + 'c
    where
        Self: 'c;
}

/// One write: what it does inside the transaction, and how its caller hears of it after the commit.
trait Write<D: Database>: Send {
    fn apply<'c>(&'c mut self, connection: &'c mut D::Connection) -> Done<'c>;
    /// Whether what it did may stay.
    fn is_sound(&self) -> bool;
    /// Whether the database, and not a guard, refused it.
    fn has_failed(&self) -> bool;
    fn answer(self: Box<Self>, commit: Outcome<D>);
}

struct Task<D: Database, T, F> {
    act: Option<F>,
    result: Option<Result<T, D::Error>>,
    reply: oneshot::Sender<Result<T, D::Error>>,
}

impl<D: Database, T: Send, F: Act<D, T>> Write<D> for Task<D, T, F> {
    fn apply<'c>(&'c mut self, connection: &'c mut D::Connection) -> Done<'c> {
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
        matches!(&self.result, Some(Err(error)) if D::is_failure(error))
    }

    fn answer(self: Box<Self>, commit: Outcome<D>) {
        let Self { result, reply, .. } = *self;
        let answer = match (commit, result) {
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(D::never_begun()),
            (Err(_), Some(Err(own))) if D::is_failure(&own) => Err(own),
            // Also for what was refused: that was for what it saw of others, and those are undone as well.
            (Err(error), _) => Err(error),
        };
        // Whoever asked may have gone; what was written stays.
        let _ = reply.send(answer);
    }
}

/// The way to the task that writes.
#[derive(Debug)]
pub struct Writer<D: Database> {
    queue: mpsc::Sender<Message<D>>,
}

impl<D: Database> Clone for Writer<D> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone() }
    }
}

enum Message<D: Database> {
    Write(Box<dyn Write<D>>),
    Stop(oneshot::Sender<()>),
}

impl<D: Database> Writer<D> {
    /// A writer, and its task, which somebody has to run.
    pub fn new(database: D, connection: D::Connection) -> (Self, impl Future<Output = ()> + Send) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        (Self { queue }, run(database, connection, waiting))
    }

    /// Does something in a transaction, and returns when that is on the disk.
    pub async fn write<T: Send + 'static>(&self, act: impl Act<D, T> + 'static) -> Result<T, D::Error> {
        let (reply, answer) = oneshot::channel();
        let task = Task { act: Some(act), result: None, reply };
        self.queue.send(Message::Write(Box::new(task))).await.map_err(|_| D::closed())?;
        answer.await.map_err(|_| D::closed())?
    }

    pub async fn stop(&self) {
        let (reply, answer) = oneshot::channel();
        if self.queue.send(Message::Stop(reply)).await.is_ok() {
            let _ = answer.await;
        }
    }
}

async fn run<D: Database>(database: D, connection: D::Connection, mut waiting: mpsc::Receiver<Message<D>>) {
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
            connection = commit(&database, connection, batch).await;
        }
        if let Some(reply) = stop {
            if let Some(connection) = connection {
                database.close(connection).await;
            }
            let _ = reply.send(());
            return;
        }
    }
}

/// Commits a batch, and answers each of it. Returns the connection, unless something is wrong with it.
async fn commit<D: Database>(
    database: &D,
    connection: Option<D::Connection>,
    mut batch: Vec<Box<dyn Write<D>>>,
) -> Option<D::Connection> {
    let (size, began) = (batch.len(), Instant::now());
    let time = database.patience();
    let attempt = tokio::time::timeout(time, attempt(database, connection, &mut batch)).await;
    // The connection of one that was given up is gone with it.
    let (committed, connection) = attempt.unwrap_or_else(|_| (Err(database.silent(time)), None));
    let has_failed = committed.is_err() || batch.iter().any(|write| write.has_failed());
    // Before the answers: whoever has one finds it counted.
    database.tell(size, began.elapsed(), committed.is_ok(), has_failed);
    for write in batch {
        write.answer(committed.clone());
    }
    connection
}

async fn attempt<D: Database>(
    database: &D,
    connection: Option<D::Connection>,
    batch: &mut [Box<dyn Write<D>>],
) -> (Outcome<D>, Option<D::Connection>) {
    match database.usable(connection).await {
        Ok(mut connection) => {
            let committed = transaction(database, &mut connection, batch).await;
            // What is left of a batch that failed must not be committed with the next.
            let is_clean = committed.is_ok() || database.roll_back(&mut connection).await.is_ok();
            (committed, is_clean.then_some(connection))
        }
        Err(error) => (Err(error), None),
    }
}

async fn transaction<D: Database>(
    database: &D,
    connection: &mut D::Connection,
    batch: &mut [Box<dyn Write<D>>],
) -> Outcome<D> {
    database.begin(connection).await?;
    // A write that fails must not take others down that only happened to come at the same time.
    let is_alone = batch.len() == 1;
    for write in batch.iter_mut() {
        if !is_alone {
            database.mark(connection).await?;
        }
        write.apply(connection).await;
        match (write.is_sound(), is_alone) {
            (true, true) => {}
            (true, false) => database.keep(connection).await?,
            (false, true) => return database.roll_back(connection).await,
            (false, false) => database.undo(connection).await?,
        }
    }
    database.commit(connection).await
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    struct Nowhere;

    #[derive(Debug, Clone, PartialEq, Eq)]
    enum Wrong {
        Refused,
        Failed(&'static str),
    }

    impl Database for Nowhere {
        type Connection = ();
        type Error = Wrong;

        async fn usable(&self, _: Option<()>) -> Result<(), Wrong> {
            Ok(())
        }
        async fn begin(&self, (): &mut ()) -> Result<(), Wrong> {
            Ok(())
        }
        async fn mark(&self, (): &mut ()) -> Result<(), Wrong> {
            Ok(())
        }
        async fn keep(&self, (): &mut ()) -> Result<(), Wrong> {
            Ok(())
        }
        async fn undo(&self, (): &mut ()) -> Result<(), Wrong> {
            Ok(())
        }
        async fn commit(&self, (): &mut ()) -> Result<(), Wrong> {
            Ok(())
        }
        async fn roll_back(&self, (): &mut ()) -> Result<(), Wrong> {
            Ok(())
        }
        async fn close(&self, (): ()) {}
        fn patience(&self) -> Duration {
            Duration::from_secs(1)
        }
        fn silent(&self, _: Duration) -> Wrong {
            Wrong::Failed("silent")
        }
        fn closed() -> Wrong {
            Wrong::Failed("closed")
        }
        fn never_begun() -> Wrong {
            Wrong::Failed("never begun")
        }
        fn is_failure(error: &Wrong) -> bool {
            matches!(error, Wrong::Failed(_))
        }
        fn tell(&self, _: usize, _: Duration, _: bool, _: bool) {}
    }

    struct Nothing;

    impl Act<Nowhere, ()> for Nothing {
        async fn act<'c>(self, (): &'c mut ()) -> Result<(), Wrong>
        where
            Self: 'c,
        {
            Ok(())
        }
    }

    fn heard(result: Option<Result<(), Wrong>>, commit: Result<(), Wrong>) -> Result<(), Wrong> {
        let (reply, mut answer) = oneshot::channel();
        let task: Box<Task<Nowhere, (), Nothing>> = Box::new(Task { act: Some(Nothing), result, reply });
        Write::<Nowhere>::answer(task, commit);
        answer.try_recv().expect("it is told")
    }

    #[test]
    fn nobody_believes_what_was_rolled_back() {
        let failed = || Err(Wrong::Failed("the disk is full"));
        assert_eq!(heard(Some(Ok(())), Ok(())), Ok(()));
        assert_eq!(heard(Some(Err(Wrong::Refused)), Ok(())), Err(Wrong::Refused));
        for result in [Some(Ok(())), Some(Err(Wrong::Refused)), None] {
            assert_eq!(heard(result, failed()), failed());
        }
        assert_eq!(heard(Some(Err(Wrong::Failed("own"))), failed()), Err(Wrong::Failed("own")));
        assert!(heard(None, Ok(())).is_err());
    }
}
