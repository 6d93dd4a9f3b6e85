//! Records of artifacts, what they count for, and how they go.

use crate::bed::{Bed, OTHER, TENANT, assert_refused, end, event, named, start};
use cofferdam_core::JobState;
use cofferdam_store::{
    Accepted, ArtifactFilter, ArtifactState, Attempt, DoneArtifact, NewArtifact, Page, Store, StoreError,
};
use sqlx::Row;

const QUOTA: i64 = 1000;

fn new(id: &str, size_bytes: i64) -> NewArtifact {
    NewArtifact {
        id: id.to_owned(),
        tenant: TENANT.to_owned(),
        job: None,
        session: None,
        step: None,
        name: format!("name of {id}"),
        content_type: "text/plain".to_owned(),
        size_bytes,
        sha256: None,
        attempt: None,
        created_at_ms: 100,
        expires_at_ms: 5_000,
    }
}

fn attempt(name: &str) -> Attempt {
    Attempt { name: name.to_owned(), wrapped_key: format!("key of {name}") }
}

async fn create(store: &Store, artifact: NewArtifact) -> cofferdam_store::Result<Accepted> {
    let made = event("artifact.created", &artifact.id.clone());
    store.create_artifact(artifact, QUOTA, None, vec![made]).await
}

async fn begin(store: &Store, id: &str, name: &str) -> cofferdam_store::Result<()> {
    store.begin_upload(TENANT.to_owned(), id.to_owned(), attempt(name), 200).await
}

async fn end_upload(store: &Store, id: &str, name: &str, hash: &str) -> cofferdam_store::Result<()> {
    store.end_upload(TENANT.to_owned(), id.to_owned(), name.to_owned(), hash.to_owned()).await
}

async fn finalize(store: &Store, id: &str, hash: &str) -> cofferdam_store::Result<()> {
    let ready = event("artifact.ready", id);
    store.finalize_artifact(TENANT.to_owned(), id.to_owned(), hash.to_owned(), 9_000, ready).await
}

async fn delete(store: &Store, tenant: &str, id: &str) -> cofferdam_store::Result<()> {
    store.delete_artifact(tenant.to_owned(), id.to_owned(), event("artifact.deleted", id)).await
}

async fn ready(store: &Store, id: &str, size: i64) {
    create(store, new(id, size)).await.unwrap();
    begin(store, id, "one").await.unwrap();
    end_upload(store, id, "one", "hash").await.unwrap();
    finalize(store, id, "hash").await.unwrap();
}

async fn ids(store: &Store, tenant: &str, job: Option<&str>) -> Vec<String> {
    let filter = ArtifactFilter { job: job.map(str::to_owned), limit: 100, ..ArtifactFilter::default() };
    store.artifacts(tenant, &filter).await.unwrap().into_iter().map(|artifact| artifact.id).collect()
}

/// What is counted for the tenant is what its records add up to.
async fn assert_counted(bed: &Bed, store: &Store) -> i64 {
    use sqlx::Executor;
    let text = "SELECT CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) FROM artifacts \
                WHERE tenant_id = 'ten_one' AND state <> 'deleting'";
    let sum: i64 = bed.raw().await.fetch_one(text).await.unwrap().try_get(0).unwrap();
    assert_eq!(store.artifact_bytes(TENANT).await.unwrap(), sum, "I5");
    sum
}

