//! Sessions: where they are, when they end, and whose lists they are in.

use crate::bed::{Bed, OTHER, TENANT, assert_refused, claim, event, new_job};
use cofferdam_core::{EndCause, JobState, SessionState};
use cofferdam_store::{
    Claim, Idempotency, JobSize, Keeping, NewSession, Page, SessionAccepted, SessionEnd, SessionFilter,
    SessionRecord, Store, StoreError, WorkerRoom,
};

pub(crate) fn new_session(id: &str) -> NewSession {
    NewSession {
        wrapped_key: None,
        id: id.to_owned(),
        tenant: TENANT.to_owned(),
        agent: Some("agent".to_owned()),
        task_id: format!("task of {id}"),
        spec: "{}".to_owned(),
        terms: None,
        created_at_ms: 100,
        expires_at_ms: 10_000,
        idle_ms: None,
        size: JobSize { cpus_millis: 1_000, memory_bytes: 64 },
        keeping: Keeping::default(),
        runtime: Some("sbx".to_owned()),
    }
}

pub(crate) async fn create(store: &Store, session: NewSession) {
    let created = event("session.created", &session.id);
    let accepted = store.create_session(session, claim("node:one"), None, created).await.unwrap();
    assert_eq!(accepted, SessionAccepted::New);
}

pub(crate) fn ending(id: &str, cause: EndCause, at_ms: i64) -> SessionEnd {
    let (tenant, id) = (TENANT.to_owned(), id.to_owned());
    SessionEnd { tenant, id, cause, message: None, actor: "key_one".to_owned(), at_ms }
}

async fn get(store: &Store, id: &str) -> SessionRecord {
    store.session(TENANT, id).await.unwrap().expect("the session is there")
}

async fn ids(store: &Store, filter: SessionFilter) -> Vec<String> {
    let filter = SessionFilter { limit: filter.limit.max(1) * 100, ..filter };
    store.sessions(TENANT, &filter).await.unwrap().into_iter().map(|session| session.id).collect()
}

pub(crate) async fn a_session_is_there_with_its_place(bed: Bed) {
    let store = bed.open().await;
    create(&store, new_session("ses_a")).await;
    let session = get(&store, "ses_a").await;
    assert_eq!((session.state, session.cause), (SessionState::Ready, None));
    assert_eq!((session.worker.as_str(), session.generation), ("node:one", 1));
    assert_eq!((session.expires_at_ms, session.last_step), (10_000, 0));
    assert_eq!(store.session(OTHER, "ses_a").await.unwrap(), None);
}

pub(crate) async fn a_session_that_is_made_becomes_ready_once(bed: Bed) {
    let store = bed.open().await;
    create(&store, NewSession { runtime: None, ..new_session("ses_a") }).await;
    assert_eq!(get(&store, "ses_a").await.state, SessionState::Creating);
    let ready = |generation| {
        let (tenant, id) = (TENANT.to_owned(), "ses_a".to_owned());
        store.session_ready(tenant, id, generation, "sbx".to_owned(), event("session.ready", "ses_a"))
    };
    assert_refused!(ready(2).await, StoreError::SessionState { state: SessionState::Creating, .. });
    ready(1).await.unwrap();
    assert_eq!(get(&store, "ses_a").await.state, SessionState::Ready);
    assert_refused!(ready(1).await, StoreError::SessionState { state: SessionState::Ready, .. });
}

pub(crate) async fn the_same_request_makes_one_session(bed: Bed) {
    let store = bed.open().await;
    let name = |body: &str| Idempotency { route: "r", name: "n".to_owned(), body_hash: body.to_owned() };
    let ask = |id: &'static str, body: &'static str| {
        store.create_session(new_session(id), claim("w"), Some(name(body)), event("session.created", id))
    };
    assert_eq!(ask("ses_a", "body").await.unwrap(), SessionAccepted::New);
    assert_eq!(ask("ses_b", "body").await.unwrap(), SessionAccepted::Before { id: "ses_a".to_owned() });
    assert_eq!(ask("ses_c", "other").await.unwrap(), SessionAccepted::OtherBody);
    assert_eq!(ids(&store, SessionFilter::default()).await, ["ses_a"]);
}

pub(crate) async fn a_deadline_only_moves_away(bed: Bed) {
    let store = bed.open().await;
    create(&store, new_session("ses_a")).await;
    let extend = |until| {
        store.extend_session(TENANT.to_owned(), "ses_a".to_owned(), until, event("session.extended", "ses_a"))
    };
    assert_eq!(extend(20_000).await.unwrap().expires_at_ms, 20_000);
    assert_eq!(extend(15_000).await.unwrap().expires_at_ms, 20_000);
    let theirs =
        store.extend_session(OTHER.to_owned(), "ses_a".to_owned(), 1, event("session.extended", "ses_a"));
    assert_refused!(theirs.await, StoreError::NotFound { what: "session" });
    store.end_session(ending("ses_a", EndCause::Deleted, 500)).await.unwrap();
    assert_refused!(
        extend(30_000).await,
        StoreError::SessionState { state: SessionState::Ended, cause: Some(EndCause::Deleted) }
    );
}

