//! What has been kept for long enough goes, and nothing else; the chain stays whole without its beginning.

use crate::bed::{
    Bed, OTHER, TENANT, assert_refused, claim, end, event, named, new_job, queue, start, state,
};
use cofferdam_core::JobState;
use cofferdam_store::{
    Accepted, AuditEvent, Checkpoint, NewJob, OutputEvent, OutputKind, Removed, Store, StoreError,
};

/// Jobs of these cases end at 2,000.
const AFTER: i64 = 2_001;
const NOW: i64 = 9_000;

async fn write_output(store: &Store, id: &str, pieces: i64) {
    let piece = |seq| OutputEvent { seq, kind: OutputKind::Stdout, at_ms: 1, bytes: vec![b'x'; 1000] };
    store.append_output(id.to_owned(), 1, (1..=pieces).map(piece).collect()).await.unwrap();
}

async fn ended(store: &Store, id: &str, pieces: i64) {
    start(store, id, "w1").await;
    write_output(store, id, pieces).await;
    end(store, id, 1, JobState::Succeeded).await.unwrap();
}

/// Until nothing more is said to be there; how often that took, and how many went.
async fn all<F>(mut batch: impl FnMut() -> F) -> (u32, u64)
where
    F: Future<Output = cofferdam_store::Result<Removed>>,
{
    let (mut rounds, mut total) = (0, 0);
    loop {
        let Removed { count, is_more } = batch().await.unwrap();
        rounds += 1;
        total += count;
        assert!(rounds < 100, "it never ends");
        if !is_more {
            return (rounds, total);
        }
    }
}

pub(crate) async fn names_of_requests_are_forgotten(bed: Bed) {
    let store = bed.open().await;
    for i in 0..300 {
        let job = NewJob { created_at_ms: i, ..new_job(&format!("job_{i}")) };
        store.accept(job, None, named(&format!("name {i}"), "body"), Vec::new()).await.unwrap();
    }
    let (rounds, total) = all(|| store.expire_idempotency(299)).await;
    assert_eq!((rounds, total), (3, 299));
    let ask = async |id: &str, name: &str| {
        store.accept(new_job(id), None, named(name, "body"), Vec::new()).await.unwrap()
    };
    assert_eq!(ask("job_x", "name 299").await, Accepted::Before { id: "job_299".to_owned() });
    assert_eq!(ask("job_y", "name 298").await, Accepted::New { fence: None });
}

pub(crate) async fn output_goes_and_its_job_says_so(bed: Bed) {
    let store = bed.open().await;
    ended(&store, "old", 3).await;
    // More pieces than go at once.
    ended(&store, "large", 130).await;
    start(&store, "silent", "w1").await;
    end(&store, "silent", 1, JobState::Failed).await.unwrap();
    start(&store, "running", "w1").await;
    write_output(&store, "running", 2).await;
    queue(&store, "queued").await;
    let (rounds, _) = all(|| store.expire_output(2_000, NOW)).await;
    assert_eq!(
        (rounds, store.output("old", 0, 10).await.unwrap().len()),
        (1, 3),
        "it ended at 2,000, not before"
    );

    let (rounds, _) = all(|| store.expire_output(AFTER, NOW)).await;
    assert!(rounds > 2, "{rounds}: 130 pieces went at once");
    let expired = async |id: &str| store.job(TENANT, id).await.unwrap().unwrap().output_expired_at_ms;
    for (id, expected, pieces) in [
        ("old", Some(NOW), 0),
        ("large", Some(NOW), 0),
        ("silent", None, 0),
        ("running", None, 2),
        ("queued", None, 0),
    ] {
        assert_eq!(expired(id).await, expected, "{id}");
        assert_eq!(store.output(id, 0, 1000).await.unwrap().len(), pieces, "{id}");
    }
    assert_eq!(state(&store, "old").await, JobState::Succeeded);
    let entries = store.verify_audit(TENANT).await.unwrap();
    assert_eq!(all(|| store.expire_output(AFTER, NOW + 1)).await, (1, 0));
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), entries, "a sweep that finds nothing says nothing");
    assert_eq!(expired("old").await, Some(NOW));
}

