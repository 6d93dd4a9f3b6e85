//! Steps: at most once, in order, and over when their session is.

use crate::bed::{Bed, OTHER, TENANT, assert_refused, event};
use crate::sessions::{create, ending, new_session};
use cofferdam_core::{EndCause, JobState, SessionState};
use cofferdam_store::{
    Idempotency, NewSession, NewStep, OutputEvent, OutputKind, StepAccepted, StepFinish, StepRecord, Store,
    StoreError,
};

fn new_step(id: &str, context: &str) -> NewStep {
    NewStep {
        id: id.to_owned(),
        session: "ses_a".to_owned(),
        tenant: TENANT.to_owned(),
        context: context.to_owned(),
        spec: "{}".to_owned(),
        created_at_ms: 200,
        most_waiting: 10,
        owner: "node:one".to_owned(),
    }
}

async fn ask(store: &Store, step: NewStep) -> cofferdam_store::Result<StepAccepted> {
    let started = event("step.started", &step.id);
    store.start_step(step, None, started).await
}

async fn start(store: &Store, id: &str, context: &str) -> StepRecord {
    match ask(store, new_step(id, context)).await.unwrap() {
        StepAccepted::New { step, worker } => {
            assert_eq!(worker, "node:one");
            *step
        }
        other => panic!("{other:?}"),
    }
}

fn finish(id: &str, generation: i64, state: JobState) -> StepFinish {
    StepFinish {
        id: id.to_owned(),
        session: "ses_a".to_owned(),
        tenant: TENANT.to_owned(),
        generation,
        state,
        reason: None,
        message: None,
        result: Some("{}".to_owned()),
        at_ms: 900,
    }
}

async fn end(store: &Store, id: &str, state: JobState) -> cofferdam_store::Result<()> {
    store.finish_step(finish(id, 1, state), Vec::new(), event("step.finished", id)).await
}

async fn get(store: &Store, id: &str) -> StepRecord {
    store.step(TENANT, "ses_a", id).await.unwrap().expect("the step is there")
}

fn written(seq: i64, text: &str) -> OutputEvent {
    OutputEvent { seq, kind: OutputKind::Stdout, at_ms: 300, bytes: text.into() }
}

pub(crate) async fn steps_are_numbered_and_queue_by_context(bed: Bed) {
    let store = bed.open().await;
    create(&store, new_session("ses_a")).await;
    let told = |step: StepRecord| (step.number, step.state);
    assert_eq!(told(start(&store, "stp_a", "python/x").await), (1, JobState::Running));
    assert_eq!(told(start(&store, "stp_b", "python/x").await), (2, JobState::Queued));
    assert_eq!(told(start(&store, "stp_c", "python/y").await), (3, JobState::Running));
    end(&store, "stp_a", JobState::Succeeded).await.unwrap();
    store.begin_step("stp_b".to_owned(), 1, 400).await.unwrap();
    assert_eq!(get(&store, "stp_b").await.started_at_ms, Some(400));
    assert_refused!(store.begin_step("stp_b".to_owned(), 1, 500).await, StoreError::WrongState { .. });
    let listed = store.steps(TENANT, "ses_a", 1, 10).await.unwrap();
    assert_eq!(listed.iter().map(|step| step.number).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(store.steps(OTHER, "ses_a", 0, 10).await.unwrap(), []);
    let session = store.session(TENANT, "ses_a").await.unwrap().unwrap();
    assert_eq!((session.last_step, session.used_at_ms), (3, 900));
}

pub(crate) async fn a_named_step_is_made_once(bed: Bed) {
    let store = bed.open().await;
    create(&store, new_session("ses_a")).await;
    let ask = |id: &'static str, body: &str| {
        let name = Idempotency { route: "r", name: "ses_a/n".to_owned(), body_hash: body.to_owned() };
        store.start_step(new_step(id, "c"), Some(name), event("step.started", id))
    };
    assert!(matches!(ask("stp_a", "body").await.unwrap(), StepAccepted::New { .. }));
    assert_eq!(ask("stp_b", "body").await.unwrap(), StepAccepted::Before { id: "stp_a".to_owned() });
    assert_eq!(ask("stp_c", "other").await.unwrap(), StepAccepted::OtherBody);
    // Also after the worker died under it: nobody runs it again.
    store.lose_sessions("node:".to_owned(), "node:two".to_owned(), 500).await.unwrap();
    assert_eq!(ask("stp_d", "body").await.unwrap(), StepAccepted::Before { id: "stp_a".to_owned() });
    assert_eq!(get(&store, "stp_a").await.state, JobState::Lost);
}

