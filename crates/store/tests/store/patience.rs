//! Databases that say nothing: they are not waited for without end, and others are not held up by them.

use crate::bed::{Bed, TENANT, assert_refused, event, new_job, queue};
use cofferdam_store::{Location, Patience, Store, StoreError};
use sqlx::Row;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Far more than anything here takes, so that a wait without end is told apart from a slow machine.
const END: Duration = Duration::from_secs(60);

fn short() -> Patience {
    let time = Duration::from_secs(2);
    Patience { connect: time, read: time, write: time }
}

/// Listens, as a server does that hangs, and never says a word.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_is_not_waited_for() {
    let folder = std::env::temp_dir().join(format!("cofferdam-silent-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let _listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).unwrap();
    let location = Location::Postgres(format!("postgres://x@localhost/x?host={}", folder.display()));
    let opened = tokio::time::timeout(END, Store::open_with(&location, short())).await.expect("an end");
    std::fs::remove_dir_all(&folder).unwrap();
    assert_refused!(opened, StoreError::Failed(text) if text.contains("not answered within 2000 ms"));
}

/// The processes that serve a store stop in the middle, as on a machine that swaps or a disk that hangs.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_costs_what_was_asked_and_no_more() {
    let bed = Bed::postgres().await;
    bed.open().await.close().await;
    let store = Store::open_with(&bed.location, short()).await.unwrap();
    queue(&store, "job_a").await;
    store.job(TENANT, "job_a").await.unwrap();
    let mut stopped = vec![Stopped::all_of(&bed).await];
    // A reader that was on its way back to the others when it was stopped is not asked: then it is another's turn.
    let refused = loop {
        match tokio::time::timeout(END, store.job(TENANT, "job_a")).await.expect("a read ends") {
            Ok(_) if stopped.len() < 20 => stopped.push(Stopped::all_of(&bed).await),
            refused => break refused,
        }
    };
    assert_refused!(refused, StoreError::Failed(text) if text.contains("not answered"));
    let write = store.accept(new_job("job_b"), None, None, Vec::new());
    let write = tokio::time::timeout(END, write).await.expect("a write ends");
    assert_refused!(write, StoreError::Failed(text) if text.contains("not answered"));
    // New connections are served by others.
    store.ping().await.unwrap();
    store.note(TENANT.to_owned(), event("case.noted", "after")).await.unwrap();
    drop(stopped);
    store.ping().await.unwrap();
    store.verify_audit(TENANT).await.unwrap();
}

/// Processes that were told to stop, and go on at the end.
struct Stopped(Vec<String>);

impl Stopped {
    async fn all_of(bed: &Bed) -> Self {
        let mut raw = bed.raw().await;
        let text = "SELECT pid::TEXT FROM pg_stat_activity \
                    WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let rows = sqlx::query(text).fetch_all(&mut raw).await.unwrap();
        let pids: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert!(pids.len() >= 2, "a reader and the writer: {pids:?}");
        let stopped = Self(pids);
        stopped.signal("-STOP");
        stopped
    }

    fn signal(&self, signal: &str) {
        for pid in &self.0 {
            // One that has ended meanwhile serves nobody.
            let _ = Command::new("kill").args([signal, pid]).stderr(Stdio::null()).status();
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.signal("-CONT");
    }
}

pub(crate) async fn fewer_than_none_are_refused(bed: Bed) {
    use cofferdam_store::JobFilter;
    let store = bed.open().await;
    queue(&store, "job_a").await;
    let filter = |limit| JobFilter { limit, ..JobFilter::default() };
    for limit in [-1, i64::MIN] {
        assert_refused!(store.jobs(TENANT, &filter(limit)).await, StoreError::Limit { .. });
        assert_refused!(store.queued_of(TENANT, limit).await, StoreError::Limit { .. });
        assert_refused!(store.audit(TENANT, 0, limit).await, StoreError::Limit { .. });
        assert_refused!(store.output("job_a", 0, limit).await, StoreError::Limit { .. });
    }
    assert_eq!(store.jobs(TENANT, &filter(0)).await.unwrap(), []);
    assert_eq!(store.queued_of(TENANT, 0).await.unwrap(), []);
}