pub(crate) async fn an_artifact_goes_through_its_states(bed: Bed) {
    let store = bed.open().await;
    assert_eq!(create(&store, new("art_a", 10)).await.unwrap(), Accepted::New { fence: None });
    let record = store.artifact(TENANT, "art_a").await.unwrap().unwrap();
    assert_eq!((record.state, record.attempt, record.size_bytes), (ArtifactState::Uploading, None, 10));
    assert_refused!(finalize(&store, "art_a", "hash").await, StoreError::WrongArtifactState { .. });
    begin(&store, "art_a", "one").await.unwrap();
    assert_refused!(finalize(&store, "art_a", "hash").await, StoreError::WrongArtifactState { .. });
    end_upload(&store, "art_a", "one", "hash").await.unwrap();
    assert_refused!(finalize(&store, "art_a", "other").await, StoreError::WrongArtifactState { .. });
    finalize(&store, "art_a", "hash").await.unwrap();
    finalize(&store, "art_a", "hash").await.unwrap();
    assert_refused!(finalize(&store, "art_a", "other").await, StoreError::WrongArtifactState { .. });
    let record = store.artifact(TENANT, "art_a").await.unwrap().unwrap();
    assert_eq!((record.state, record.attempt), (ArtifactState::Ready, Some(attempt("one"))));
    assert_eq!((record.sha256.as_deref(), record.expires_at_ms), (Some("hash"), 9_000));
    assert_refused!(begin(&store, "art_a", "two").await, StoreError::WrongArtifactState { state: "ready" });
    assert_refused!(end_upload(&store, "art_a", "one", "x").await, StoreError::WrongArtifactState { .. });
    delete(&store, TENANT, "art_a").await.unwrap();
    assert_eq!(store.artifact(TENANT, "art_a").await.unwrap(), None);
    assert_refused!(begin(&store, "art_a", "two").await, StoreError::NotFound { .. });
    assert_refused!(delete(&store, TENANT, "art_a").await, StoreError::NotFound { .. });
    let kinds: Vec<_> =
        store.audit(TENANT, 0, 10).await.unwrap().into_iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, ["artifact.created", "artifact.ready", "artifact.deleted"]);
}

pub(crate) async fn a_hash_that_was_announced_is_the_one(bed: Bed) {
    let store = bed.open().await;
    create(&store, NewArtifact { sha256: Some("said".to_owned()), ..new("art_a", 1) }).await.unwrap();
    begin(&store, "art_a", "one").await.unwrap();
    end_upload(&store, "art_a", "one", "other").await.unwrap();
    assert_refused!(finalize(&store, "art_a", "other").await, StoreError::WrongArtifactState { .. });
    end_upload(&store, "art_a", "one", "said").await.unwrap();
    finalize(&store, "art_a", "said").await.unwrap();
}

pub(crate) async fn only_its_tenant_sees_an_artifact(bed: Bed) {
    let store = bed.open().await;
    ready(&store, "art_a", 10).await;
    assert_eq!(store.artifact(OTHER, "art_a").await.unwrap(), None);
    assert_eq!(ids(&store, OTHER, None).await, [""; 0]);
    assert_refused!(delete(&store, OTHER, "art_a").await, StoreError::NotFound { .. });
    let stolen = store.begin_upload(OTHER.to_owned(), "art_a".to_owned(), attempt("x"), 200).await;
    assert_refused!(stolen, StoreError::NotFound { .. });
    assert_eq!(store.artifact_bytes(OTHER).await.unwrap(), 0);
    assert_eq!(ids(&store, TENANT, None).await, ["art_a"]);
    assert!(store.artifact_of_anyone("art_a").await.unwrap().is_some());
}

/// The last place in the quota is taken once, whoever asks at the same time, in one process or in two.
pub(crate) async fn the_quota_holds_for_all_together(bed: Bed) {
    let stores = [bed.open().await, bed.open().await];
    create(&stores[0], new("art_first", QUOTA - 99)).await.unwrap();
    let tries: Vec<_> = (0..40)
        .map(|i| {
            let store = stores[i % 2].clone();
            tokio::spawn(async move { create(&store, new(&format!("art_{i}"), 50)).await })
        })
        .collect();
    let mut made = 0;
    for one in tries {
        match one.await.unwrap() {
            Ok(_) => made += 1,
            other => assert_refused!(other, StoreError::OverQuota { asked: 50, limit: QUOTA, .. }),
        }
    }
    assert_eq!(made, 1);
    assert_eq!(assert_counted(&bed, &stores[0]).await, QUOTA - 49);
    // Exactly full is allowed, and what goes gives its room back at once.
    create(&stores[1], new("art_last", 49)).await.unwrap();
    assert_refused!(create(&stores[1], new("art_more", 1)).await, StoreError::OverQuota { .. });
    delete(&stores[1], TENANT, "art_last").await.unwrap();
    create(&stores[0], new("art_again", 49)).await.unwrap();
    assert_counted(&bed, &stores[0]).await;
}

