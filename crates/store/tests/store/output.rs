//! What jobs wrote.

use crate::bed::{Bed, assert_refused, end, event, finish, queue, start};
use cofferdam_core::JobState;
use cofferdam_store::{OutputEvent, OutputKind, StoreError};

fn events(numbers: std::ops::RangeInclusive<i64>) -> Vec<OutputEvent> {
    let kinds = [OutputKind::Stdout, OutputKind::Stderr, OutputKind::Truncated];
    numbers
        .map(|seq| OutputEvent {
            seq,
            kind: kinds[seq as usize % 3],
            at_ms: 10 * seq,
            // Not text: a program writes what it likes.
            bytes: vec![0, 0xff, seq as u8, b'\n'],
        })
        .collect()
}

pub(crate) async fn output_is_read_from_any_number(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    store.append_output("job_a".to_owned(), 1, events(1..=4)).await.unwrap();
    store.append_output("job_a".to_owned(), 1, events(5..=7)).await.unwrap();
    assert_eq!(store.output("job_a", 0, 100).await.unwrap(), events(1..=7));
    assert_eq!(store.output("job_a", 3, 2).await.unwrap(), events(4..=5));
    assert_eq!(store.output("job_a", 7, 100).await.unwrap(), []);
    assert_eq!(store.output("job_b", 0, 100).await.unwrap(), []);
}

pub(crate) async fn output_that_comes_again_is_kept_once(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    store.append_output("job_a".to_owned(), 1, events(1..=4)).await.unwrap();
    let mut again = events(3..=6);
    again[0].bytes = b"not what it was".to_vec();
    store.append_output("job_a".to_owned(), 1, again).await.unwrap();
    assert_eq!(store.output("job_a", 0, 100).await.unwrap(), events(1..=6));
}

pub(crate) async fn output_needs_the_last_fence(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    queue(&store, "job_b").await;
    let append = async |id: &str, fence| store.append_output(id.to_owned(), fence, events(1..=1)).await;
    assert_refused!(append("job_a", 0).await, StoreError::Fenced);
    assert_refused!(append("job_a", 2).await, StoreError::Fenced);
    assert_refused!(append("job_b", 0).await, StoreError::WrongState { state: JobState::Queued, .. });
    assert_refused!(append("job_c", 1).await, StoreError::NotFound { what: "job" });
    end(&store, "job_a", 1, JobState::Succeeded).await.unwrap();
    assert_refused!(append("job_a", 1).await, StoreError::WrongState { state: JobState::Succeeded, .. });
    for id in ["job_a", "job_b", "job_c"] {
        assert_eq!(store.output(id, 0, 100).await.unwrap(), [], "{id}");
    }
}

pub(crate) async fn a_finish_brings_the_last_output(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    store.append_output("job_a".to_owned(), 1, events(1..=2)).await.unwrap();
    let end = finish("job_a", 1, JobState::Succeeded);
    store.finish(end.clone(), events(2..=4), event("job.finished", "job_a")).await.unwrap();
    assert_eq!(store.output("job_a", 0, 100).await.unwrap(), events(1..=4));
    let again = store.finish(end, events(5..=6), event("job.finished", "job_a")).await;
    assert_refused!(again, StoreError::WrongState { .. });
    assert_eq!(store.output("job_a", 0, 100).await.unwrap(), events(1..=4));
}
