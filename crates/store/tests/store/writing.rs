//! The one task that writes: nothing that it confirmed is missing, and one write's trouble is its own.

use crate::bed::{Bed, TENANT, assert_refused, event, new_job, queue};
use cofferdam_store::{JobFilter, NewJob, Store, StoreError};
use std::collections::BTreeSet;

/// Asks for many jobs at once and returns what each heard.
async fn at_once(store: &Store, jobs: Vec<NewJob>) -> Vec<(String, cofferdam_store::Result<()>)> {
    let tasks: Vec<_> = jobs
        .into_iter()
        .map(|job| {
            let store = store.clone();
            tokio::spawn(async move {
                let id = job.id.clone();
                let events = vec![event("job.accepted", &id)];
                (id, store.accept(job, None, None, events).await.map(drop))
            })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

/// What a store that was opened afresh has.
async fn kept(bed: &Bed) -> BTreeSet<String> {
    let store = bed.open().await;
    let filter = JobFilter { limit: 10_000, ..JobFilter::default() };
    let ids: BTreeSet<_> = store.jobs(TENANT, &filter).await.unwrap().into_iter().map(|job| job.id).collect();
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), ids.len() as i64);
    ids
}

pub(crate) async fn writes_at_once_are_all_kept(bed: Bed) {
    let store = bed.open().await;
    let answers = at_once(&store, (0..200).map(|i| new_job(&format!("job_{i}"))).collect()).await;
    assert_eq!(answers.len(), 200);
    assert!(answers.iter().all(|(_, answer)| answer.is_ok()), "{answers:?}");
    // The store is not closed first: what it confirmed is there for others already.
    assert_eq!(kept(&bed).await, answers.into_iter().map(|(id, _)| id).collect());
}

pub(crate) async fn a_failing_write_fails_alone(bed: Bed) {
    let store = bed.open().await;
    queue(&store, "taken").await;
    let ids = (0..100).map(|i| if i % 10 == 3 { "taken".to_owned() } else { format!("job_{i}") });
    for (id, answer) in at_once(&store, ids.map(|id| new_job(&id)).collect()).await {
        if id == "taken" {
            assert_refused!(answer, StoreError::Failed(_));
        } else {
            answer.unwrap();
        }
    }
    assert_eq!(kept(&bed).await.len(), 91);
}

/// Whatever goes wrong between two statements, the next batch begins afresh, and nothing of the one that failed is
/// kept with it. The trap ends the connection on PostgreSQL, and the whole transaction on SQLite.
pub(crate) async fn a_lost_transaction_costs_one_batch(bed: Bed) {
    let store = bed.open().await;
    let is_sqlite = matches!(bed.location, cofferdam_store::Location::Sqlite(_));
    bed.run(if is_sqlite { SQLITE_TRAP } else { POSTGRES_TRAP }).await;
    let mut heard = BTreeSet::new();
    for round in 0..5 {
        let mut jobs: Vec<_> = (0..20).map(|i| new_job(&format!("job_{round}_{i}"))).collect();
        jobs[10].task_id = "trap".to_owned();
        for (id, answer) in at_once(&store, jobs).await {
            match answer {
                Ok(()) => drop(heard.insert(id)),
                refused => assert_refused!(refused, StoreError::Failed(_)),
            }
        }
    }
    queue(&store, "after").await;
    heard.insert("after".to_owned());
    assert_eq!(kept(&bed).await, heard);
}

const SQLITE_TRAP: &str = "CREATE TRIGGER trap BEFORE INSERT ON jobs WHEN NEW.task_id = 'trap' \
                           BEGIN SELECT RAISE(ROLLBACK, 'trapped'); END";

const POSTGRES_TRAP: &str = "CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                             PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$; \
                             CREATE TRIGGER trap BEFORE INSERT ON jobs FOR EACH ROW \
                             WHEN (NEW.task_id = 'trap') EXECUTE FUNCTION trap()";

pub(crate) async fn what_was_asked_before_closing_is_kept(bed: Bed) {
    let store = bed.open().await;
    let asked = store.clone();
    let writes = tokio::spawn(async move {
        at_once(&asked, (0..50).map(|i| new_job(&format!("job_{i}"))).collect()).await
    });
    store.close().await;
    let heard = writes.await.unwrap().into_iter().filter_map(|(id, answer)| answer.is_ok().then_some(id));
    // Those that came too late heard so, and are not there.
    assert_eq!(kept(&bed).await, heard.collect());
}

pub(crate) async fn a_closed_store_says_so(bed: Bed) {
    let store = bed.open().await;
    store.ping().await.unwrap();
    let other = store.clone();
    store.close().await;
    let late = other.accept(new_job("job_a"), None, None, Vec::new()).await;
    assert!(matches!(&late, Err(StoreError::Failed(text)) if text.contains("closed")), "{late:?}");
    assert_refused!(other.ping().await, StoreError::Failed(_));
    other.close().await;
}
