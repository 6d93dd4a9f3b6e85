//! A database of named requests in memory. What is committed outlives its connections, everything else goes with them.
//! Others run at every step of it, as they do while a real one is waited for.

use cofferdam_turns::{Act, Database};
use shuttle::future::yield_now;
use shuttle::rand::{Rng, thread_rng};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// By idempotency key: the body, and the job that was made of it.
pub(crate) type Jobs = BTreeMap<&'static str, (u32, u32)>;

#[derive(Debug, Clone, Default)]
pub(crate) struct Disk {
    committed: Arc<Mutex<Jobs>>,
    /// Whether some commits fail.
    fails: bool,
}

impl Disk {
    pub(crate) fn failing() -> Self {
        Self { fails: true, ..Self::default() }
    }

    pub(crate) fn jobs(&self) -> Jobs {
        self.committed.lock().expect("a lock").clone()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Connection {
    open: Option<Jobs>,
    mark: Option<Jobs>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    Failed,
    Refused,
    Gone,
}

type Outcome = Result<(), Wrong>;

impl Database for Disk {
    type Connection = Connection;
    type Error = Wrong;

    async fn usable(&self, connection: Option<Connection>) -> Result<Connection, Wrong> {
        Ok(connection.unwrap_or_default())
    }

    async fn begin(&self, connection: &mut Connection) -> Outcome {
        yield_now().await;
        assert!(connection.open.is_none(), "what was begun before has ended");
        connection.open = Some(self.jobs());
        Ok(())
    }

    async fn mark(&self, connection: &mut Connection) -> Outcome {
        connection.mark = connection.open.clone();
        Ok(())
    }

    async fn keep(&self, connection: &mut Connection) -> Outcome {
        connection.mark = None;
        Ok(())
    }

    async fn undo(&self, connection: &mut Connection) -> Outcome {
        connection.open = connection.mark.take();
        Ok(())
    }

    async fn commit(&self, connection: &mut Connection) -> Outcome {
        yield_now().await;
        if self.fails && thread_rng().gen_range(0..2) == 0 {
            return Err(Wrong::Failed);
        }
        *self.committed.lock().expect("a lock") = connection.open.take().expect("it was begun");
        // It is on the disk, and nobody was told.
        yield_now().await;
        Ok(())
    }

    async fn roll_back(&self, connection: &mut Connection) -> Outcome {
        *connection = Connection::default();
        Ok(())
    }

    async fn close(&self, _: Connection) {}

    fn patience(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn silent(&self, _: Duration) -> Wrong {
        Wrong::Failed
    }

    fn closed() -> Wrong {
        Wrong::Gone
    }

    fn never_begun() -> Wrong {
        Wrong::Failed
    }

    fn is_failure(error: &Wrong) -> bool {
        *error == Wrong::Failed
    }

    fn tell(&self, _: usize, _: Duration, _: bool, _: bool) {}
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    New(u32),
    Before(u32),
    OtherBody,
}

/// A request for a job with a key, as the store's own: look, and make it unless it is there.
pub(crate) struct Take {
    pub(crate) key: &'static str,
    pub(crate) body: u32,
    pub(crate) id: u32,
}

impl Act<Disk, Taken> for Take {
    fn act<'c>(self, connection: &'c mut Connection) -> impl Future<Output = Result<Taken, Wrong>> + Send + 'c
    where
        Self: 'c,
    {
        async move {
            let jobs = connection.open.as_mut().expect("a transaction");
            yield_now().await;
            match jobs.get(self.key) {
                Some((body, id)) if *body == self.body => Ok(Taken::Before(*id)),
                Some(_) => Ok(Taken::OtherBody),
                None => {
                    jobs.insert(self.key, (self.body, self.id));
                    Ok(Taken::New(self.id))
                }
            }
        }
    }
}

/// A request that writes and is refused: what it wrote must not stay.
pub(crate) struct Refused;

impl Act<Disk, ()> for Refused {
    fn act<'c>(self, connection: &'c mut Connection) -> impl Future<Output = Result<(), Wrong>> + Send + 'c
    where
        Self: 'c,
    {
        async move {
            let jobs = connection.open.as_mut().expect("a transaction");
            jobs.insert("refused", (0, 0));
            yield_now().await;
            Err(Wrong::Refused)
        }
    }
}
