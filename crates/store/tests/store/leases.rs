//! Who answers for a running job, and what becomes of one that nobody does.

use crate::bed::{Bed, TENANT, assert_refused, claim, end, event, given_up, new_job, queue, start, state};
use cofferdam_core::JobState;
use cofferdam_store::{
    Claim, GivenUp, JobRecord, NewJob, Next, OutputEvent, OutputKind, OutputTail, Store, StoreError,
};

/// A job of `owner`'s whose lease is over.
async fn abandon(store: &Store, id: &str, owner: &str) -> JobRecord {
    let claim = Claim { lease_ms: -1_000, ..claim(owner) };
    store.accept(new_job(id), Some(claim), None, vec![event("job.accepted", id)]).await.unwrap();
    look(store, id).await
}

async fn look(store: &Store, id: &str) -> JobRecord {
    store.job(TENANT, id).await.unwrap().unwrap()
}

async fn abandoned(store: &Store) -> Vec<String> {
    store.abandoned(10).await.unwrap().into_iter().map(|abandoned| abandoned.job.id).collect()
}

fn output(seq: i64) -> Vec<OutputEvent> {
    vec![OutputEvent { seq, kind: OutputKind::Stdout, at_ms: 1, bytes: b"out".to_vec() }]
}

async fn give_up(store: &Store, run: GivenUp) -> cofferdam_store::Result<()> {
    let event = event("job.given_up", &run.id);
    store.give_up(run, Vec::new(), event).await
}

pub(crate) async fn a_renewed_lease_is_nobody_elses(bed: Bed) {
    let store = bed.open().await;
    start(&store, "held", "w1").await;
    let job = abandon(&store, "over", "w1").await;
    assert_eq!(abandoned(&store).await, ["over"]);
    let over_ms = store.abandoned(10).await.unwrap()[0].over_ms;
    assert!((1_000..60_000).contains(&over_ms), "{over_ms}");
    let renew = vec![("over".to_owned(), 1), ("held".to_owned(), 2), ("none".to_owned(), 1)];
    assert_eq!(store.renew(renew, 60_000).await.unwrap(), ["held", "none"]);
    assert_eq!(abandoned(&store).await, [""; 0]);
    assert_refused!(store.adopt(&job, "w2".to_owned(), 60_000).await, StoreError::Fenced);
    assert_eq!(look(&store, "over").await.owner.as_deref(), Some("w1"));
}

pub(crate) async fn whoever_was_taken_over_writes_nothing(bed: Bed) {
    let store = bed.open().await;
    let job = abandon(&store, "job_a", "w1").await;
    let fence = store.adopt(&job, "w2".to_owned(), 60_000).await.unwrap();
    assert_eq!(fence, 2);
    let taken = look(&store, "job_a").await;
    assert_eq!((taken.owner.as_deref(), taken.worker.as_deref(), taken.starts), (Some("w2"), Some("w1"), 1));
    assert_refused!(store.adopt(&job, "w3".to_owned(), 60_000).await, StoreError::Fenced);
    assert_eq!(store.renew(vec![("job_a".to_owned(), 1)], 60_000).await.unwrap(), ["job_a"]);
    assert_refused!(store.append_output("job_a".to_owned(), 1, output(1)).await, StoreError::Fenced);
    assert_refused!(end(&store, "job_a", 1, JobState::Succeeded).await, StoreError::Fenced);
    assert_refused!(give_up(&store, given_up("job_a", 1, Next::Lost)).await, StoreError::Fenced);
    assert_eq!(store.output("job_a", 0, 10).await.unwrap(), []);
    store.append_output("job_a".to_owned(), fence, output(1)).await.unwrap();
    end(&store, "job_a", fence, JobState::Succeeded).await.unwrap();
    assert_eq!(state(&store, "job_a").await, JobState::Succeeded);
}

/// Somebody has seen a lease that is over, and before they act its owner is back.
pub(crate) async fn a_renewal_in_between_wins(bed: Bed) {
    let store = bed.open().await;
    let job = abandon(&store, "job_a", "w1").await;
    assert_eq!(store.renew(vec![("job_a".to_owned(), 1)], 60_000).await.unwrap(), [""; 0]);
    let run = GivenUp { seen_lease_ms: job.lease_until_ms, ..given_up("job_a", 1, Next::Lost) };
    assert_refused!(give_up(&store, run.clone()).await, StoreError::Fenced);
    assert_eq!(state(&store, "job_a").await, JobState::Running);
    let seen_lease_ms = look(&store, "job_a").await.lease_until_ms;
    give_up(&store, GivenUp { seen_lease_ms, ..run }).await.unwrap();
    assert_eq!(state(&store, "job_a").await, JobState::Lost);
}

pub(crate) async fn the_leases_of_a_dead_node_are_over_at_once(bed: Bed) {
    let store = bed.open().await;
    for (id, owner) in [("before", "n1:a"), ("now", "n1:b"), ("other", "n2:a"), ("like", "n11:a")] {
        start(&store, id, owner).await;
    }
    store.end_leases("n1:".to_owned(), "n1:b".to_owned()).await.unwrap();
    assert_eq!(abandoned(&store).await, ["before"]);
}

