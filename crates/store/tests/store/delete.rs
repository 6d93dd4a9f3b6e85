//! What is deleted is gone, and only what is over can be.

use crate::bed::{Bed, OTHER, TENANT, assert_refused, end, event, queue, start, state};
use cofferdam_core::JobState;
use cofferdam_store::{OutputEvent, OutputKind, Store, StoreError};

async fn delete(store: &Store, tenant: &str, id: &str) -> cofferdam_store::Result<()> {
    store.delete_job(tenant.to_owned(), id.to_owned(), event("job.deleted", id)).await
}

pub(crate) async fn only_finished_jobs_are_deleted(bed: Bed) {
    let store = bed.open().await;
    queue(&store, "queued").await;
    start(&store, "running", "w1").await;
    for (id, expected) in [("queued", JobState::Queued), ("running", JobState::Running)] {
        assert_refused!(delete(&store, TENANT, id).await, StoreError::WrongState { .. });
        assert_eq!(state(&store, id).await, expected);
    }
    end(&store, "running", 1, JobState::Succeeded).await.unwrap();
    assert_refused!(delete(&store, OTHER, "running").await, StoreError::NotFound { what: "job" });
    assert_eq!(state(&store, "running").await, JobState::Succeeded);
    delete(&store, TENANT, "running").await.unwrap();
    assert_eq!(store.job(TENANT, "running").await.unwrap(), None);
    assert_refused!(delete(&store, TENANT, "running").await, StoreError::NotFound { what: "job" });
    assert_eq!(state(&store, "queued").await, JobState::Queued);
}

pub(crate) async fn a_deleted_job_leaves_no_output(bed: Bed) {
    let store = bed.open().await;
    for id in ["job_a", "job_b"] {
        start(&store, id, "w1").await;
        let output = vec![OutputEvent { seq: 1, kind: OutputKind::Stdout, at_ms: 1, bytes: b"x".to_vec() }];
        store.append_output(id.to_owned(), 1, output).await.unwrap();
        end(&store, id, 1, JobState::Succeeded).await.unwrap();
    }
    delete(&store, TENANT, "job_a").await.unwrap();
    assert_eq!(store.output("job_a", 0, 10).await.unwrap(), []);
    assert_eq!(store.output("job_b", 0, 10).await.unwrap().len(), 1);
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 5);
}
