//! Images that were registered: who sees them, and in which order.

use crate::bed::{Bed, OTHER, TENANT, assert_refused, event};
use cofferdam_store::{ImageFilter, ImageRecord, Page, Store, StoreError};

fn image(id: &str, tenant: Option<&str>, name: &str, at: i64, profiles: &[&str]) -> ImageRecord {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    ImageRecord {
        id: id.to_owned(),
        tenant: tenant.map(str::to_owned),
        name: name.to_owned(),
        digest: format!("sha256:{}", "0".repeat(64)),
        profiles: words(profiles),
        capabilities: words(&["shell", "python"]),
        has_credentials: id.ends_with('c'),
        created_by: "key_one".to_owned(),
        created_at_ms: at,
    }
}

async fn create(store: &Store, image: ImageRecord) -> cofferdam_store::Result<()> {
    let event = event("image.registered", &image.id);
    store.create_image(image, 3, TENANT.to_owned(), event).await
}

async fn ids(store: &Store, tenant: &str, profile: Option<&str>) -> Vec<String> {
    let filter = ImageFilter { profile: profile.map(str::to_owned), before: None };
    store.images(tenant, &filter, 9).await.unwrap().into_iter().map(|image| image.id).collect()
}

/// Two of one's own, one of another's, and one of everybody's.
async fn four(bed: &Bed) -> Store {
    let store = bed.open().await;
    for image in [
        image("img_a", Some(TENANT), "app:1", 10, &["base-tools", "python-tools"]),
        image("img_b", Some(OTHER), "app:1", 20, &["python-tools"]),
        image("img_c", None, "app:1", 30, &["base-tools"]),
        image("img_d", Some(TENANT), "other:1", 40, &["python-tools-more"]),
    ] {
        create(&store, image).await.unwrap();
    }
    store
}

pub(crate) async fn a_tenant_sees_its_own_images_and_everybodys(bed: Bed) {
    let store = four(&bed).await;
    assert_eq!(ids(&store, TENANT, None).await, ["img_d", "img_c", "img_a"]);
    assert_eq!(ids(&store, OTHER, None).await, ["img_c", "img_b"]);
    assert_eq!(ids(&store, "ten_none", None).await, ["img_c"]);
    let whole = image("img_c", None, "app:1", 30, &["base-tools"]);
    assert_eq!(store.image(OTHER, "img_c").await.unwrap(), Some(whole));
    assert_eq!(store.image(OTHER, "img_a").await.unwrap(), None);
    assert_eq!(store.image("", "img_a").await.unwrap(), None);
    assert!(store.image(TENANT, "img_a").await.unwrap().is_some());
}

pub(crate) async fn images_are_found_by_their_profile(bed: Bed) {
    let store = four(&bed).await;
    assert_eq!(ids(&store, TENANT, Some("base-tools")).await, ["img_c", "img_a"]);
    // A part of a name is not the name, and what means something to the database is nobody's.
    assert_eq!(ids(&store, TENANT, Some("python-tools")).await, ["img_a"]);
    for odd in ["", "%", "python_tools", "base-tools python-tools", "tools", "BASE-TOOLS"] {
        assert_eq!(ids(&store, TENANT, Some(odd)).await, Vec::<String>::new(), "{odd:?}");
    }
    let page = Page { created_at_ms: 30, id: "img_c".to_owned() };
    let filter = ImageFilter { profile: None, before: Some(page) };
    let rest = store.images(TENANT, &filter, 1).await.unwrap();
    assert_eq!(rest.into_iter().map(|image| image.id).collect::<Vec<_>>(), ["img_a"]);
    assert_refused!(store.images(TENANT, &filter, -1).await, StoreError::Limit { .. });
}

pub(crate) async fn a_name_is_of_one_image_of_an_owner(bed: Bed) {
    let store = four(&bed).await;
    let before = store.verify_audit(TENANT).await.unwrap();
    for tenant in [Some(TENANT), None] {
        let again = create(&store, image("img_e", tenant, "app:1", 50, &[])).await;
        assert_refused!(again, StoreError::Taken { what: "image" });
    }
    create(&store, image("img_f", Some(TENANT), "third:1", 60, &[])).await.unwrap();
    let fourth = create(&store, image("img_g", Some(TENANT), "fourth:1", 70, &[])).await;
    assert_refused!(fourth, StoreError::OverQuota { used: 3, limit: 3, .. });
    assert_eq!(store.image(TENANT, "img_g").await.unwrap(), None);
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), before + 1);
}

pub(crate) async fn only_an_owners_image_is_taken_out(bed: Bed) {
    let store = four(&bed).await;
    let delete = |owner: Option<&str>, id: &str| {
        let event = event("image.unregistered", id);
        store.delete_image(owner.map(str::to_owned), id.to_owned(), TENANT.to_owned(), event)
    };
    for (owner, id) in [(Some(OTHER), "img_a"), (None, "img_a"), (Some(TENANT), "img_c"), (None, "img_x")] {
        assert_refused!(delete(owner, id).await, StoreError::NotFound { what: "image" });
    }
    delete(Some(TENANT), "img_a").await.unwrap();
    delete(None, "img_c").await.unwrap();
    assert_eq!(ids(&store, TENANT, None).await, ["img_d"]);
    // Its images go with a tenant; everybody's do not.
    create(&store, image("img_h", None, "all:1", 80, &[])).await.unwrap();
    let deleted = event("tenant.deleted", TENANT);
    store.delete_tenant(TENANT.to_owned(), OTHER.to_owned(), deleted).await.unwrap();
    assert_eq!(ids(&store, TENANT, None).await, ["img_h"]);
    assert_eq!(ids(&store, OTHER, None).await, ["img_h", "img_b"]);
    // All have the same layers, which are kept once.
    let digest = image("img_h", None, "", 0, &[]).digest;
    assert_eq!(store.image_digests().await.unwrap(), [digest]);
}