pub(crate) async fn sessions_end_when_due_and_not_before(bed: Bed) {
    let store = bed.open().await;
    create(&store, new_session("ses_a")).await;
    create(&store, NewSession { expires_at_ms: 5_000, ..new_session("ses_b") }).await;
    create(&store, NewSession { idle_ms: Some(3_000), ..new_session("ses_c") }).await;
    assert_eq!(store.next_session_due().await.unwrap(), Some(3_100));
    assert_eq!(store.end_due_sessions(3_099).await.unwrap().ended, []);
    let due = store.end_due_sessions(5_000).await.unwrap().ended;
    let told: Vec<_> = due.iter().map(|ended| (ended.id.as_str(), ended.cause, ended.generation)).collect();
    assert_eq!(told, [("ses_b", EndCause::Expired, 1), ("ses_c", EndCause::Idle, 1)]);
    assert_eq!(get(&store, "ses_b").await.cause, Some(EndCause::Expired));
    assert_eq!(get(&store, "ses_a").await.state, SessionState::Ready);
    assert_eq!(store.end_due_sessions(9_999).await.unwrap().ended, []);
    assert_eq!(store.next_session_due().await.unwrap(), Some(10_000));
}

pub(crate) async fn an_end_is_written_once_and_its_cause_stays(bed: Bed) {
    let store = bed.open().await;
    create(&store, new_session("ses_a")).await;
    let ended = store.end_session(ending("ses_a", EndCause::Deleted, 500)).await.unwrap();
    assert_eq!((ended.worker.as_str(), ended.generation), ("node:one", 1));
    let again = store.end_session(ending("ses_a", EndCause::Lost, 600)).await;
    assert_refused!(again, StoreError::SessionState { cause: Some(EndCause::Deleted), .. });
    assert_eq!(get(&store, "ses_a").await.transition_at_ms, 500);
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 2);
}

pub(crate) async fn what_a_dead_node_had_is_lost(bed: Bed) {
    let store = bed.open().await;
    for (id, worker) in [("ses_a", "node:one"), ("ses_b", "node:two"), ("ses_c", "other:one")] {
        let created = event("session.created", id);
        store.create_session(new_session(id), claim(worker), None, created).await.unwrap();
    }
    let lost = store.lose_sessions("node:".to_owned(), "node:two".to_owned(), 500).await.unwrap();
    assert_eq!(lost.iter().map(|ended| ended.id.as_str()).collect::<Vec<_>>(), ["ses_a"]);
    assert_eq!(get(&store, "ses_a").await.cause, Some(EndCause::Lost));
    for id in ["ses_b", "ses_c"] {
        assert_eq!(get(&store, id).await.state, SessionState::Ready, "{id}");
    }
}

pub(crate) async fn session_lists_are_filtered_and_paged(bed: Bed) {
    let store = bed.open().await;
    for i in 0..6_i64 {
        let agent = Some(if i % 2 == 0 { "even" } else { "odd" }.to_owned());
        create(&store, NewSession { created_at_ms: 100 + i / 2, agent, ..new_session(&format!("ses_{i}")) })
            .await;
    }
    store.end_session(ending("ses_3", EndCause::Deleted, 500)).await.unwrap();
    let state = |state| SessionFilter { state: Some(state), ..SessionFilter::default() };
    assert_eq!(ids(&store, state(SessionState::Ended)).await, ["ses_3"]);
    assert_eq!(ids(&store, state(SessionState::Ready)).await.len(), 5);
    let agent = SessionFilter { agent: Some("odd".to_owned()), ..SessionFilter::default() };
    assert_eq!(ids(&store, agent.clone()).await, ["ses_5", "ses_3", "ses_1"]);
    let both = SessionFilter { task_id: Some("task of ses_1".to_owned()), ..agent };
    assert_eq!(ids(&store, both).await, ["ses_1"]);
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let filter = SessionFilter { limit: 4, before, ..SessionFilter::default() };
        let page = store.sessions(TENANT, &filter).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(Page { created_at_ms: last.created_at_ms, id: last.id.clone() });
        seen.extend(page.into_iter().map(|session| session.id));
    }
    assert_eq!(seen, ["ses_5", "ses_4", "ses_3", "ses_2", "ses_1", "ses_0"]);
}

pub(crate) async fn sessions_and_jobs_share_a_worker_and_a_quota(bed: Bed) {
    let store = bed.open().await;
    let room = Some(WorkerRoom { slots: 2, cpus_millis: 9_000, memory_bytes: 900 });
    let place = |most| Claim { room, most_running: Some(most), ..claim("w") };
    let create = |id: &'static str, most| {
        store.create_session(new_session(id), place(most), None, event("session.created", id))
    };
    let accepted = store.accept(new_job("job_a"), Some(place(9)), None, Vec::new()).await.unwrap();
    assert_eq!(accepted, cofferdam_store::Accepted::New { fence: Some(1) });
    assert_refused!(create("ses_a", 1).await, StoreError::AtQuota { .. });
    create("ses_a", 2).await.unwrap();
    assert_refused!(create("ses_b", 9).await, StoreError::Full { .. });
    let waits = store.accept(new_job("job_b"), Some(place(9)), None, Vec::new()).await.unwrap();
    assert_eq!(waits, cofferdam_store::Accepted::New { fence: None });
    store.end_session(ending("ses_a", EndCause::Deleted, 500)).await.unwrap();
    create("ses_b", 9).await.unwrap();
    assert_eq!(store.job(TENANT, "job_b").await.unwrap().unwrap().state, JobState::Queued);
}
