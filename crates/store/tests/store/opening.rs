//! Stores that were there before, that are too new, or that two open at once.

use crate::bed::{Bed, TENANT, assert_refused, end, queue, start};
use cofferdam_core::JobState;
use cofferdam_store::{Location, OutputEvent, OutputKind, Store, StoreError};

pub(crate) async fn reopening_keeps_everything(bed: Bed) {
    let store = bed.open().await;
    queue(&store, "job_a").await;
    start(&store, "job_b", "w1").await;
    let output = vec![OutputEvent { seq: 1, kind: OutputKind::Stderr, at_ms: 3, bytes: vec![0, 159] }];
    store.append_output("job_b".to_owned(), 1, output.clone()).await.unwrap();
    end(&store, "job_b", 1, JobState::TimedOut).await.unwrap();
    let jobs = [store.job(TENANT, "job_a").await.unwrap(), store.job(TENANT, "job_b").await.unwrap()];
    let audit = store.audit(TENANT, 0, 100).await.unwrap();
    store.close().await;

    let store = bed.open().await;
    let again = [store.job(TENANT, "job_a").await.unwrap(), store.job(TENANT, "job_b").await.unwrap()];
    assert_eq!(again, jobs);
    assert_eq!(store.output("job_b", 0, 10).await.unwrap(), output);
    assert_eq!(store.audit(TENANT, 0, 100).await.unwrap(), audit);
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 3);
}

/// Tables as the first version made them, with something in them.
pub(crate) async fn the_first_version_is_brought_up_to_date(bed: Bed) {
    let bytes = if matches!(bed.location, Location::Sqlite(_)) { "BLOB" } else { "BYTEA" };
    let tables = include_str!("../../migrations/0001_jobs.sql").replace("{{bytes}}", bytes);
    let path = match &bed.location {
        Location::Sqlite(path) => Some(std::fs::File::create(path).unwrap()),
        Location::Postgres(_) => None,
    };
    drop(path);
    let mut raw = bed.raw().await;
    let rows = "CREATE TABLE schema_version (version BIGINT NOT NULL); \
        INSERT INTO schema_version (version) VALUES (1); \
        INSERT INTO tenants (id, name, created_at_ms) VALUES ('ten_one', 'one', 1); \
        INSERT INTO keys (id, tenant_id, name, hash, scopes, created_at_ms) VALUES ('k', 'ten_one', 'k', 'h', '*', 1); \
        INSERT INTO jobs (id, tenant_id, task_id, state, created_at_ms, transition_at_ms, spec, fence, starts) \
        VALUES ('job_old', 'ten_one', 't', 'succeeded', 1, 2, '{}', 1, 1)";
    for statement in tables.split(';').chain(rows.split(';')).map(str::trim).filter(|text| !text.is_empty()) {
        sqlx::query(sqlx::AssertSqlSafe(statement.to_owned())).execute(&mut raw).await.unwrap();
    }
    let store = Store::open(&bed.location).await.unwrap();
    let job = store.job(TENANT, "job_old").await.unwrap().unwrap();
    assert_eq!((job.state, job.started_at_ms, job.terms), (JobState::Succeeded, None, None));
    assert_eq!(store.keys(TENANT).await.unwrap()[0].last_used_at_ms, None);
    queue(&store, "job_new").await;
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 1);
}

pub(crate) async fn a_newer_store_is_refused(bed: Bed) {
    bed.open().await.close().await;
    bed.harm("INSERT INTO schema_version (version) VALUES (1000)").await;
    let refused = Store::open(&bed.location).await;
    assert_refused!(refused, StoreError::Unreadable(text) if text.contains("1000"));
}

pub(crate) async fn a_new_store_can_be_opened_twice_at_once(bed: Bed) {
    let opened: Vec<_> = (0..8)
        .map(|_| {
            let location = bed.location.clone();
            tokio::spawn(async move { Store::open(&location).await })
        })
        .collect();
    for store in opened {
        store.await.unwrap().unwrap().ping().await.unwrap();
    }
    queue(&bed.open().await, "job_a").await;
}

/// New files again and again, each opened by many at once: whoever makes it, the others wait, and none is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_new_file_is_opened_by_all_who_come_at_once() {
    let rounds = std::env::var("COFFERDAM_OPENINGS").ok().and_then(|text| text.parse().ok()).unwrap_or(25);
    for round in 0..rounds {
        let bed = Bed::sqlite_named(&format!("round {round}.db"));
        let all = std::sync::Arc::new(tokio::sync::Barrier::new(8));
        let opened: Vec<_> = (0..8)
            .map(|_| {
                let (location, all) = (bed.location.clone(), all.clone());
                tokio::spawn(async move {
                    all.wait().await;
                    let store = Store::open(&location).await?;
                    store.ping().await?;
                    Ok::<_, StoreError>(store)
                })
            })
            .collect();
        for store in opened {
            store.await.unwrap().unwrap_or_else(|error| panic!("round {round}: {error}")).close().await;
        }
    }
}

/// An address gives some characters a meaning; a path does not.
#[tokio::test(flavor = "multi_thread")]
async fn any_path_is_that_file() {
    let bed = Bed::sqlite_named("a b%41?mode=memory#c&ü.db");
    bed.open().await.close().await;
    let Location::Sqlite(path) = &bed.location else { unreachable!() };
    assert!(path.is_file(), "{}", path.display());
}
