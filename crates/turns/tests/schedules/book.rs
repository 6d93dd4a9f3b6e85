//! What the store promises of leases, in memory: each change is whole, and names the fence that it starts from. That
//! the databases keep these promises is tested where the store is. Time is a number that somebody counts up.

use shuttle::future::yield_now;
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Queued,
    Running,
    Done,
}

#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) state: State,
    pub(crate) owner: &'static str,
    pub(crate) fence: i64,
    pub(crate) lease_until: i64,
    /// The fences whose owners were told that they have ended it.
    pub(crate) ended_by: Vec<i64>,
}

pub(crate) const LEASE: i64 = 3;

/// The book of one job.
#[derive(Debug, Clone)]
pub(crate) struct Book {
    inner: Arc<Mutex<(i64, Row)>>,
}

impl Book {
    pub(crate) fn new() -> Self {
        let row = Row { state: State::Queued, owner: "", fence: 0, lease_until: 0, ended_by: Vec::new() };
        Self { inner: Arc::new(Mutex::new((0, row))) }
    }

    /// One whole change, which others come before and after.
    async fn change<T>(&self, change: impl FnOnce(i64, &mut Row) -> T) -> T {
        yield_now().await;
        let done = {
            let mut inner = self.inner.lock().expect("a lock");
            let now = inner.0;
            change(now, &mut inner.1)
        };
        yield_now().await;
        done
    }

    pub(crate) fn row(&self) -> Row {
        self.inner.lock().expect("a lock").1.clone()
    }

    pub(crate) fn pass_time(&self) {
        self.inner.lock().expect("a lock").0 += 1;
    }

    pub(crate) async fn claim(&self, owner: &'static str) -> Option<i64> {
        let claim = |now, row: &mut Row| {
            (row.state == State::Queued).then(|| {
                row.state = State::Running;
                (row.owner, row.fence, row.lease_until) = (owner, row.fence + 1, now + LEASE);
                row.fence
            })
        };
        self.change(claim).await
    }

    /// Whether it is still the caller's.
    pub(crate) async fn renew(&self, fence: i64) -> bool {
        let renew = |now, row: &mut Row| {
            let is_own = row.state == State::Running && row.fence == fence;
            if is_own {
                row.lease_until = now + LEASE;
            }
            is_own
        };
        self.change(renew).await
    }

    pub(crate) async fn end(&self, fence: i64, next: State) -> bool {
        let end = |_, row: &mut Row| {
            let is_own = row.state == State::Running && row.fence == fence;
            if is_own {
                row.state = next;
                if next == State::Done {
                    row.ended_by.push(fence);
                }
            }
            is_own
        };
        self.change(end).await
    }

    /// The job, if its lease is over, and for how long.
    pub(crate) async fn abandoned(&self) -> Option<(Row, i64)> {
        let look = |now, row: &mut Row| {
            let is_over = row.state == State::Running && row.lease_until < now;
            is_over.then(|| (row.clone(), now - row.lease_until))
        };
        self.change(look).await
    }

    /// Puts it back into the queue, unless it was renewed since it was seen.
    pub(crate) async fn give_up(&self, seen: &Row) -> bool {
        let give_up = |_, row: &mut Row| {
            let is_as_seen =
                row.state == State::Running && (row.fence, row.lease_until) == (seen.fence, seen.lease_until);
            if is_as_seen {
                row.state = State::Queued;
            }
            is_as_seen
        };
        self.change(give_up).await
    }
}