/// A sweep that dies half-way through a job's output leaves a job that says so already, and is found again.
pub(crate) async fn half_removed_output_is_not_taken_for_all_of_it(bed: Bed) {
    let store = bed.open().await;
    ended(&store, "large", 130).await;
    let first = store.expire_output(AFTER, NOW).await.unwrap();
    assert!(first.is_more);
    let left = store.output("large", 0, 1000).await.unwrap().len();
    assert!(left > 0 && left < 130, "{left}");
    assert_eq!(store.job(TENANT, "large").await.unwrap().unwrap().output_expired_at_ms, Some(NOW));
    all(|| store.expire_output(AFTER, NOW + 5)).await;
    assert_eq!(store.output("large", 0, 1000).await.unwrap(), []);
    assert_eq!(store.job(TENANT, "large").await.unwrap().unwrap().output_expired_at_ms, Some(NOW));
}

pub(crate) async fn only_jobs_that_ended_long_ago_go(bed: Bed) {
    let store = bed.open().await;
    for i in 0..70 {
        ended(&store, &format!("old_{i}"), 2).await;
    }
    store.expire_output(AFTER, NOW).await.unwrap();
    start(&store, "running", "w1").await;
    queue(&store, "queued").await;
    start(&store, "young", "w1").await;
    let late = cofferdam_store::Finish { at_ms: AFTER, ..crate::bed::finish("young", 1, JobState::Failed) };
    store.finish(late, Vec::new(), event("job.finished", "young")).await.unwrap();
    let (rounds, total) = all(|| store.expire_jobs(AFTER, NOW)).await;
    assert_eq!(total, 70);
    assert!(rounds > 2, "{rounds}");
    assert_eq!(store.job(TENANT, "old_0").await.unwrap(), None);
    assert_eq!(store.output("old_69", 0, 10).await.unwrap(), []);
    for (id, expected) in
        [("running", JobState::Running), ("queued", JobState::Queued), ("young", JobState::Failed)]
    {
        assert_eq!(state(&store, id).await, expected, "{id}");
    }
    // What still runs can end.
    end(&store, "running", 1, JobState::Succeeded).await.unwrap();
    let entries = store.audit(TENANT, 0, 10_000).await.unwrap();
    let said: u64 = entries
        .iter()
        .filter(|entry| entry.kind == "retention.jobs")
        .map(|entry| {
            serde_json::from_str::<serde_json::Value>(&entry.details).unwrap()["count"].as_u64().unwrap()
        })
        .sum();
    assert_eq!(said, 70);
    store.verify_audit(TENANT).await.unwrap();
}

async fn note_at(store: &Store, tenant: &str, at_ms: i64) {
    let event = AuditEvent { at_ms, ..event("case.noted", &at_ms.to_string()) };
    store.note(tenant.to_owned(), event).await.unwrap();
}

async fn prune(store: &Store, tenant: &str, before: i64, envelope: Option<&str>) -> Option<Checkpoint> {
    let mut found = store.audit_before(tenant, before, NOW).await.unwrap()?;
    found.envelope = envelope.map(str::to_owned);
    store.set_audit_checkpoint(tenant.to_owned(), found.clone()).await.unwrap();
    Some(found)
}

pub(crate) async fn a_chain_is_whole_without_its_beginning(bed: Bed) {
    let store = bed.open().await;
    for at in 1..=300 {
        note_at(&store, TENANT, at).await;
    }
    note_at(&store, OTHER, 1).await;
    let before = store.audit(TENANT, 0, 1000).await.unwrap();
    assert_eq!(prune(&store, TENANT, 1, None).await, None, "nothing is older than the first");
    let set = prune(&store, TENANT, 251, Some("signed")).await.unwrap();
    assert_eq!((set.seq, &set.hash), (250, &before[249].hash));
    // Whole between the checkpoint and the removal, too.
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 301);
    let (rounds, total) = all(|| store.expire_audit(TENANT.to_owned())).await;
    assert_eq!((rounds, total), (2, 250));
    let after = store.audit(TENANT, 0, 1000).await.unwrap();
    assert_eq!(after[..50], before[250..]);
    assert_eq!((after[50].kind.as_str(), after[50].seq), ("retention.audit", 301));
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 301);
    assert_eq!(store.audit_checkpoint(TENANT).await.unwrap(), Some(set));
    assert_eq!(store.audit_checkpoint(OTHER).await.unwrap(), None);
    assert_eq!(store.verify_audit(OTHER).await.unwrap(), 1);
    // The chain goes on, and is cut again.
    note_at(&store, TENANT, 400).await;
    assert_eq!(prune(&store, TENANT, 301, None).await.unwrap().seq, 300);
    all(|| store.expire_audit(TENANT.to_owned())).await;
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 303);
}

