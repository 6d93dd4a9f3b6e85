//! Tenants and their keys.

use crate::bed::{Bed, OTHER, TENANT, assert_refused, event};
use cofferdam_store::{AuditEvent, KeyRecord, NewKey, Store, StoreError};

fn key(id: &str) -> NewKey {
    NewKey {
        id: id.to_owned(),
        tenant: TENANT.to_owned(),
        name: "laptop".to_owned(),
        hash: format!("hash of {id}"),
        scopes: "jobs:read jobs:write".to_owned(),
        agent: None,
        created_at_ms: 100,
        expires_at_ms: Some(900),
    }
}

async fn create(store: &Store, id: &str) -> cofferdam_store::Result<()> {
    store.create_key(key(id), event("key.created", id)).await
}

async fn revoke(store: &Store, tenant: &str, id: &str, at_ms: i64) -> cofferdam_store::Result<()> {
    let event = AuditEvent { at_ms, ..event("key.revoked", id) };
    store.revoke_key(tenant.to_owned(), id.to_owned(), event).await
}

pub(crate) async fn a_key_is_found_by_its_hash(bed: Bed) {
    let store = bed.open().await;
    create(&store, "key_a").await.unwrap();
    create(&store, "key_b").await.unwrap();
    let expected = KeyRecord {
        id: "key_a".to_owned(),
        tenant: TENANT.to_owned(),
        name: "laptop".to_owned(),
        scopes: "jobs:read jobs:write".to_owned(),
        agent: None,
        created_at_ms: 100,
        expires_at_ms: Some(900),
        revoked_at_ms: None,
        last_used_at_ms: None,
    };
    assert_eq!(store.key_by_hash("hash of key_a").await.unwrap(), Some(expected));
    assert_eq!(store.key_by_hash("hash of key_").await.unwrap(), None);
    assert_eq!(store.key_by_hash("HASH OF KEY_A").await.unwrap(), None);
    let ids: Vec<_> = store.keys(TENANT).await.unwrap().into_iter().map(|key| key.id).collect();
    assert_eq!(ids, ["key_a", "key_b"]);
    assert_eq!(store.keys(OTHER).await.unwrap(), []);
}

pub(crate) async fn a_revoked_key_says_since_when(bed: Bed) {
    let store = bed.open().await;
    create(&store, "key_a").await.unwrap();
    // The second time does not make it look as if it had been good until then.
    for at_ms in [300, 400] {
        revoke(&store, TENANT, "key_a", at_ms).await.unwrap();
        let kept = store.key_by_hash("hash of key_a").await.unwrap().unwrap();
        assert_eq!(kept.revoked_at_ms, Some(300));
    }
}

pub(crate) async fn keys_of_other_tenants_are_not_found(bed: Bed) {
    let store = bed.open().await;
    create(&store, "key_a").await.unwrap();
    for (tenant, id) in [(OTHER, "key_a"), (TENANT, "key_b")] {
        assert_refused!(revoke(&store, tenant, id, 300).await, StoreError::NotFound { what: "key" });
    }
    assert_eq!(store.key_by_hash("hash of key_a").await.unwrap().unwrap().revoked_at_ms, None);
    assert_eq!(store.audit(OTHER, 0, 10).await.unwrap(), []);
}

pub(crate) async fn tenants_are_one_for_each_name(bed: Bed) {
    let stores = [bed.open().await, bed.open().await];
    let asked: Vec<_> = (0..20)
        .map(|i| {
            let store = stores[i % 2].clone();
            tokio::spawn(async move { store.ensure_tenant(format!("ten_{i}"), "acme".to_owned(), 5).await })
        })
        .collect();
    let mut ids = Vec::new();
    for id in asked {
        ids.push(id.await.unwrap().unwrap());
    }
    assert_eq!(ids, vec![ids[0].clone(); 20]);
    let other = stores[0].ensure_tenant("ten_x".to_owned(), "Acme".to_owned(), 5).await.unwrap();
    assert_eq!(other, "ten_x");
}

pub(crate) async fn the_same_hash_is_refused(bed: Bed) {
    let store = bed.open().await;
    create(&store, "key_a").await.unwrap();
    let twin = NewKey { hash: "hash of key_a".to_owned(), ..key("key_b") };
    let refused = store.create_key(twin, event("key.created", "key_b")).await;
    assert_refused!(refused, StoreError::Failed(_));
    assert_eq!(store.keys(TENANT).await.unwrap().len(), 1);
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 1);
}