pub(crate) async fn what_grows_stays_within_the_quota(bed: Bed) {
    let store = bed.open().await;
    create(&store, new("art_a", 10)).await.unwrap();
    let grow = |to| store.grow_artifact(TENANT.to_owned(), "art_a".to_owned(), to, QUOTA);
    grow(QUOTA).await.unwrap();
    assert_refused!(grow(QUOTA + 1).await, StoreError::OverQuota { .. });
    assert_eq!(assert_counted(&bed, &store).await, QUOTA);
    grow(20).await.unwrap();
    assert_eq!(assert_counted(&bed, &store).await, 20);
}

pub(crate) async fn a_later_upload_takes_over(bed: Bed) {
    let store = bed.open().await;
    create(&store, new("art_a", 10)).await.unwrap();
    begin(&store, "art_a", "one").await.unwrap();
    end_upload(&store, "art_a", "one", "hash").await.unwrap();
    begin(&store, "art_a", "two").await.unwrap();
    // The first one's bytes are not the artifact's any more.
    assert_refused!(finalize(&store, "art_a", "hash").await, StoreError::WrongArtifactState { .. });
    assert_refused!(end_upload(&store, "art_a", "one", "x").await, StoreError::WrongArtifactState { .. });
    assert!(!store.has_attempt(TENANT, "art_a", "one").await.unwrap());
    assert!(store.has_attempt(TENANT, "art_a", "two").await.unwrap());
    assert!(!store.has_attempt(OTHER, "art_a", "two").await.unwrap());
    let late = store.begin_upload(TENANT.to_owned(), "art_a".to_owned(), attempt("x"), 5_000).await;
    assert_refused!(late, StoreError::WrongArtifactState { .. });
}

pub(crate) async fn deleting_takes_the_key_at_once(bed: Bed) {
    use sqlx::Executor;
    let store = bed.open().await;
    ready(&store, "art_a", 10).await;
    delete(&store, TENANT, "art_a").await.unwrap();
    let row =
        bed.raw().await.fetch_one("SELECT wrapped_key FROM artifacts WHERE id = 'art_a'").await.unwrap();
    assert_eq!(row.try_get::<Option<String>, _>(0).unwrap(), None);
    assert_eq!(store.deleting_artifacts(10).await.unwrap(), [(TENANT.to_owned(), "art_a".to_owned())]);
    assert!(!store.has_attempt(TENANT, "art_a", "one").await.unwrap());
    store.forget_artifact("art_a".to_owned()).await.unwrap();
    assert_eq!(store.deleting_artifacts(10).await.unwrap(), []);
    // What is not about to go is not forgotten.
    ready(&store, "art_b", 10).await;
    store.forget_artifact("art_b".to_owned()).await.unwrap();
    assert_eq!(ids(&store, TENANT, None).await, ["art_b"]);
}

fn of_job(id: &str, job: &str, size: i64) -> NewArtifact {
    NewArtifact { job: Some(job.to_owned()), attempt: Some(attempt("one")), ..new(id, size) }
}

async fn finalize_of_job(store: &Store, fence: i64, artifacts: &[&str]) -> cofferdam_store::Result<()> {
    let done = artifacts.iter().map(|id| DoneArtifact {
        id: (*id).to_owned(),
        size_bytes: 7,
        sha256: format!("hash of {id}"),
    });
    let made = event("artifact.created", "");
    store.finalize_job_artifacts("job_a".to_owned(), fence, done.collect(), 9_000, made).await
}