pub(crate) async fn a_job_that_is_given_up_is_lost_once(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    give_up(&store, given_up("job_a", 1, Next::Lost)).await.unwrap();
    let lost = look(&store, "job_a").await;
    assert_eq!(
        (lost.state, lost.reason.as_deref(), lost.transition_at_ms),
        (JobState::Lost, Some("worker_gone"), 3_000)
    );
    for next in [Next::Lost, Next::Again { wait_ms: 0 }, Next::Unstarted] {
        let again = give_up(&store, given_up("job_a", 1, next)).await;
        assert_refused!(again, StoreError::WrongState { state: JobState::Lost, .. });
    }
    assert_refused!(end(&store, "job_a", 1, JobState::Succeeded).await, StoreError::WrongState { .. });
    let other = GivenUp { tenant: "ten_two".to_owned(), ..given_up("job_a", 1, Next::Lost) };
    assert!(give_up(&store, other).await.is_err());
    assert_eq!(look(&store, "job_a").await, lost);
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 2);
}

pub(crate) async fn a_retried_job_waits_and_is_another_attempt(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    store.append_output("job_a".to_owned(), 1, output(1)).await.unwrap();
    let again = given_up("job_a", 1, Next::Again { wait_ms: 3_600_000 });
    store.give_up(again, output(2), event("job.retried", "job_a")).await.unwrap();
    let waiting = look(&store, "job_a").await;
    assert_eq!((waiting.state, waiting.starts, waiting.owner), (JobState::Queued, 1, None));
    assert_eq!(store.queued_of(TENANT, 10).await.unwrap(), [], "it has to wait");
    let kinds: Vec<_> = store
        .output("job_a", 0, 10)
        .await
        .unwrap()
        .into_iter()
        .map(|event| (event.seq, event.kind))
        .collect();
    let expected = [(1, OutputKind::Stdout), (2, OutputKind::Stdout), (3, OutputKind::Init)];
    assert_eq!(kinds, expected);
    let tail = store.output_tail("job_a").await.unwrap();
    assert_eq!(tail, OutputTail { last_seq: 3, stdout_bytes: 0, stderr_bytes: 0 });

    start(&store, "job_b", "w1").await;
    store.append_output("job_b".to_owned(), 1, output(1)).await.unwrap();
    let tail = store.output_tail("job_b").await.unwrap();
    assert_eq!(tail, OutputTail { last_seq: 1, stdout_bytes: 3, stderr_bytes: 0 });
    assert_eq!(store.output_tail("none").await.unwrap(), OutputTail::default());
    give_up(&store, given_up("job_b", 1, Next::Again { wait_ms: 0 })).await.unwrap();
    let queued = store.queued_of(TENANT, 10).await.unwrap();
    assert_eq!(queued.len(), 1);
    let fence = store.claim("job_b".to_owned(), claim("w2"), event("job.running", "job_b")).await.unwrap();
    let running = look(&store, "job_b").await;
    assert_eq!((fence, running.starts, running.reason), (2, 2, None));
    assert_refused!(end(&store, "job_b", 1, JobState::Succeeded).await, StoreError::Fenced);
}

pub(crate) async fn what_was_not_started_does_not_count(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    give_up(&store, given_up("job_a", 1, Next::Unstarted)).await.unwrap();
    let waiting = look(&store, "job_a").await;
    assert_eq!((waiting.state, waiting.starts, waiting.fence), (JobState::Queued, 0, 1));
    assert_eq!(store.output("job_a", 0, 10).await.unwrap(), [], "no attempt is told of");
}

pub(crate) async fn a_cancel_is_told_to_the_owner(bed: Bed) {
    let store = bed.open().await;
    start(&store, "mine", "w1").await;
    start(&store, "theirs", "w2").await;
    assert_eq!(store.cancelled_of("w1").await.unwrap(), []);
    for id in ["mine", "theirs"] {
        let event = event("job.cancelled", id);
        store.cancel(TENANT.to_owned(), id.to_owned(), "key".to_owned(), event).await.unwrap();
    }
    assert_eq!(store.cancelled_of("w1").await.unwrap(), [("mine".to_owned(), "key".to_owned())]);
}

pub(crate) async fn a_job_waits_no_longer_than_it_may(bed: Bed) {
    let store = bed.open().await;
    for (id, queue_deadline_ms) in [("soon", Some(500)), ("later", Some(501)), ("whenever", None)] {
        let job = NewJob { queue_deadline_ms, ..new_job(id) };
        store.accept(job, None, None, Vec::new()).await.unwrap();
    }
    let running = NewJob { queue_deadline_ms: Some(400), ..new_job("running") };
    store.accept(running, Some(claim("w1")), None, Vec::new()).await.unwrap();
    queue(&store, "other").await;
    let notes = store.verify_audit(TENANT).await.unwrap();
    assert_eq!(store.expire_queued(499).await.unwrap(), [""; 0]);
    assert_eq!(store.expire_queued(500).await.unwrap(), ["soon"]);
    assert_eq!(store.expire_queued(500).await.unwrap(), [""; 0]);
    for (id, expected) in [
        ("soon", JobState::Expired),
        ("later", JobState::Queued),
        ("whenever", JobState::Queued),
        ("running", JobState::Running),
    ] {
        assert_eq!(state(&store, id).await, expected, "{id}");
    }
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), notes + 1);
    let late = store.claim("soon".to_owned(), claim("w1"), event("job.running", "soon")).await;
    assert_refused!(late, StoreError::WrongState { state: JobState::Expired, .. });
}
