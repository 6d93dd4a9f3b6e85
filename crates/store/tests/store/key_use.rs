//! That keys were used: noted once in a while, and once by whoever comes first.

use crate::bed::{Bed, OTHER, TENANT, event};
use cofferdam_store::{AuditEvent, NewKey, Store};

async fn with_key(bed: &Bed) -> Store {
    let store = bed.open().await;
    let key = NewKey {
        id: "key_a".to_owned(),
        tenant: TENANT.to_owned(),
        name: "name".to_owned(),
        hash: "hash".to_owned(),
        scopes: "*".to_owned(),
        agent: None,
        created_at_ms: 1,
        expires_at_ms: None,
    };
    store.create_key(key, event("key.created", "key_a")).await.unwrap();
    store
}

async fn use_at(store: &Store, tenant: &str, at_ms: i64, since: i64) -> bool {
    let event = AuditEvent { at_ms, ..event("key.used", "key_a") };
    store.note_key_use(tenant.to_owned(), "key_a".to_owned(), since, event).await.unwrap()
}

pub(crate) async fn a_use_is_noted_once_in_a_period(bed: Bed) {
    let store = with_key(&bed).await;
    assert!(use_at(&store, TENANT, 3_700, 3_600).await);
    assert!(!use_at(&store, TENANT, 3_800, 3_600).await);
    assert!(use_at(&store, TENANT, 7_300, 7_200).await);
    assert_eq!(store.keys(TENANT).await.unwrap()[0].last_used_at_ms, Some(7_300));
    let entries = store.audit(TENANT, 1, 10).await.unwrap();
    let firsts: Vec<_> = entries.iter().map(|entry| entry.details.contains(r#""first":true"#)).collect();
    assert_eq!(firsts, [true, false], "{entries:?}");
    assert!(!use_at(&store, OTHER, 99_999, 99_000).await, "another tenant's");
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 3);
}

pub(crate) async fn uses_at_once_are_noted_once(bed: Bed) {
    let stores = [with_key(&bed).await, bed.open().await];
    let uses: Vec<_> = (0..40_usize)
        .map(|i| {
            let store = stores[i % 2].clone();
            tokio::spawn(async move { use_at(&store, TENANT, 5_000 + i as i64, 3_600).await })
        })
        .collect();
    let mut noted = 0;
    for used in uses {
        noted += usize::from(used.await.unwrap());
    }
    assert_eq!((noted, stores[0].verify_audit(TENANT).await.unwrap()), (1, 2));
}