pub(crate) async fn a_jobs_artifacts_are_ready_all_at_once(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    for id in ["art_a", "art_b"] {
        create(&store, of_job(id, "job_a", 100)).await.unwrap();
    }
    assert_refused!(finalize_of_job(&store, 2, &["art_a"]).await, StoreError::Fenced);
    assert_refused!(finalize_of_job(&store, 1, &["art_a", "art_x"]).await, StoreError::NotFound { .. });
    let state = async |id| store.artifact(TENANT, id).await.unwrap().unwrap().state;
    assert_eq!(state("art_a").await, ArtifactState::Uploading);
    finalize_of_job(&store, 1, &["art_a", "art_b"]).await.unwrap();
    assert_eq!((state("art_a").await, state("art_b").await), (ArtifactState::Ready, ArtifactState::Ready));
    assert_eq!(assert_counted(&bed, &store).await, 14, "what was counted ahead is given back");
    assert_eq!(ids(&store, TENANT, Some("job_a")).await, ["art_b", "art_a"]);
    assert_eq!(ids(&store, TENANT, Some("job_b")).await, [""; 0]);
}

pub(crate) async fn a_sessions_artifacts_are_its_own(bed: Bed) {
    let store = bed.open().await;
    let of = |id: &str, step: Option<&str>| NewArtifact {
        session: Some("ses_a".to_owned()),
        step: step.map(str::to_owned),
        attempt: Some(attempt("one")),
        ..new(id, 100)
    };
    create(&store, of("art_a", Some("stp_a"))).await.unwrap();
    create(&store, of("art_b", None)).await.unwrap();
    ready(&store, "art_c", 10).await;
    let finalize = async |tenant: &str, session: &str, ids: &[&str]| {
        let done = ids.iter().map(|id| DoneArtifact {
            id: (*id).to_owned(),
            size_bytes: 7,
            sha256: format!("hash of {id}"),
        });
        let (tenant, session, done) = (tenant.to_owned(), session.to_owned(), done.collect());
        store.finalize_session_artifacts(tenant, session, done, 9_000, event("artifact.created", "")).await
    };
    for (tenant, session) in [(OTHER, "ses_a"), (TENANT, "ses_b")] {
        assert_refused!(finalize(tenant, session, &["art_a"]).await, StoreError::NotFound { .. });
    }
    assert_refused!(finalize(TENANT, "ses_a", &["art_a", "art_c"]).await, StoreError::NotFound { .. });
    finalize(TENANT, "ses_a", &["art_a", "art_b"]).await.unwrap();
    assert_eq!(assert_counted(&bed, &store).await, 24, "what was counted ahead is given back");
    let filter =
        ArtifactFilter { session: Some("ses_a".to_owned()), limit: 100, ..ArtifactFilter::default() };
    let found = store.artifacts(TENANT, &filter).await.unwrap();
    let shown: Vec<_> = found.iter().map(|one| (one.id.as_str(), one.step.as_deref(), one.state)).collect();
    let ready = ArtifactState::Ready;
    assert_eq!(shown, [("art_b", None, ready), ("art_a", Some("stp_a"), ready)]);
    assert_eq!(store.artifacts(OTHER, &filter).await.unwrap(), []);
    // No job is missing that they would go with.
    assert_eq!(store.expire_artifacts_without_job(200, 10).await.unwrap(), 0);
}

pub(crate) async fn a_deleted_job_takes_its_artifacts(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    create(&store, of_job("art_a", "job_a", 100)).await.unwrap();
    ready(&store, "art_b", 10).await;
    end(&store, "job_a", 1, JobState::Succeeded).await.unwrap();
    store.delete_job(TENANT.to_owned(), "job_a".to_owned(), event("job.deleted", "job_a")).await.unwrap();
    assert_eq!(ids(&store, TENANT, None).await, ["art_b"]);
    assert_eq!(store.deleting_artifacts(10).await.unwrap(), [(TENANT.to_owned(), "art_a".to_owned())]);
    assert_eq!(assert_counted(&bed, &store).await, 10);
}

