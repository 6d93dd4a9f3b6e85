//! Writers that wait for each other: not for ever, and not each for the other.

use crate::bed::{Bed, OTHER, TENANT, assert_refused, event, new_job, queue};
use cofferdam_store::{Location, Store, StoreError};
use sqlx::{AnyConnection, Executor, Row};
use std::future::{Future, ready};
use std::pin::Pin;
use std::time::Duration;

/// Far more than anything here takes, so that a wait without end is told apart from a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Somebody holds the lock that writers take, for longer than they wait.
pub(crate) async fn a_write_does_not_wait_for_ever(bed: Bed) {
    let store = bed.open().await;
    let mut holder = bed.raw().await;
    let hold = match bed.location {
        Location::Sqlite(_) => "BEGIN IMMEDIATE",
        // The number is the one in `engine.rs`; with another, the write below would just succeed.
        Location::Postgres(_) => "BEGIN; SELECT pg_advisory_xact_lock(4819037562)",
    };
    holder.execute(hold).await.unwrap();
    let write = store.accept(new_job("job_a"), None, None, Vec::new());
    let refused = tokio::time::timeout(PATIENCE, write).await.expect("the wait has an end");
    assert_refused!(refused, StoreError::Failed(_));
    assert_eq!(store.queued_of(TENANT, 10).await.unwrap(), [], "readers do not wait");
    holder.execute("ROLLBACK").await.unwrap();
    queue(&store, "job_b").await;
    assert_eq!(store.queued_of(TENANT, 10).await.unwrap().len(), 1);
}

type Notes = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Two notes, asked for in this order by the time that this returns.
async fn ask_both(store: &Store, first: &'static str, second: &'static str) -> Notes {
    let store = store.clone();
    let mut notes: Notes = Box::pin(async move {
        let note = |tenant: &str| store.note(tenant.to_owned(), event("case.noted", "both"));
        let (first, second) = tokio::join!(note(first), note(second));
        first.and(second).unwrap();
    });
    tokio::select! {
        biased;
        () = &mut notes => panic!("the writer is held up, so this cannot be done yet"),
        () = ready(()) => notes,
    }
}

/// Until this many connections of the case's database wait for a lock.
async fn until_waiting(connection: &mut AnyConnection, count: i64) {
    loop {
        let text = "SELECT COUNT(*) FROM pg_stat_activity \
                    WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let row = sqlx::query(text).fetch_one(&mut *connection).await.unwrap();
        if row.get::<i64, _>(0) == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn until_noted(store: &Store, tenant: &str, count: i64) {
    while store.verify_audit(tenant).await.unwrap() != count {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Both stores' writers are held at a gate until each has a batch that goes through two chains in the other's order,
/// and then before the first chain of either. Without one line for all, each has what the other wants from there on.
async fn opposite_orders() {
    let bed = Bed::postgres().await;
    let stores = [bed.open().await, bed.open().await];
    for tenant in ["gate", TENANT, OTHER] {
        stores[0].note(tenant.to_owned(), event("case.noted", "first")).await.unwrap();
    }
    let (mut gate, mut chains, mut watch) = (bed.raw().await, bed.raw().await, bed.raw().await);
    gate.execute("BEGIN; SELECT 1 FROM audit_heads WHERE tenant_id = 'gate' FOR UPDATE").await.unwrap();
    let held = stores.clone().map(|store| {
        tokio::spawn(async move { store.note("gate".to_owned(), event("case.noted", "held")).await })
    });
    until_waiting(&mut watch, 2).await;
    let both = [ask_both(&stores[0], TENANT, OTHER).await, ask_both(&stores[1], OTHER, TENANT).await];
    chains.execute("BEGIN; SELECT 1 FROM audit_heads WHERE tenant_id <> 'gate' FOR UPDATE").await.unwrap();
    gate.execute("ROLLBACK").await.unwrap();
    until_noted(&stores[0], "gate", 3).await;
    until_waiting(&mut watch, 2).await;
    chains.execute("ROLLBACK").await.unwrap();
    for notes in both {
        notes.await;
    }
    for held in held {
        held.await.unwrap().unwrap();
    }
    for tenant in [TENANT, OTHER] {
        assert_eq!(stores[0].verify_audit(tenant).await.unwrap(), 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_in_opposite_orders_both_succeed() {
    tokio::time::timeout(PATIENCE, opposite_orders()).await.expect("nobody waits for ever");
}
