//! Tenants, what each may have, and whose jobs wait.

use crate::bed::{Bed, OTHER, TENANT, assert_refused, claim, end, event, named, new_job, queue, start};
use cofferdam_core::JobState;
use cofferdam_store::{Accepted, Location, NewJob, NewKey, QuotaOverrides, Store, StoreError, TenantRecord};
use sqlx::Executor;

fn tenant(id: &str) -> TenantRecord {
    let quotas = QuotaOverrides {
        max_running: Some(1),
        max_queued: Some(2),
        requests_per_second: Some(3),
        burst: None,
        artifact_bytes: Some(i64::MAX),
    };
    TenantRecord { id: id.to_owned(), name: format!("name of {id}"), created_at_ms: 7, quotas }
}

async fn create(store: &Store, tenant: TenantRecord) -> cofferdam_store::Result<()> {
    let event = event("tenant.created", &tenant.id);
    store.create_tenant(tenant, TENANT.to_owned(), event).await
}

pub(crate) async fn a_tenant_is_there_with_its_quotas(bed: Bed) {
    let store = bed.open().await;
    create(&store, tenant("ten_new")).await.unwrap();
    assert_eq!(store.tenant("ten_new").await.unwrap(), Some(tenant("ten_new")));
    assert_eq!(store.tenant_by_name("name of ten_new").await.unwrap(), Some(tenant("ten_new")));
    assert_eq!(store.tenant("name of ten_new").await.unwrap(), None);
    let twin = TenantRecord { id: "ten_twin".to_owned(), ..tenant("ten_new") };
    assert_refused!(create(&store, twin).await, StoreError::Taken { what: "tenant" });
    let changed = QuotaOverrides { burst: Some(9), ..QuotaOverrides::default() };
    let (id, by) = ("ten_new".to_owned(), TENANT.to_owned());
    store.set_quotas(id.clone(), changed, by.clone(), event("tenant.updated", &id)).await.unwrap();
    assert_eq!(store.tenant("ten_new").await.unwrap().unwrap().quotas, changed);
    let nobody = store.set_quotas("ten_x".to_owned(), changed, by, event("tenant.updated", "ten_x")).await;
    assert_refused!(nobody, StoreError::NotFound { what: "tenant" });
    // What was done is in the chain of whoever did it.
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 2);
}

pub(crate) async fn tenants_are_listed_in_pages(bed: Bed) {
    let store = bed.open().await;
    create(&store, tenant("ten_a")).await.unwrap();
    let ids = async |after: &str, limit| -> Vec<String> {
        store.tenants(after, limit).await.unwrap().into_iter().map(|tenant| tenant.id).collect()
    };
    assert_eq!(ids("", 10).await, ["ten_a", TENANT, OTHER]);
    assert_eq!(ids("ten_a", 1).await, [TENANT]);
    assert_eq!(ids(OTHER, 10).await, Vec::<String>::new());
}

pub(crate) async fn a_deleted_tenant_is_gone_and_its_keys_with_it(bed: Bed) {
    let store = bed.open().await;
    let key = NewKey {
        id: "key_a".to_owned(),
        tenant: TENANT.to_owned(),
        name: "laptop".to_owned(),
        hash: "hash".to_owned(),
        scopes: "*".to_owned(),
        agent: None,
        created_at_ms: 1,
        expires_at_ms: None,
    };
    store.create_key(key, event("key.created", "key_a")).await.unwrap();
    start(&store, "job_a", "worker").await;
    let delete = || store.delete_tenant(TENANT.to_owned(), OTHER.to_owned(), event("tenant.deleted", TENANT));
    assert_refused!(delete().await, StoreError::InUse { what: "tenant", count: 1 });
    assert!(store.tenant(TENANT).await.unwrap().is_some(), "a refusal changes nothing");
    end(&store, "job_a", 1, JobState::Succeeded).await.unwrap();
    delete().await.unwrap();
    assert_eq!(store.tenant(TENANT).await.unwrap(), None);
    assert_eq!(store.key_by_hash("hash").await.unwrap(), None);
    assert_refused!(delete().await, StoreError::NotFound { what: "tenant" });
    // Its name is free, its records are still there.
    let again = TenantRecord { name: format!("{TENANT}'s name"), ..tenant("ten_again") };
    let made = store.create_tenant(again, OTHER.to_owned(), event("tenant.created", "ten_again")).await;
    assert!(made.is_ok(), "{made:?}");
    assert!(store.verify_audit(TENANT).await.unwrap() > 0);
}

pub(crate) async fn a_key_brings_its_tenants_quotas(bed: Bed) {
    let store = bed.open().await;
    create(&store, tenant("ten_new")).await.unwrap();
    let key = NewKey {
        id: "key_a".to_owned(),
        tenant: "ten_new".to_owned(),
        name: "laptop".to_owned(),
        hash: "hash".to_owned(),
        scopes: "*".to_owned(),
        agent: None,
        created_at_ms: 1,
        expires_at_ms: None,
    };
    store.create_key(key, event("key.created", "key_a")).await.unwrap();
    let found = store.key_by_hash("hash").await.unwrap().unwrap();
    assert_eq!((found.key.tenant.as_str(), found.quotas), ("ten_new", tenant("ten_new").quotas));
}

