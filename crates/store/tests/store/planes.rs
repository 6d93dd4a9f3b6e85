//! Control planes that share a store: who is there, and what becomes of what a gone one had begun.

use crate::bed::{Bed, TENANT, assert_refused, claim, event};
use crate::sessions::{create, ending, new_session};
use cofferdam_core::{EndCause, JobState, SessionState};
use cofferdam_store::{
    Begun, NewSession, NewStep, Pause, PauseOrder, SessionPlace, StepFinish, Store, StoreError,
};

fn pausing(id: &str, owner: &str) -> PauseOrder {
    PauseOrder {
        tenant: TENANT.to_owned(),
        id: id.to_owned(),
        pause: Pause::Archiving,
        ends_steps: None,
        expires_at_ms: None,
        owner: owner.to_owned(),
        event: event("session.paused", id),
    }
}

async fn start(store: &Store, id: &str, owner: &str) {
    let step = NewStep {
        id: id.to_owned(),
        session: "ses_a".to_owned(),
        tenant: TENANT.to_owned(),
        context: id.to_owned(),
        spec: "{}".to_owned(),
        created_at_ms: 100,
        most_waiting: 9,
        owner: owner.to_owned(),
    };
    store.start_step(step, None, event("step.started", id)).await.unwrap();
}

pub(crate) async fn a_plane_is_there_for_as_long_as_it_says(bed: Bed) {
    let store = bed.open().await;
    store.plane_is_there("a:1".to_owned(), 60_000).await.unwrap();
    store.plane_is_there("b:1".to_owned(), -1).await.unwrap();
    assert_eq!(store.gone_planes().await.unwrap(), ["b:1"]);
    store.forget_plane("a:1".to_owned()).await.unwrap();
    store.plane_is_there("b:1".to_owned(), 60_000).await.unwrap();
    store.forget_plane("b:1".to_owned()).await.unwrap();
    assert_eq!(store.gone_planes().await.unwrap(), Vec::<String>::new());
    // Neither was forgotten: both were there.
    for plane in ["a:1", "b:1"] {
        store.plane_is_there(plane.to_owned(), -1).await.unwrap();
    }
    assert_eq!(store.gone_planes().await.unwrap().len(), 2);
    store.forget_plane("a:1".to_owned()).await.unwrap();
    assert_eq!(store.gone_planes().await.unwrap(), ["b:1"]);
}

pub(crate) async fn steps_of_a_gone_plane_are_lost_and_those_of_others_run(bed: Bed) {
    let store = bed.open().await;
    create(&store, new_session("ses_a")).await;
    start(&store, "stp_gone", "gone:1").await;
    start(&store, "stp_there", "there:1").await;
    assert_eq!(store.lose_steps("gone:".to_owned(), "gone:2".to_owned(), 300).await.unwrap(), ["stp_gone"]);
    assert_eq!(store.lose_steps("gone:".to_owned(), "gone:2".to_owned(), 300).await.unwrap(), [""; 0]);
    let state = async |id: &str| store.step(TENANT, "ses_a", id).await.unwrap().unwrap().state;
    assert_eq!((state("stp_gone").await, state("stp_there").await), (JobState::Lost, JobState::Running));
    // Whoever comes back writes nothing.
    let end = StepFinish {
        id: "stp_gone".to_owned(),
        session: "ses_a".to_owned(),
        tenant: TENANT.to_owned(),
        generation: 1,
        state: JobState::Succeeded,
        reason: None,
        message: None,
        result: None,
        at_ms: 400,
    };
    let late = store.finish_step(end, Vec::new(), event("step.finished", "stp_gone")).await;
    assert_refused!(late, StoreError::WrongState { state: JobState::Lost, .. });
    // An own start that is new is not its past.
    assert_eq!(store.lose_steps("there:".to_owned(), "there:1".to_owned(), 300).await.unwrap(), [""; 0]);
    // Who is wanted to end is told to the one who runs it.
    let (tenant, session, step) = (TENANT.to_owned(), "ses_a".to_owned(), "stp_there".to_owned());
    store.interrupt_step(tenant, session, step, "key".to_owned(), event("x", "stp_there")).await.unwrap();
    assert_eq!(store.interrupted_of("there:1").await.unwrap(), [("stp_there".to_owned(), "key".to_owned())]);
    assert_eq!(store.interrupted_of("gone:1").await.unwrap(), []);
}

pub(crate) async fn what_a_gone_plane_had_begun_is_found_once(bed: Bed) {
    let store = bed.open().await;
    create(&store, NewSession { runtime: None, ..new_session("ses_made") }).await;
    for id in ["ses_ready", "ses_archiving", "ses_other"] {
        create(&store, new_session(id)).await;
    }
    store.begin_pause(pausing("ses_archiving", "gone:1")).await.unwrap();
    store.begin_pause(pausing("ses_other", "there:1")).await.unwrap();
    let made_by = claim("node:one").owner;
    let begun = async |begins: &str, but: &str| {
        let mut found = store.begun_sessions(begins, but).await.unwrap();
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found.into_iter().map(|session| (session.id, session.begun)).collect::<Vec<_>>()
    };
    assert_eq!(begun(&made_by, "").await, [("ses_made".to_owned(), Begun::Create)]);
    assert_eq!(begun(&made_by, &made_by).await, []);
    assert_eq!(begun("gone:", "gone:2").await, [("ses_archiving".to_owned(), Begun::Archive)]);
    let archiving = store.begun_sessions("gone:1", "").await.unwrap().remove(0);
    assert!(store.adopt_archiving(&archiving, "there:1".to_owned()).await.unwrap());
    assert!(!store.adopt_archiving(&archiving, "third:1".to_owned()).await.unwrap(), "somebody was quicker");
    assert_eq!(begun("gone:", "").await, []);
}

pub(crate) async fn a_place_is_known_whosever_the_session_is(bed: Bed) {
    let store = bed.open().await;
    create(&store, new_session("ses_a")).await;
    let place = |has_sandbox| {
        let (tenant, worker) = (TENANT.to_owned(), "node:one".to_owned());
        Some(SessionPlace { tenant, worker, generation: 1, has_sandbox })
    };
    assert_eq!(store.session_place("ses_a").await.unwrap(), place(true));
    assert_eq!(store.session_place("ses_none").await.unwrap(), None);
    assert_eq!(store.live_sessions().await.unwrap().len(), 1);
    assert_eq!(store.sessions_of("node:one").await.unwrap(), [("ses_a".to_owned(), 1)]);
    assert_eq!(store.sessions_of("node:two").await.unwrap(), []);
    let ended = store.end_session(ending("ses_a", EndCause::Deleted, 200)).await.unwrap();
    assert_eq!(ended.worker, "node:one");
    assert_eq!(store.session_place("ses_a").await.unwrap(), place(false));
    assert_eq!(store.live_sessions().await.unwrap(), []);
    let state = store.session(TENANT, "ses_a").await.unwrap().unwrap().state;
    assert_eq!(state, SessionState::Ended);
}
