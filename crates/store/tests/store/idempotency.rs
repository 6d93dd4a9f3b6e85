//! Requests that come twice.

use crate::bed::{Bed, OTHER, TENANT, assert_refused, named, new_job};
use cofferdam_store::{Accepted, Idempotency, JobFilter, NewJob, Store, StoreError};

async fn ask(store: &Store, id: &str, name: &str, body: &str) -> Accepted {
    store.accept(new_job(id), None, named(name, body), Vec::new()).await.unwrap()
}

async fn count(store: &Store) -> usize {
    let filter = JobFilter { limit: 1_000, ..JobFilter::default() };
    store.jobs(TENANT, &filter).await.unwrap().len()
}

pub(crate) async fn the_same_request_makes_one_job(bed: Bed) {
    let store = bed.open().await;
    assert_eq!(ask(&store, "job_a", "name", "body").await, Accepted::New { fence: None });
    for id in ["job_b", "job_a"] {
        let before = Accepted::Before { id: "job_a".to_owned() };
        assert_eq!(ask(&store, id, "name", "body").await, before);
    }
    assert_eq!(count(&store).await, 1);
    assert_eq!(ask(&store, "job_c", "another name", "body").await, Accepted::New { fence: None });
}

pub(crate) async fn another_body_is_told(bed: Bed) {
    let store = bed.open().await;
    ask(&store, "job_a", "name", "body").await;
    assert_eq!(ask(&store, "job_b", "name", "other body").await, Accepted::OtherBody);
    assert_eq!(count(&store).await, 1);
}

pub(crate) async fn tenants_and_routes_do_not_share_names(bed: Bed) {
    let store = bed.open().await;
    ask(&store, "job_a", "name", "body").await;
    let theirs = NewJob { tenant: OTHER.to_owned(), ..new_job("job_b") };
    let accepted = store.accept(theirs, None, named("name", "body"), Vec::new()).await.unwrap();
    assert_eq!(accepted, Accepted::New { fence: None });
    let elsewhere = Idempotency { route: "elsewhere", name: "name".to_owned(), body_hash: "body".to_owned() };
    let accepted = store.accept(new_job("job_c"), None, Some(elsewhere), Vec::new()).await.unwrap();
    assert_eq!(accepted, Accepted::New { fence: None });
}

pub(crate) async fn duplicates_at_once_make_one_job(bed: Bed) {
    let store = bed.open().await;
    duplicates(&[store]).await;
}

pub(crate) async fn duplicates_at_two_stores_make_one_job(bed: Bed) {
    let stores = [bed.open().await, bed.open().await];
    duplicates(&stores).await;
}

async fn duplicates(stores: &[Store]) {
    let asked: Vec<_> = (0..50)
        .map(|i| {
            let store = stores[i % stores.len()].clone();
            tokio::spawn(async move {
                let id = format!("job_{i}");
                (ask(&store, &id, "name", "body").await, id)
            })
        })
        .collect();
    let (mut made, mut told) = (Vec::new(), Vec::new());
    for answer in asked {
        match answer.await.unwrap() {
            (Accepted::New { .. }, id) => made.push(id),
            (Accepted::Before { id }, _) => told.push(id),
            (Accepted::OtherBody, id) => panic!("{id} had the same body"),
        }
    }
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(told, vec![made[0].clone(); 49]);
    assert_eq!(count(&stores[0]).await, 1);
}

pub(crate) async fn a_refused_job_leaves_its_name_free(bed: Bed) {
    let store = bed.open().await;
    ask(&store, "job_a", "first", "body").await;
    let taken = store.accept(new_job("job_a"), None, named("second", "body"), Vec::new()).await;
    assert_refused!(taken, StoreError::Failed(_));
    assert_eq!(ask(&store, "job_b", "second", "body").await, Accepted::New { fence: None });
}