/// However many ask at once, and at however many stores.
pub(crate) async fn a_queue_takes_exactly_what_it_may(bed: Bed) {
    let stores = [bed.open().await, bed.open().await];
    let asked: Vec<_> = (0..200)
        .map(|i| {
            let store = stores[i % 2].clone();
            tokio::spawn(async move {
                let id = format!("job_{i}");
                let events = vec![event("job.accepted", &id)];
                store.accept_within(new_job(&id), None, named(&id, "body"), events, 7).await
            })
        })
        .collect();
    let mut taken = 0;
    for answer in asked {
        match answer.await.unwrap() {
            Ok(Accepted::New { fence: None }) => taken += 1,
            Err(StoreError::QueueFull { queued: 7, most: 7 }) => {}
            other => panic!("{other:?}"),
        }
    }
    let store = &stores[0];
    assert_eq!((taken, store.queued_of(TENANT, 100).await.unwrap().len()), (7, 7));
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 7, "a refusal leaves nothing");
    // What starts at once is not counted, nor is another tenant.
    let at_once = store.accept_within(new_job("run"), Some(claim("worker")), None, Vec::new(), 7).await;
    assert!(matches!(at_once, Ok(Accepted::New { fence: Some(1) })), "{at_once:?}");
    let foreign = NewJob { tenant: OTHER.to_owned(), ..new_job("foreign") };
    let foreign = store.accept_within(foreign, None, None, Vec::new(), 1).await;
    assert!(matches!(foreign, Ok(Accepted::New { .. })), "{foreign:?}");
    // A name that was used for a refused one is free, and one that was taken still answers.
    let first = store.queued_of(TENANT, 1).await.unwrap().remove(0).id;
    let again = store.accept_within(new_job("again"), None, named(&first, "body"), Vec::new(), 7).await;
    assert_eq!(again.unwrap(), Accepted::Before { id: first });
}

pub(crate) async fn tenants_that_wait_are_found_with_their_oldest(bed: Bed) {
    let store = bed.open().await;
    assert_eq!(store.waiting_tenants().await.unwrap(), []);
    queue(&store, "job_b").await;
    queue(&store, "job_a").await;
    start(&store, "job_0", "worker").await;
    let pair = |tenant: &str, job: &str| (tenant.to_owned(), job.to_owned());
    assert_eq!(store.waiting_tenants().await.unwrap(), [pair(TENANT, "job_a")]);
    let foreign = NewJob { tenant: OTHER.to_owned(), ..new_job("foreign") };
    store.accept(foreign, None, None, Vec::new()).await.unwrap();
    assert_eq!(store.waiting_tenants().await.unwrap(), [pair(TENANT, "job_a"), pair(OTHER, "foreign")]);
    store.claim("job_a".to_owned(), claim("worker"), event("job.running", "job_a")).await.unwrap();
    store.claim("job_b".to_owned(), claim("worker"), event("job.running", "job_b")).await.unwrap();
    assert_eq!(store.waiting_tenants().await.unwrap(), [pair(OTHER, "foreign")]);
    assert_eq!(store.queued_of(TENANT, 10).await.unwrap(), []);
}

/// A store of before there were operators: whoever set it up becomes one, and nobody else does.
pub(crate) async fn the_first_key_of_an_older_store_becomes_an_operators(bed: Bed) {
    let bytes = match &bed.location {
        Location::Sqlite(path) => {
            std::fs::write(path, "").unwrap();
            "BLOB"
        }
        Location::Postgres(_) => "BYTEA",
    };
    let tables = include_str!("../../migrations/0001_jobs.sql").replace("{{bytes}}", bytes);
    let rows = "CREATE TABLE schema_version (version BIGINT NOT NULL); INSERT INTO schema_version VALUES (1); \
        INSERT INTO tenants VALUES ('ten_one', 'default', 1); \
        INSERT INTO keys (id, tenant_id, name, hash, scopes, created_at_ms) VALUES \
        ('key_1', 'ten_one', 'admin', 'h1', '*', 10), ('key_2', 'ten_one', 'admin', 'h2', '*', 20), \
        ('key_3', 'ten_one', 'ci', 'h3', '*', 5)";
    let mut raw = bed.raw().await;
    raw.execute(sqlx::AssertSqlSafe(format!("{tables}; {rows}"))).await.unwrap();
    drop(raw);
    let store = Store::open(&bed.location).await.unwrap();
    let scopes: Vec<_> =
        store.keys(TENANT).await.unwrap().into_iter().map(|key| (key.id, key.scopes)).collect();
    let expected = [("key_3", "*"), ("key_1", "* operator"), ("key_2", "*")];
    assert_eq!(scopes, expected.map(|(id, scopes)| (id.to_owned(), scopes.to_owned())));
    assert_eq!(store.tenant(TENANT).await.unwrap().unwrap().quotas, QuotaOverrides::default());
}
