//! What whoever watches over a store can ask.

use crate::bed::{Bed, OTHER, TENANT, end, event, queue, start};
use cofferdam_core::JobState;
use cofferdam_store::{OutputEvent, OutputKind, Probe, Progress};

pub(crate) async fn a_sound_store_is_found_sound_and_unchanged(bed: Bed) {
    let store = bed.open().await;
    assert_eq!(store.probe_reading().await, Probe::Sound);
    assert_eq!(store.probe_writing(1).await, Probe::Sound);
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 0);
}

/// Many readers at once are no reason to call a store away.
pub(crate) async fn a_busy_store_is_found_sound(bed: Bed) {
    let store = bed.open().await;
    let readers: Vec<_> = (0..200)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.audit(TENANT, 0, 1000).await.map(drop) })
        })
        .collect();
    assert_eq!(store.probe_reading().await, Probe::Sound);
    for reader in readers {
        reader.await.unwrap().unwrap();
    }
}

pub(crate) async fn commits_and_failures_are_told(bed: Bed) {
    let store = bed.open().await;
    let (mut commits, mut failures) = (store.commits(), store.failures());
    queue(&store, "job_a").await;
    assert!(commits.has_changed().unwrap() && !failures.has_changed().unwrap());
    commits.mark_unchanged();
    // The id is taken, which no guard looks at beforehand.
    assert!(store.accept(crate::bed::new_job("job_a"), None, None, vec![]).await.is_err());
    assert!(failures.has_changed().unwrap());
    failures.mark_unchanged();
    let counts = store.counts();
    assert!(counts.batch_size.count() >= 1 && counts.failed_batches.get() == 1, "{counts:?}");
}

pub(crate) async fn progress_of_many_is_told_at_once(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    queue(&store, "job_b").await;
    start(&store, "job_c", "w1").await;
    let output = |seq| OutputEvent { seq, kind: OutputKind::Stdout, at_ms: 1, bytes: vec![b'x'] };
    store.append_output("job_a".into(), 1, vec![output(1), output(2)]).await.unwrap();
    end(&store, "job_c", 1, JobState::Failed).await.unwrap();
    let mut found = store.progress(&["job_c", "job_none", "job_b", "job_a"]).await.unwrap();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    let expected = |id: &str, state, last_seq| Progress { id: id.into(), state, last_seq };
    assert_eq!(
        found,
        [
            expected("job_a", JobState::Running, 2),
            expected("job_b", JobState::Queued, 0),
            expected("job_c", JobState::Failed, 0)
        ]
    );
    assert_eq!(store.progress(&[]).await.unwrap(), []);
    assert_eq!(store.count_queued().await.unwrap(), 1);
}

pub(crate) async fn the_heads_of_many_chains_are_told_at_once(bed: Bed) {
    let store = bed.open().await;
    for _ in 0..3 {
        store.note(TENANT.into(), event("denied", "x")).await.unwrap();
    }
    let heads = store.audit_heads(&[TENANT, OTHER, "ten_none"]).await.unwrap();
    assert_eq!((heads.get(TENANT), heads.get(OTHER), heads.len()), (Some(&3), None, 1));
}