pub(crate) async fn a_chain_without_its_beginning_still_tells_on_who_was_at_it(bed: Bed) {
    let store = bed.open().await;
    for at in 1..=20 {
        note_at(&store, TENANT, at).await;
    }
    prune(&store, TENANT, 11, None).await.unwrap();
    all(|| store.expire_audit(TENANT.to_owned())).await;
    store.verify_audit(TENANT).await.unwrap();
    bed.harm("DELETE FROM audit WHERE tenant_id = 'ten_one' AND seq = 11").await;
    assert_refused!(store.verify_audit(TENANT).await, StoreError::Unreadable(text) if text.ends_with("entry 11"));
    bed.harm("UPDATE audit_checkpoints SET hash = 'x' WHERE tenant_id = 'ten_one'").await;
    assert_refused!(store.verify_audit(TENANT).await, StoreError::Unreadable(_));
}

/// What is broken is evidence: it is not forgotten, and no checkpoint says that it was whole.
pub(crate) async fn a_broken_chain_is_not_cut(bed: Bed) {
    let store = bed.open().await;
    for at in 1..=20 {
        note_at(&store, TENANT, at).await;
    }
    bed.harm("UPDATE audit SET details = '{}' WHERE tenant_id = 'ten_one' AND seq = 5").await;
    let refused = store.audit_before(TENANT, 11, NOW).await;
    assert_refused!(refused, StoreError::Unreadable(text) if text.ends_with("entry 5"));
    let made_up = Checkpoint { seq: 10, hash: "made up".to_owned(), at_ms: NOW, envelope: None };
    let refused = store.set_audit_checkpoint(TENANT.to_owned(), made_up).await;
    assert_refused!(refused, StoreError::NotFound { .. });
    assert_eq!(store.expire_audit(TENANT.to_owned()).await.unwrap().count, 0);
    assert_eq!(store.audit(TENANT, 0, 100).await.unwrap().len(), 20);
}

/// Whoever waits for the writer does not wait for a sweep.
pub(crate) async fn jobs_come_in_while_others_go(bed: Bed) {
    let store = bed.open().await;
    for i in 0..200 {
        ended(&store, &format!("old_{i}"), 1).await;
    }
    let sweeping = store.clone();
    let sweep = tokio::spawn(async move { all(|| sweeping.expire_jobs(AFTER, NOW)).await });
    for i in 0..50 {
        let job = NewJob { created_at_ms: NOW, ..new_job(&format!("new_{i}")) };
        store.accept(job, Some(claim("w1")), None, Vec::new()).await.unwrap();
    }
    assert_eq!(sweep.await.unwrap().1, 200);
    for i in 0..50 {
        assert_eq!(state(&store, &format!("new_{i}")).await, JobState::Running);
    }
    store.verify_audit(TENANT).await.unwrap();
}

/// The file gets smaller, not only emptier. (A server gives back what is at the end of a table, in its own time.)
#[tokio::test(flavor = "multi_thread")]
async fn bytes_on_disk_become_fewer() {
    let bed = Bed::sqlite();
    let store = bed.open().await;
    let cofferdam_store::Location::Sqlite(path) = bed.location.clone() else { unreachable!() };
    let piece = |seq| OutputEvent { seq, kind: OutputKind::Stdout, at_ms: 1, bytes: vec![b'x'; 60_000] };
    for i in 0..40 {
        let id = format!("job_{i}");
        start(&store, &id, "w1").await;
        store.append_output(id.clone(), 1, (1..=10).map(piece).collect()).await.unwrap();
        end(&store, &id, 1, JobState::Succeeded).await.unwrap();
    }
    let sizes = || {
        let size = |ending: &str| {
            std::fs::metadata(format!("{}{ending}", path.display())).map_or(0, |data| data.len())
        };
        size("") + size("-wal")
    };
    let full = sizes();
    assert!(full > 20 << 20, "{full}");
    all(|| store.expire_output(AFTER, NOW)).await;
    for round in 0.. {
        if store.space().await.unwrap().free_pages <= 256 {
            break;
        }
        assert!(round < 1000, "it never ends");
        assert!(store.space().await.unwrap().can_shrink);
        store.shrink().await.unwrap();
    }
    store.close().await;
    let after = sizes();
    println!("{full} bytes before, {after} after");
    assert!(after < 4 << 20, "{after} of {full} bytes are still there");
}