pub(crate) async fn only_a_ready_session_takes_steps(bed: Bed) {
    let store = bed.open().await;
    assert_refused!(ask(&store, new_step("stp_a", "c")).await, StoreError::NotFound { what: "session" });
    create(&store, NewSession { runtime: None, ..new_session("ses_a") }).await;
    assert_refused!(
        ask(&store, new_step("stp_a", "c")).await,
        StoreError::SessionState { state: SessionState::Creating, .. }
    );
    let ready = event("session.ready", "ses_a");
    store.session_ready(TENANT.to_owned(), "ses_a".to_owned(), 1, "sbx".to_owned(), ready).await.unwrap();
    let theirs = NewStep { tenant: OTHER.to_owned(), ..new_step("stp_a", "c") };
    assert_refused!(ask(&store, theirs).await, StoreError::NotFound { .. });
    // Its time is over, even if nobody has swept yet.
    let late = NewStep { created_at_ms: 10_000, ..new_step("stp_a", "c") };
    assert_refused!(
        ask(&store, late).await,
        StoreError::SessionState { state: SessionState::Ended, cause: Some(EndCause::Expired) }
    );
    let crowded = NewStep { most_waiting: 0, ..new_step("stp_a", "c") };
    assert_refused!(ask(&store, crowded).await, StoreError::QueueFull { most: 0, .. });
    assert_eq!(store.session(TENANT, "ses_a").await.unwrap().unwrap().last_step, 0);
}

pub(crate) async fn steps_end_with_their_session(bed: Bed) {
    let store = bed.open().await;
    for (cause, running, queued) in [
        (EndCause::Deleted, JobState::Cancelled, JobState::Cancelled),
        (EndCause::Expired, JobState::Expired, JobState::Expired),
        (EndCause::Lost, JobState::Lost, JobState::Cancelled),
    ] {
        let session = format!("ses_{cause}");
        create(&store, new_session(&session)).await;
        let mut ids = Vec::new();
        for part in ["done", "runs", "waits"] {
            let id = format!("stp_{cause}_{part}");
            let step = NewStep { session: session.clone(), ..new_step(&id, "c") };
            ask(&store, step).await.unwrap();
            if part == "done" {
                end(&store, &id, JobState::Failed).await.unwrap();
            }
            ids.push(id);
        }
        let ended = store.end_session(ending(&session, cause, 800)).await.unwrap();
        assert_eq!(ended.steps, ids[1..]);
        let mut states = Vec::new();
        for id in &ids {
            states.push(store.step(TENANT, &session, id).await.unwrap().unwrap().state);
        }
        assert_eq!(states, [JobState::Failed, running, queued], "{cause}");
        // Whoever still runs one writes nothing.
        assert_refused!(end(&store, &ids[1], JobState::Succeeded).await, StoreError::WrongState { .. });
    }
    assert!(store.verify_audit(TENANT).await.is_ok());
}

pub(crate) async fn a_stale_worker_writes_nothing(bed: Bed) {
    let store = bed.open().await;
    create(&store, new_session("ses_a")).await;
    start(&store, "stp_a", "c").await;
    let stale = finish("stp_a", 2, JobState::Succeeded);
    let written_late = store.finish_step(stale, Vec::new(), event("step.finished", "stp_a")).await;
    assert_refused!(written_late, StoreError::Fenced);
    let output = store.append_step_output("stp_a".to_owned(), 2, vec![written(1, "x")]).await;
    assert_refused!(output, StoreError::Fenced);
    assert_eq!(store.output("stp_a", 0, 10).await.unwrap(), []);
    assert_refused!(end(&store, "stp_a", JobState::Running).await, StoreError::WrongState { .. });
    end(&store, "stp_a", JobState::Succeeded).await.unwrap();
    assert_refused!(end(&store, "stp_a", JobState::Failed).await, StoreError::WrongState { .. });
}

