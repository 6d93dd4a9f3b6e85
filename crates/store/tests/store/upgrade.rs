//! Stores that an older program made: everything in them is there afterwards, or nothing has changed.

use crate::bed::{Bed, assert_refused, event, new_job};
use cofferdam_core::JobState;
use cofferdam_store::{
    Accepted, Idempotency, JobFilter, JobRecord, Location, NewJob, OutputEvent, OutputKind, Store, StoreError,
};
use sqlx::{Connection, Executor, Row};

const TENANT: &str = "ten-aaaaaaaaaaaaaaaa";
const OTHER: &str = "ten-bbbbbbbbbbbbbbbb";
const BEGIN: i64 = 1_762_000_000_000;

/// Fills an empty database as version 1 left it.
async fn version_1(bed: &Bed) {
    let (bytes, address) = match &bed.location {
        Location::Sqlite(path) => ("BLOB", format!("sqlite://{}?mode=rwc", path.display())),
        Location::Postgres(address) => ("BYTEA", address.clone()),
    };
    sqlx::any::install_default_drivers();
    let mut raw = sqlx::AnyConnection::connect(&address).await.unwrap();
    let text = include_str!("fixtures/version_1.sql").replace("{{bytes}}", bytes);
    raw.execute(sqlx::AssertSqlSafe(text)).await.unwrap();
    if let Location::Sqlite(_) = &bed.location {
        raw.execute("PRAGMA journal_mode = WAL").await.unwrap();
    }
}

fn job(letter: char) -> String {
    format!("job-{}", letter.to_string().repeat(16))
}

async fn get(store: &Store, tenant: &str, letter: char) -> JobRecord {
    store.job(tenant, &job(letter)).await.unwrap().expect("the job is there")
}

pub(crate) async fn everything_of_version_1_is_there(bed: Bed) {
    version_1(&bed).await;
    let store = Store::open(&bed.location).await.unwrap();
    let spec = r#"{"language":"python","code":"print(1)","args":[],"metadata":{"team":"blue"}}"#;
    let expected = JobRecord {
        id: job('a'),
        tenant: TENANT.to_owned(),
        agent: Some("helper".to_owned()),
        task_id: "tâche".to_owned(),
        state: JobState::Succeeded,
        reason: Some("exited".to_owned()),
        message: None,
        created_at_ms: BEGIN + 10,
        transition_at_ms: BEGIN + 50,
        spec: spec.to_owned(),
        result: Some(r#"{"exit_code":0,"outcome":{"kind":"exited","code":0}}"#.to_owned()),
        fence: 1,
        starts: 1,
        worker: Some("wrk-aaaaaaaaaaaaaaaa".to_owned()),
        cancelled_by: None,
        started_at_ms: None,
        terms: None,
        output_expired_at_ms: None,
        owner: None,
        lease_until_ms: None,
        traceparent: None,
    };
    assert_eq!(get(&store, TENANT, 'a').await, expected);
    let states = [('b', JobState::Running), ('c', JobState::Cancelled), ('e', JobState::Queued)];
    for (letter, state) in states {
        assert_eq!(get(&store, TENANT, letter).await.state, state, "{letter}");
    }
    assert_eq!(get(&store, TENANT, 'c').await.cancelled_by.as_deref(), Some("key-aaaaaaaaaaaaaaaa"));
    assert_eq!(get(&store, OTHER, 'd').await.message.as_deref(), Some("its worker went away while it ran"));
    let output =
        |seq, kind, at, bytes: &[u8]| OutputEvent { seq, kind, at_ms: BEGIN + at, bytes: bytes.to_vec() };
    assert_eq!(
        store.output(&job('a'), 0, 10).await.unwrap(),
        [output(1, OutputKind::Stdout, 41, b"1\n"), output(2, OutputKind::Stderr, 42, b"a warning\n")]
    );
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 9);
    assert_eq!(store.verify_audit(OTHER).await.unwrap(), 3);
    let keys = store.keys(TENANT).await.unwrap();
    let names: Vec<_> = keys.iter().map(|key| (key.name.as_str(), key.scopes.as_str())).collect();
    // What was the first key is the operator's by now.
    assert_eq!(names, [("admin", "* operator"), ("reader", "jobs:read audit:read")]);
    assert_eq!(store.keys(OTHER).await.unwrap()[0].revoked_at_ms, Some(BEGIN + 4));
    let tenant = store.ensure_tenant("ten-x".to_owned(), "O'Neill & Söhne".to_owned(), 1).await.unwrap();
    assert_eq!(tenant, OTHER);

    // And it goes on: names that were taken are taken, what waited can be claimed, chains grow.
    let again = NewJob { id: "job-x".to_owned(), tenant: TENANT.to_owned(), ..new_job("job-x") };
    let name = Idempotency { route: "POST /v1/jobs", name: "once".to_owned(), body_hash: "0a1b".to_owned() };
    let accepted = store.accept(again, None, Some(name), Vec::new()).await.unwrap();
    assert_eq!(accepted, Accepted::Before { id: job('a') });
    store.claim(job('e'), crate::bed::claim("w"), event("job.running", &job('e'))).await.unwrap();
    let filter = JobFilter { task_id: Some("tâche".to_owned()), limit: 10, ..JobFilter::default() };
    let listed: Vec<_> = store.jobs(TENANT, &filter).await.unwrap().into_iter().map(|job| job.id).collect();
    assert_eq!(listed, [job('c'), job('a')]);
    store.expire_output(BEGIN + 51, BEGIN + 100).await.unwrap();
    assert_eq!(get(&store, TENANT, 'a').await.output_expired_at_ms, Some(BEGIN + 100));
    store.check().await.unwrap();
    store.close().await;
    // A second time there is nothing to do.
    Store::open(&bed.location).await.unwrap().check().await.unwrap();
}

/// Something in the middle of a step goes wrong: what the step did before is undone, and the next start does it whole.
pub(crate) async fn a_step_that_fails_has_not_happened(bed: Bed) {
    version_1(&bed).await;
    bed.run("CREATE TABLE audit_checkpoints (mine BIGINT)").await;
    assert_refused!(Store::open(&bed.location).await, StoreError::Failed(text) if text.contains("audit_checkpoints"));
    let mut raw = bed.raw().await;
    let steps = sqlx::query("SELECT version FROM schema_version").fetch_all(&mut raw).await.unwrap();
    assert_eq!(steps.iter().map(|row| row.get::<i64, _>(0)).collect::<Vec<_>>(), [1, 2]);
    let column = sqlx::query("SELECT output_kept FROM jobs").fetch_all(&mut raw).await;
    assert!(column.is_err(), "a part of the step is there");
    drop(raw);
    bed.run("DROP TABLE audit_checkpoints").await;
    let store = Store::open(&bed.location).await.unwrap();
    assert_eq!(store.check().await.unwrap().jobs, 5);
}
