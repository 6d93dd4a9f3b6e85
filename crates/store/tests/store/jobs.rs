//! Jobs come in, are found, listed and claimed.

use crate::bed::{Bed, OTHER, TENANT, assert_refused, claim, event, new_job, queue, start, state};
use cofferdam_core::JobState;
use cofferdam_store::{Accepted, JobFilter, JobRecord, NewJob, Page, Store, StoreError};

pub(crate) async fn an_accepted_job_is_there(bed: Bed) {
    let store = bed.open().await;
    let accepted = store.accept(new_job("job_a"), None, None, Vec::new()).await.unwrap();
    assert_eq!(accepted, Accepted::New { fence: None });
    let expected = JobRecord {
        id: "job_a".to_owned(),
        tenant: TENANT.to_owned(),
        agent: Some("agent".to_owned()),
        task_id: "task of job_a".to_owned(),
        state: JobState::Queued,
        reason: None,
        message: None,
        created_at_ms: 100,
        transition_at_ms: 100,
        spec: r#"{"argv":["true"]}"#.to_owned(),
        result: None,
        fence: 0,
        starts: 0,
        worker: None,
        cancelled_by: None,
        output_expired_at_ms: None,
        started_at_ms: None,
        terms: Some("{}".to_owned()),
        owner: None,
        lease_until_ms: None,
        traceparent: None,
    };
    assert_eq!(store.job(TENANT, "job_a").await.unwrap().as_ref(), Some(&expected));
    assert_eq!(store.jobs(TENANT, &all()).await.unwrap(), std::slice::from_ref(&expected));
    assert_eq!(store.queued_of(TENANT, 10).await.unwrap(), [expected]);
    assert_eq!(store.job(OTHER, "job_a").await.unwrap(), None);
    assert_eq!(store.jobs(OTHER, &all()).await.unwrap(), []);
}

pub(crate) async fn a_job_says_when_it_started(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    queue(&store, "job_b").await;
    let started = async |id: &str| store.job(TENANT, id).await.unwrap().unwrap().started_at_ms;
    assert_eq!((started("job_a").await, started("job_b").await), (Some(100), None));
    store.claim("job_b".to_owned(), claim("w1"), event("job.running", "job_b")).await.unwrap();
    assert_eq!(started("job_b").await, Some(1_000));
}

pub(crate) async fn an_accepted_job_can_be_claimed_at_once(bed: Bed) {
    let store = bed.open().await;
    let accepted = store.accept(new_job("job_a"), Some(claim("w1")), None, Vec::new()).await.unwrap();
    assert_eq!(accepted, Accepted::New { fence: Some(1) });
    let job = store.job(TENANT, "job_a").await.unwrap().unwrap();
    assert_eq!((job.state, job.fence, job.starts), (JobState::Running, 1, 1));
    assert_eq!(job.worker.as_deref(), Some("w1"));
    assert_eq!(store.queued_of(TENANT, 10).await.unwrap(), []);
    let again = store.claim("job_a".to_owned(), claim("w2"), event("job.started", "job_a")).await;
    assert_refused!(again, StoreError::WrongState { state: JobState::Running, .. });
}

pub(crate) async fn a_job_of_an_unknown_tenant_is_refused(bed: Bed) {
    let store = bed.open().await;
    let job = NewJob { tenant: "ten_nobody".to_owned(), ..new_job("job_a") };
    assert_refused!(store.accept(job, None, None, Vec::new()).await, StoreError::Failed(_));
    assert_eq!(store.queued_of(TENANT, 10).await.unwrap(), []);
}

pub(crate) async fn a_claim_is_won_once(bed: Bed) {
    let stores = [bed.open().await, bed.open().await];
    queue(&stores[0], "job_a").await;
    let claims: Vec<_> = (0..20)
        .map(|i| {
            let store = stores[i % 2].clone();
            tokio::spawn(async move {
                store
                    .claim("job_a".to_owned(), claim(&format!("w{i}")), event("job.started", "job_a"))
                    .await
                    .map(|fence| (i, fence))
            })
        })
        .collect();
    let mut won = Vec::new();
    for claim in claims {
        match claim.await.unwrap() {
            Ok(winner) => won.push(winner),
            lost => assert_refused!(lost, StoreError::WrongState { state: JobState::Running, .. }),
        }
    }
    let [(winner, fence)] = won[..] else { panic!("won by {won:?}") };
    let job = stores[0].job(TENANT, "job_a").await.unwrap().unwrap();
    assert_eq!((job.fence, job.starts, job.worker), (fence, 1, Some(format!("w{winner}"))));
    let missing = stores[0].claim("job_b".to_owned(), claim("w"), event("job.started", "job_b")).await;
    assert_refused!(missing, StoreError::NotFound { what: "job" });
}

/// Several jobs share a millisecond, and newer ones come in between two pages.
pub(crate) async fn pages_have_no_gap_and_no_repetition(bed: Bed) {
    let store = bed.open().await;
    let mut expected = Vec::new();
    for i in 0..23 {
        let job = NewJob { created_at_ms: 100 + i / 4, ..new_job(&format!("job_{i:02}")) };
        expected.push(job.id.clone());
        store.accept(job, None, None, Vec::new()).await.unwrap();
    }
    expected.reverse();
    let (mut seen, mut filter) = (Vec::new(), JobFilter { limit: 5, ..JobFilter::default() });
    loop {
        let page = store.jobs(TENANT, &filter).await.unwrap();
        let Some(last) = page.last() else { break };
        filter.before = Some(Page { created_at_ms: last.created_at_ms, id: last.id.clone() });
        seen.extend(page.into_iter().map(|job| job.id));
        assert!(seen.len() <= expected.len(), "{seen:?}");
        let newer = NewJob { created_at_ms: 500, ..new_job(&format!("job_new_{}", seen.len())) };
        store.accept(newer, None, None, Vec::new()).await.unwrap();
    }
    assert_eq!(seen, expected);
}

pub(crate) async fn lists_are_filtered(bed: Bed) {
    let store = bed.open().await;
    queue(&store, "job_a").await;
    start(&store, "job_b", "w1").await;
    let running = JobFilter { state: Some(JobState::Running), ..all() };
    assert_eq!(ids(&store, &running).await, ["job_b"]);
    let task = JobFilter { task_id: Some("task of job_a".to_owned()), ..all() };
    assert_eq!(ids(&store, &task).await, ["job_a"]);
    let neither = JobFilter { state: Some(JobState::Running), ..task };
    assert_eq!(ids(&store, &neither).await, [""; 0]);
    assert_eq!(ids(&store, &all()).await, ["job_b", "job_a"]);
    assert_eq!(state(&store, "job_b").await, JobState::Running);
}

fn all() -> JobFilter {
    JobFilter { limit: 100, ..JobFilter::default() }
}

async fn ids(store: &Store, filter: &JobFilter) -> Vec<String> {
    store.jobs(TENANT, filter).await.unwrap().into_iter().map(|job| job.id).collect()
}