pub(crate) async fn what_is_over_goes(bed: Bed) {
    let store = bed.open().await;
    create(&store, new("art_unfinished", 10)).await.unwrap();
    ready(&store, "art_ready", 10).await;
    assert_eq!(store.expire_artifacts(4_999, 10).await.unwrap(), 0);
    assert_eq!(store.expire_artifacts(5_000, 10).await.unwrap(), 1);
    assert_eq!(ids(&store, TENANT, None).await, ["art_ready"]);
    assert_eq!(store.expire_artifacts(5_000, 10).await.unwrap(), 0);
    assert_eq!(store.expire_artifacts(9_000, 10).await.unwrap(), 1);
    assert_eq!(assert_counted(&bed, &store).await, 0);
    store.verify_audit(TENANT).await.unwrap();
}

/// However a job went, what it left does not stay.
pub(crate) async fn artifacts_of_no_job_go(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    create(&store, of_job("art_a", "job_a", 10)).await.unwrap();
    create(&store, of_job("art_b", "job_gone", 10)).await.unwrap();
    ready(&store, "art_c", 10).await;
    assert_eq!(store.expire_artifacts_without_job(200, 10).await.unwrap(), 1);
    assert_eq!(ids(&store, TENANT, None).await, ["art_c", "art_a"]);
}

pub(crate) async fn the_same_request_makes_one_artifact(bed: Bed) {
    let store = bed.open().await;
    let again = |id: &'static str, body: &'static str| {
        store.create_artifact(new(id, 10), QUOTA, named("name", body), Vec::new())
    };
    assert_eq!(again("art_a", "body").await.unwrap(), Accepted::New { fence: None });
    assert_eq!(again("art_b", "body").await.unwrap(), Accepted::Before { id: "art_a".to_owned() });
    assert_eq!(again("art_c", "other").await.unwrap(), Accepted::OtherBody);
    assert_eq!(assert_counted(&bed, &store).await, 10);
    // One that found no room leaves its name free.
    let large = store.create_artifact(new("art_d", QUOTA), QUOTA, named("large", "body"), Vec::new()).await;
    assert_refused!(large, StoreError::OverQuota { .. });
    delete(&store, TENANT, "art_a").await.unwrap();
    let now = store.create_artifact(new("art_d", QUOTA), QUOTA, named("large", "body"), Vec::new()).await;
    assert_eq!(now.unwrap(), Accepted::New { fence: None });
}

pub(crate) async fn pages_of_artifacts_have_no_gap(bed: Bed) {
    let store = bed.open().await;
    for i in 0..7 {
        create(&store, NewArtifact { created_at_ms: 100 + i / 3, ..new(&format!("art_{i}"), 1) })
            .await
            .unwrap();
    }
    let (mut seen, mut filter) = (Vec::new(), ArtifactFilter { limit: 2, ..ArtifactFilter::default() });
    loop {
        let page = store.artifacts(TENANT, &filter).await.unwrap();
        let Some(last) = page.last() else { break };
        filter.before = Some(Page { created_at_ms: last.created_at_ms, id: last.id.clone() });
        seen.extend(page.into_iter().map(|artifact| artifact.id));
    }
    assert_eq!(seen, ["art_6", "art_5", "art_4", "art_3", "art_2", "art_1", "art_0"]);
    let (mut by_id, mut after) = (Vec::new(), String::new());
    ready(&store, "art_7", 1).await;
    ready(&store, "art_8", 1).await;
    while let [artifact] = &store.ready_artifacts(&after, 1).await.unwrap()[..] {
        after.clone_from(&artifact.id);
        by_id.push(artifact.id.clone());
    }
    assert_eq!(by_id, ["art_7", "art_8"]);
}
