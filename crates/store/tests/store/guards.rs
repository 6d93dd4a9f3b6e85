//! Changes of state that are refused, and what a cancel and a lost worker leave behind.

use crate::bed::{Bed, OTHER, TENANT, assert_refused, claim, end, event, finish, queue, start, state};
use cofferdam_core::JobState;
use cofferdam_store::{Finish, Store, StoreError};

pub(crate) async fn a_finish_needs_the_last_fence(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    for fence in [0, 2, -1, i64::MAX] {
        assert_refused!(end(&store, "job_a", fence, JobState::Succeeded).await, StoreError::Fenced);
    }
    assert_eq!(state(&store, "job_a").await, JobState::Running);
    let missing = end(&store, "job_b", 1, JobState::Succeeded).await;
    assert_refused!(missing, StoreError::NotFound { what: "job" });
}

pub(crate) async fn a_finish_needs_a_running_job(bed: Bed) {
    let store = bed.open().await;
    queue(&store, "job_a").await;
    let early = end(&store, "job_a", 0, JobState::Succeeded).await;
    assert_refused!(early, StoreError::WrongState { state: JobState::Queued, wanted: JobState::Succeeded });
    assert_eq!(state(&store, "job_a").await, JobState::Queued);
}

pub(crate) async fn a_finish_is_written_once(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    end(&store, "job_a", 1, JobState::Succeeded).await.unwrap();
    let kept = store.job(TENANT, "job_a").await.unwrap().unwrap();
    assert_eq!((kept.state, kept.transition_at_ms), (JobState::Succeeded, 2_000));
    assert_eq!(kept.result.as_deref(), Some(r#"{"exit_code":0}"#));
    for next in [JobState::Failed, JobState::Succeeded] {
        let again = end(&store, "job_a", 1, next).await;
        assert_refused!(again, StoreError::WrongState { state: JobState::Succeeded, .. });
    }
    let claimed = store.claim("job_a".to_owned(), claim("w2"), event("job.started", "job_a")).await;
    assert_refused!(claimed, StoreError::WrongState { state: JobState::Succeeded, .. });
    assert_eq!(store.job(TENANT, "job_a").await.unwrap().unwrap(), kept);
}

pub(crate) async fn a_finish_needs_a_final_state(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    for next in [JobState::Accepted, JobState::Queued, JobState::Running] {
        let refused = end(&store, "job_a", 1, next).await;
        assert_refused!(refused, StoreError::WrongState { state: JobState::Running, .. });
        assert_eq!(state(&store, "job_a").await, JobState::Running);
    }
}

pub(crate) async fn a_finish_needs_the_right_tenant(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    let end = Finish { tenant: OTHER.to_owned(), ..finish("job_a", 1, JobState::Succeeded) };
    let refused = store.finish(end, Vec::new(), event("job.finished", "job_a")).await;
    assert_refused!(refused, StoreError::NotFound { what: "job" });
    assert_eq!(state(&store, "job_a").await, JobState::Running);
    assert_eq!(store.audit(OTHER, 0, 10).await.unwrap(), []);
}

async fn cancel(store: &Store, tenant: &str, id: &str) -> cofferdam_store::Result<JobState> {
    let by = "key_one".to_owned();
    store.cancel(tenant.to_owned(), id.to_owned(), by, event("job.cancelled", id)).await
}

pub(crate) async fn a_cancelled_queued_job_is_over(bed: Bed) {
    let store = bed.open().await;
    queue(&store, "job_a").await;
    assert_refused!(cancel(&store, OTHER, "job_a").await, StoreError::NotFound { what: "job" });
    assert_refused!(cancel(&store, TENANT, "job_b").await, StoreError::NotFound { what: "job" });
    assert_eq!(state(&store, "job_a").await, JobState::Queued);
    assert_eq!(cancel(&store, TENANT, "job_a").await.unwrap(), JobState::Cancelled);
    let job = store.job(TENANT, "job_a").await.unwrap().unwrap();
    assert_eq!((job.state, job.transition_at_ms), (JobState::Cancelled, 1_000));
    assert_eq!(job.cancelled_by.as_deref(), Some("key_one"));
    assert_eq!(store.queued_of(TENANT, 10).await.unwrap(), []);
    let claimed = store.claim("job_a".to_owned(), claim("w1"), event("job.started", "job_a")).await;
    assert_refused!(claimed, StoreError::WrongState { state: JobState::Cancelled, .. });
}

pub(crate) async fn a_cancelled_running_job_is_marked(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    assert_eq!(cancel(&store, TENANT, "job_a").await.unwrap(), JobState::Running);
    let job = store.job(TENANT, "job_a").await.unwrap().unwrap();
    assert_eq!((job.state, job.transition_at_ms, job.reason), (JobState::Running, 100, None));
    assert_eq!(job.cancelled_by.as_deref(), Some("key_one"));
    end(&store, "job_a", 1, JobState::Cancelled).await.unwrap();
    assert_eq!(state(&store, "job_a").await, JobState::Cancelled);
}

pub(crate) async fn whoever_cancels_first_has_cancelled(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    cancel(&store, TENANT, "job_a").await.unwrap();
    let again =
        store.cancel(TENANT.to_owned(), "job_a".to_owned(), "key_two".to_owned(), event("x", "job_a"));
    assert_eq!(again.await.unwrap(), JobState::Running);
    let job = store.job(TENANT, "job_a").await.unwrap().unwrap();
    assert_eq!(job.cancelled_by.as_deref(), Some("key_one"));
}

pub(crate) async fn a_finished_job_is_not_cancelled(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    end(&store, "job_a", 1, JobState::Failed).await.unwrap();
    let before = store.job(TENANT, "job_a").await.unwrap();
    let entries = store.verify_audit(TENANT).await.unwrap();
    assert_eq!(cancel(&store, TENANT, "job_a").await.unwrap(), JobState::Failed);
    assert_eq!(store.job(TENANT, "job_a").await.unwrap(), before);
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), entries);
}