pub(crate) async fn a_step_keeps_its_output_until_its_session_is_cleared(bed: Bed) {
    let store = bed.open().await;
    let spec = r#"{"env":{"TOKEN":"of-its-own"},"limits":{"pids":7}}"#.to_owned();
    create(&store, NewSession { spec, ..new_session("ses_a") }).await;
    start(&store, "stp_a", "c").await;
    store.append_step_output("stp_a".to_owned(), 1, vec![written(1, "a")]).await.unwrap();
    let last = vec![written(1, "again"), written(2, "b")];
    let done = finish("stp_a", 1, JobState::Succeeded);
    store.finish_step(done, last, event("step.finished", "stp_a")).await.unwrap();
    let bytes: Vec<_> =
        store.output("stp_a", 0, 10).await.unwrap().into_iter().map(|event| event.bytes).collect();
    assert_eq!(bytes, [b"a", b"b"]);
    let clear = |whole| store.clear_session(TENANT.to_owned(), "ses_a".to_owned(), whole, 900);
    assert_refused!(clear(false).await, StoreError::SessionState { state: SessionState::Ready, .. });
    store.end_session(ending("ses_a", EndCause::Deleted, 800)).await.unwrap();
    clear(false).await.unwrap();
    assert_eq!(store.output("stp_a", 0, 10).await.unwrap(), []);
    assert_eq!(store.step(TENANT, "ses_a", "stp_a").await.unwrap(), None);
    let left = store.session(TENANT, "ses_a").await.unwrap().unwrap().spec;
    assert!(!left.contains("TOKEN") && left.contains(r#""pids":7"#), "{left}");
    clear(true).await.unwrap();
    assert_eq!(store.session(TENANT, "ses_a").await.unwrap(), None);
}

pub(crate) async fn whoever_interrupts_first_has_interrupted(bed: Bed) {
    let store = bed.open().await;
    create(&store, new_session("ses_a")).await;
    start(&store, "stp_a", "c").await;
    let interrupt = |tenant: &str, by: &str| {
        let (session, id) = ("ses_a".to_owned(), "stp_a".to_owned());
        store.interrupt_step(
            tenant.to_owned(),
            session,
            id,
            by.to_owned(),
            event("step.interrupted", "stp_a"),
        )
    };
    assert_refused!(interrupt(OTHER, "them").await, StoreError::NotFound { what: "step" });
    assert_eq!(interrupt(TENANT, "first").await.unwrap(), JobState::Running);
    assert_eq!(interrupt(TENANT, "second").await.unwrap(), JobState::Running);
    assert_eq!(get(&store, "stp_a").await.cancelled_by.as_deref(), Some("first"));
    end(&store, "stp_a", JobState::Cancelled).await.unwrap();
    assert_eq!(interrupt(TENANT, "third").await.unwrap(), JobState::Cancelled);
}

pub(crate) async fn a_session_in_use_is_not_idle(bed: Bed) {
    let store = bed.open().await;
    create(&store, NewSession { idle_ms: Some(100), ..new_session("ses_a") }).await;
    start(&store, "stp_a", "c").await;
    assert_eq!(store.end_due_sessions(5_000).await.unwrap().ended, []);
    end(&store, "stp_a", JobState::Succeeded).await.unwrap();
    assert_eq!(store.end_due_sessions(999).await.unwrap().ended, [], "it was used until 900");
    assert_eq!(store.end_due_sessions(1_000).await.unwrap().ended[0].cause, EndCause::Idle);
}

pub(crate) async fn old_sessions_go_with_everything(bed: Bed) {
    let store = bed.open().await;
    create(&store, new_session("ses_a")).await;
    create(&store, new_session("ses_b")).await;
    for i in 0..40 {
        let id = format!("stp_{i}");
        start(&store, &id, "c").await;
        let output = (1..=3).map(|seq| written(seq, "x")).collect();
        store
            .finish_step(finish(&id, 1, JobState::Succeeded), output, event("step.finished", &id))
            .await
            .unwrap();
    }
    store.end_session(ending("ses_a", EndCause::Deleted, 800)).await.unwrap();
    let mut rounds = 0;
    while store.expire_sessions(801, 2_000).await.unwrap().is_more {
        rounds += 1;
        assert!(rounds < 50, "it never ends");
    }
    assert!(rounds > 0, "a long session goes a little at a time");
    assert_eq!(store.session(TENANT, "ses_a").await.unwrap(), None);
    assert_eq!(store.output("stp_7", 0, 10).await.unwrap(), []);
    assert!(store.session(TENANT, "ses_b").await.unwrap().is_some(), "one that lives stays");
}
