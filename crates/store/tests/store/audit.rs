//! The chain of what happened: whole under many writers, and telling when somebody was at it.

use crate::bed::{Bed, OTHER, TENANT, assert_refused, end, event, queue, start};
use cofferdam_core::JobState;
use cofferdam_store::{Store, StoreError, chain_hash};

async fn note(store: &Store, tenant: &str, resource: &str) {
    store.note(tenant.to_owned(), event("case.noted", resource)).await.unwrap();
}

pub(crate) async fn a_chain_holds_what_was_done(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    end(&store, "job_a", 1, JobState::Succeeded).await.unwrap();
    note(&store, OTHER, "elsewhere").await;
    let entries = store.audit(TENANT, 0, 10).await.unwrap();
    let kinds: Vec<_> = entries.iter().map(|entry| (entry.seq, entry.kind.as_str())).collect();
    assert_eq!(kinds, [(1, "job.accepted"), (2, "job.finished")]);
    assert_eq!(entries[0].hash, chain_hash("", TENANT, &entries[0]));
    assert_eq!(entries[1].hash, chain_hash(&entries[0].hash, TENANT, &entries[1]));
    assert_eq!(store.audit(TENANT, 1, 10).await.unwrap(), entries[1..]);
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 2);
    assert_eq!(store.verify_audit(OTHER).await.unwrap(), 1);
    assert_eq!(store.verify_audit("ten_nobody").await.unwrap(), 0);
}

pub(crate) async fn a_refused_write_notes_nothing(bed: Bed) {
    let store = bed.open().await;
    queue(&store, "job_a").await;
    assert_refused!(end(&store, "job_a", 0, JobState::Failed).await, StoreError::WrongState { .. });
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 1);
}

pub(crate) async fn chains_hold_under_writers_of_one_store(bed: Bed) {
    let store = bed.open().await;
    write_at_once(&[store]).await;
}

pub(crate) async fn chains_hold_under_writers_of_two_stores(bed: Bed) {
    let stores = [bed.open().await, bed.open().await];
    write_at_once(&stores).await;
}

async fn write_at_once(stores: &[Store]) {
    let tasks: Vec<_> = (0..400)
        .map(|i| {
            let store = stores[i % stores.len()].clone();
            let tenant = if (i / 2 + i) % 2 == 0 { TENANT } else { OTHER };
            tokio::spawn(async move { note(&store, tenant, &i.to_string()).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for tenant in [TENANT, OTHER] {
        assert_eq!(stores[0].verify_audit(tenant).await.unwrap(), 200, "{tenant}");
    }
}

async fn five_notes(bed: &Bed) -> Store {
    let store = bed.open().await;
    for i in 0..5 {
        note(&store, TENANT, &i.to_string()).await;
        note(&store, OTHER, &i.to_string()).await;
    }
    store
}

async fn assert_broken_at(store: &Store, entry: i64) {
    let broken = store.verify_audit(TENANT).await;
    let place = format!("broken at entry {entry}");
    assert!(
        matches!(&broken, Err(StoreError::Unreadable(text)) if text.ends_with(&place)),
        "{broken:?}, not {place}"
    );
    assert_eq!(store.verify_audit(OTHER).await.unwrap(), 5);
}

pub(crate) async fn edited_entries_are_found(bed: Bed) {
    let store = five_notes(&bed).await;
    // From the last to the first, so that each edit is the first that a walk meets.
    bed.harm("UPDATE audit SET details = '{}' WHERE tenant_id = 'ten_one' AND seq = 5").await;
    assert_broken_at(&store, 5).await;
    bed.harm("UPDATE audit SET actor = 'key_two' WHERE tenant_id = 'ten_one' AND seq = 4").await;
    assert_broken_at(&store, 4).await;
    bed.harm("UPDATE audit SET at_ms = at_ms + 1 WHERE tenant_id = 'ten_one' AND seq = 3").await;
    assert_broken_at(&store, 3).await;
    bed.harm("UPDATE audit SET resource = 'x' WHERE tenant_id = 'ten_one' AND seq = 2").await;
    assert_broken_at(&store, 2).await;
    bed.harm("UPDATE audit SET kind = 'x' WHERE tenant_id = 'ten_one' AND seq = 1").await;
    assert_broken_at(&store, 1).await;
}

pub(crate) async fn a_removed_entry_is_found(bed: Bed) {
    let store = five_notes(&bed).await;
    bed.harm("DELETE FROM audit WHERE tenant_id = 'ten_one' AND seq = 3").await;
    assert_broken_at(&store, 3).await;
    // Closing the gap does not help.
    bed.harm("UPDATE audit SET seq = 3 WHERE tenant_id = 'ten_one' AND seq = 4").await;
    assert_broken_at(&store, 3).await;
}

pub(crate) async fn a_removed_last_entry_is_found(bed: Bed) {
    let store = five_notes(&bed).await;
    bed.harm("DELETE FROM audit WHERE tenant_id = 'ten_one' AND seq = 5").await;
    assert_broken_at(&store, 5).await;
}

pub(crate) async fn a_chain_that_was_emptied_is_found(bed: Bed) {
    let store = five_notes(&bed).await;
    bed.harm("DELETE FROM audit WHERE tenant_id = 'ten_one'").await;
    assert_broken_at(&store, 1).await;
}
