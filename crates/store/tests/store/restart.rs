//! A PostgreSQL that goes away and comes back. It is a server of its own, so that other cases keep theirs.

use crate::bed::{OTHER, TENANT, assert_refused, create_database, event, new_job};
use crate::postgres::Server;
use cofferdam_store::{JobFilter, Location, Store, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Crashes the server this often, each time in the middle of writes.
const CRASHES: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_outlives_its_server() {
    let server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    create_database(&server.address("postgres"), "outlive").await;
    let store = Store::open(&Location::Postgres(server.address("outlive"))).await.unwrap();
    for tenant in [TENANT, OTHER] {
        store.ensure_tenant(tenant.to_owned(), tenant.to_owned(), 1).await.unwrap();
    }
    // Nobody has noticed yet that the connections are dead.
    let mut server = crash(server).await;
    store.note(OTHER.to_owned(), event("case.noted", "first")).await.unwrap();
    store.ping().await.unwrap();

    let is_over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> =
        (0..4).map(|i| tokio::spawn(keep_writing(store.clone(), i, is_over.clone()))).collect();
    for _ in 0..CRASHES {
        server = crash(server).await;
        // Not "in a while": the very next write works.
        store.note(OTHER.to_owned(), event("case.noted", "after")).await.unwrap();
        store.ping().await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    let mut confirmed = BTreeSet::new();
    for writer in writers {
        confirmed.extend(writer.await.unwrap());
    }
    let filter = JobFilter { limit: 1_000_000, ..JobFilter::default() };
    let kept: BTreeSet<_> =
        store.jobs(TENANT, &filter).await.unwrap().into_iter().map(|job| job.id).collect();
    // A commit whose answer was lost may be there all the same; one that was confirmed must be.
    assert_eq!(confirmed.difference(&kept).collect::<Vec<_>>(), [""; 0]);
    assert!(!confirmed.is_empty());
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), kept.len() as i64);
    assert_eq!(store.verify_audit(OTHER).await.unwrap(), 1 + CRASHES as i64);
}

async fn crash(mut server: Server) -> Server {
    let crash = move || {
        server.crash();
        server
    };
    tokio::task::spawn_blocking(crash).await.unwrap()
}

/// Writes until told to stop, and returns what was confirmed.
async fn keep_writing(store: Store, writer: usize, is_over: Arc<AtomicBool>) -> Vec<String> {
    let mut confirmed = Vec::new();
    for i in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let id = format!("job_{writer}_{i}");
        let events = vec![event("job.accepted", &id)];
        match store.accept(new_job(&id), None, None, events).await {
            Ok(_) => confirmed.push(id),
            refused => assert_refused!(refused, StoreError::Failed(_)),
        }
    }
    confirmed
}
