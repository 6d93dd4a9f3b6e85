//! Sessions that stand still, what is kept of them, snapshots and secrets.

use crate::bed::{Bed, OTHER, TENANT, assert_refused, claim, event};
use crate::sessions::{create, ending, new_session};
use cofferdam_core::{EndCause, JobState, SessionState};
use cofferdam_store::{
    Keeping, NewArchive, NewSession, NewSnapshot, NewStep, Page, Pause, PauseOrder, SessionRecord, Store,
    StoreError,
};

const QUOTA: i64 = 1000;

fn order(id: &str, pause: Pause) -> PauseOrder {
    PauseOrder {
        tenant: TENANT.to_owned(),
        id: id.to_owned(),
        pause,
        ends_steps: None,
        expires_at_ms: None,
        owner: "node:one".to_owned(),
        event: event("session.paused", id),
    }
}

fn archive(owner: &str, attempt: &str, writer: &str) -> NewArchive {
    NewArchive {
        owner: owner.to_owned(),
        tenant: TENANT.to_owned(),
        attempt: attempt.to_owned(),
        wrapped_key: format!("key of {owner} {attempt}"),
        writer: writer.to_owned(),
        at_ms: 100,
    }
}

async fn get(store: &Store, id: &str) -> SessionRecord {
    store.session(TENANT, id).await.unwrap().expect("the session is there")
}

async fn archived(store: &Store, id: &str, size: i64) -> Result<(), StoreError> {
    let (tenant, session) = (TENANT.to_owned(), id.to_owned());
    store.session_archived(tenant, session, 1, "one".to_owned(), size, QUOTA).await
}

/// A session whose files are kept.
async fn kept(store: &Store, id: &str) {
    create(store, new_session(id)).await;
    store.begin_pause(order(id, Pause::Archiving)).await.unwrap();
    store.begin_archive(archive(id, "one", "node:one")).await.unwrap();
    archived(store, id, 10).await.unwrap();
}

async fn resume(store: &Store, id: &str) -> Result<i64, StoreError> {
    store.begin_resume(TENANT.to_owned(), id.to_owned(), claim("node:two"), 200).await
}

pub(crate) async fn a_pause_is_undone_or_becomes_an_archive(bed: Bed) {
    let store = bed.open().await;
    create(&store, new_session("ses_a")).await;
    let begun = store.begin_pause(order("ses_a", Pause::Archiving)).await.unwrap();
    assert_eq!((begun.worker.as_str(), begun.generation, begun.was_frozen), ("node:one", 1, false));
    assert_eq!(get(&store, "ses_a").await.pause, Some(Pause::Archiving));
    let paused = order("ses_a", Pause::Freeze);
    assert_refused!(
        store.begin_pause(paused).await,
        StoreError::SessionState { state: SessionState::Paused, .. }
    );
    let used = store.use_session(TENANT.to_owned(), "ses_a".to_owned(), 200, None).await;
    assert_refused!(used, StoreError::SessionState { state: SessionState::Paused, .. });
    let undo = |frozen| {
        let (tenant, id) = (TENANT.to_owned(), "ses_a".to_owned());
        store.undo_pause(tenant, id, 1, frozen, event("session.resumed", "ses_a"))
    };
    undo(false).await.unwrap();
    assert_eq!(
        (get(&store, "ses_a").await.state, get(&store, "ses_a").await.pause),
        (SessionState::Ready, None)
    );
    assert_refused!(undo(false).await, StoreError::SessionState { .. });
    // From frozen to archived.
    store.begin_pause(order("ses_a", Pause::Freeze)).await.unwrap();
    assert!(store.begin_pause(order("ses_a", Pause::Archiving)).await.unwrap().was_frozen);
    assert_refused!(archived(&store, "ses_a", 10).await, StoreError::NotFound { .. });
    store.begin_archive(archive("ses_a", "one", "node:one")).await.unwrap();
    assert_refused!(archived(&store, "ses_a", QUOTA + 1).await, StoreError::OverQuota { .. });
    assert_eq!(get(&store, "ses_a").await.pause, Some(Pause::Archiving), "nothing of it was written");
    archived(&store, "ses_a", 10).await.unwrap();
    let session = get(&store, "ses_a").await;
    assert_eq!((session.state, session.pause), (SessionState::Paused, Some(Pause::Archive)));
    assert_eq!(session.runtime, None);
    assert_eq!(store.archive(TENANT, "ses_a").await.unwrap().map(|found| found.size_bytes), Some(10));
    assert_eq!(store.archive(OTHER, "ses_a").await.unwrap(), None);
    assert!(store.has_attempt(TENANT, "ses_a", "one").await.unwrap());
}

pub(crate) async fn steps_are_in_the_way_of_a_pause_or_end(bed: Bed) {
    let store = bed.open().await;
    create(&store, new_session("ses_a")).await;
    let step = NewStep {
        id: "stp_a".to_owned(),
        session: "ses_a".to_owned(),
        tenant: TENANT.to_owned(),
        context: "c".to_owned(),
        spec: "{}".to_owned(),
        created_at_ms: 100,
        most_waiting: 9,
        owner: "node:one".to_owned(),
    };
    store.start_step(step, None, event("step.started", "stp_a")).await.unwrap();
    let refused = store.begin_pause(order("ses_a", Pause::Freeze)).await;
    assert_refused!(refused, StoreError::SessionBusy { count: 1 });
    assert_eq!(get(&store, "ses_a").await.state, SessionState::Ready);
    let forced = PauseOrder {
        ends_steps: Some((JobState::Expired, EndCause::Expired)),
        expires_at_ms: Some(99_000),
        ..order("ses_a", Pause::Archiving)
    };
    assert_eq!(store.begin_pause(forced).await.unwrap().steps, ["stp_a"]);
    let step = store.step(TENANT, "ses_a", "stp_a").await.unwrap().unwrap();
    assert_eq!(step.state, JobState::Expired);
    assert_eq!(get(&store, "ses_a").await.expires_at_ms, 99_000);
}

pub(crate) async fn an_archive_outlives_its_worker_and_a_frozen_session_does_not(bed: Bed) {
    let store = bed.open().await;
    kept(&store, "ses_kept").await;
    kept(&store, "ses_resuming").await;
    assert_eq!(resume(&store, "ses_resuming").await.unwrap(), 2);
    assert_refused!(resume(&store, "ses_resuming").await, StoreError::SessionState { .. });
    for (id, pause) in [("ses_frozen", Pause::Freeze), ("ses_archiving", Pause::Archiving)] {
        create(&store, new_session(id)).await;
        store.begin_pause(order(id, pause)).await.unwrap();
    }
    store.begin_archive(archive("ses_archiving", "one", "node:one")).await.unwrap();
    store.begin_archive(archive("snp_half", "one", "node:one")).await.unwrap();
    store.begin_archive(archive("snp_others", "one", "other:one")).await.unwrap();
    let lost = store.lose_sessions("node:".to_owned(), "node:new".to_owned(), 300).await.unwrap();
    let mut lost: Vec<_> = lost.into_iter().map(|ended| ended.id).collect();
    lost.sort();
    assert_eq!(lost, ["ses_archiving", "ses_frozen"]);
    for id in ["ses_kept", "ses_resuming"] {
        assert_eq!(get(&store, id).await.pause, Some(Pause::Archive), "{id}");
        assert!(store.archive(TENANT, id).await.unwrap().is_some(), "{id}");
    }
    let mut gone: Vec<_> =
        store.deleting_archives(10).await.unwrap().into_iter().map(|(_, owner, _)| owner).collect();
    gone.sort();
    assert_eq!(gone, ["ses_archiving", "snp_half"], "what somebody else writes is theirs");
}

pub(crate) async fn a_resume_destroys_the_key_and_its_undoing_does_not(bed: Bed) {
    let store = bed.open().await;
    kept(&store, "ses_a").await;
    let generation = resume(&store, "ses_a").await.unwrap();
    let (tenant, id) = (TENANT.to_owned(), "ses_a".to_owned());
    store.undo_resume(tenant.clone(), id.clone(), generation).await.unwrap();
    assert_eq!(get(&store, "ses_a").await.pause, Some(Pause::Archive));
    let generation = resume(&store, "ses_a").await.unwrap();
    assert_eq!(generation, 3, "whoever tried before is stale");
    let resumed = |generation| {
        let event = event("session.resumed", "ses_a");
        store.session_resumed(tenant.clone(), id.clone(), generation, "sbx".to_owned(), Some(5_000), event)
    };
    assert_refused!(resumed(2).await, StoreError::SessionState { .. });
    resumed(3).await.unwrap();
    let session = get(&store, "ses_a").await;
    assert_eq!((session.state, session.pause), (SessionState::Ready, None));
    assert_eq!((session.worker.as_str(), session.expires_at_ms), ("node:two", 5_000));
    assert_eq!(store.archive_keys("ses_a").await.unwrap(), 0);
    assert_eq!(store.deleting_archives(10).await.unwrap().len(), 1);
    store.forget_archive("ses_a".to_owned(), "one".to_owned()).await.unwrap();
    assert_eq!(store.deleting_archives(10).await.unwrap(), []);
    assert!(store.forget_deleted().await.unwrap());
}

pub(crate) async fn the_end_of_a_session_destroys_its_key(bed: Bed) {
    let store = bed.open().await;
    kept(&store, "ses_a").await;
    assert_eq!(store.archive_keys("ses_a").await.unwrap(), 1);
    let ended = store.end_session(ending("ses_a", EndCause::Deleted, 300)).await.unwrap();
    assert!(ended.has_archive);
    assert_eq!(store.archive_keys("ses_a").await.unwrap(), 0);
    assert!(!store.has_attempt(TENANT, "ses_a", "one").await.unwrap());
    // Its bytes count no more: what needs all of the quota fits.
    kept(&store, "ses_b").await;
    create(&store, new_session("ses_c")).await;
    store.begin_pause(order("ses_c", Pause::Archiving)).await.unwrap();
    store.begin_archive(archive("ses_c", "one", "node:one")).await.unwrap();
    archived(&store, "ses_c", QUOTA - 10).await.unwrap();
}

pub(crate) async fn what_is_paused_at_its_deadline_does_not_end_there(bed: Bed) {
    let store = bed.open().await;
    let keeping = |pauses| Keeping { pauses_on_expiry: pauses, archives_on_drain: pauses, created_by: None };
    create(&store, NewSession { keeping: keeping(true), ..new_session("ses_pause") }).await;
    create(&store, NewSession { keeping: keeping(false), ..new_session("ses_end") }).await;
    let idle = NewSession { idle_ms: Some(50), expires_at_ms: 99_000, ..new_session("ses_idle") };
    create(&store, NewSession { keeping: keeping(true), ..idle }).await;
    assert_eq!(store.sessions_to_pause(120).await.unwrap(), []);
    assert_eq!(store.sessions_to_pause(160).await.unwrap(), [(TENANT.to_owned(), "ses_idle".to_owned())]);
    assert_eq!(store.sessions_to_pause(10_000).await.unwrap().len(), 2);
    let due = store.end_due_sessions(10_000).await.unwrap();
    assert_eq!(due.ended.into_iter().map(|ended| ended.id).collect::<Vec<_>>(), ["ses_end"]);
    assert_eq!(store.sessions_to_drain("node:one").await.unwrap().len(), 2);
    assert_eq!(store.sessions_to_drain("node:two").await.unwrap(), []);
    // Archived, it ends at its next deadline, and is never idle.
    for id in ["ses_idle", "ses_pause"] {
        let order = PauseOrder { expires_at_ms: Some(20_000), ..order(id, Pause::Archiving) };
        store.begin_pause(order).await.unwrap();
        store.begin_archive(archive(id, "one", "node:one")).await.unwrap();
        archived(&store, id, 1).await.unwrap();
    }
    assert_eq!(store.end_due_sessions(19_000).await.unwrap().ended, []);
    assert_eq!(store.next_session_due().await.unwrap(), Some(20_000));
    assert_eq!(store.end_due_sessions(20_000).await.unwrap().ended.len(), 2);
}

pub(crate) async fn a_snapshot_is_its_tenants_and_has_one_name(bed: Bed) {
    let store = bed.open().await;
    let make = async |id: &str, name: &str, tenant: &str| {
        let archive = NewArchive { tenant: tenant.to_owned(), ..archive(id, "one", "node:one") };
        store.begin_archive(archive).await.unwrap();
        let snapshot = NewSnapshot {
            id: id.to_owned(),
            tenant: tenant.to_owned(),
            name: name.to_owned(),
            session: "ses_a".to_owned(),
            created_by: "key_one".to_owned(),
            attempt: "one".to_owned(),
            size_bytes: 10,
            quota_bytes: QUOTA,
        };
        store.create_snapshot(snapshot, event("session.snapshotted", "ses_a")).await
    };
    make("snp_a", "base", TENANT).await.unwrap();
    assert_refused!(make("snp_b", "base", TENANT).await, StoreError::Taken { .. });
    make("snp_c", "base", OTHER).await.unwrap();
    make("snp_d", "more", TENANT).await.unwrap();
    for wanted in ["snp_a", "base"] {
        let found = store.snapshot(TENANT, wanted).await.unwrap().expect("it is there");
        assert_eq!((found.id.as_str(), found.name.as_str()), ("snp_a", "base"));
    }
    assert_eq!(store.snapshot(TENANT, "snp_c").await.unwrap(), None);
    let listed = store.snapshots(TENANT, None, 1).await.unwrap();
    assert_eq!(listed.iter().map(|found| found.id.as_str()).collect::<Vec<_>>(), ["snp_d"]);
    let page = Page { created_at_ms: listed[0].created_at_ms, id: "snp_d".to_owned() };
    assert_eq!(store.snapshots(TENANT, Some(page), 9).await.unwrap().len(), 1);
    let delete = |tenant: &str| {
        store.delete_snapshot(tenant.to_owned(), "snp_a".to_owned(), event("snapshot.deleted", "snp_a"))
    };
    assert_refused!(delete(OTHER).await, StoreError::NotFound { .. });
    delete(TENANT).await.unwrap();
    assert_eq!(store.archive_keys("snp_a").await.unwrap(), 0);
    assert_refused!(delete(TENANT).await, StoreError::NotFound { .. });
}

pub(crate) async fn a_secret_is_its_tenants_and_is_replaced(bed: Bed) {
    let store = bed.open().await;
    let put = |tenant: &str, name: &str, sealed: &str, most| {
        let (tenant, name) = (tenant.to_owned(), name.to_owned());
        store.put_secret(tenant, name.clone(), sealed.to_owned(), most, event("secret.put", &name))
    };
    put(TENANT, "a", "one", 2).await.unwrap();
    put(TENANT, "a", "two", 2).await.unwrap();
    put(TENANT, "b", "three", 2).await.unwrap();
    assert_refused!(put(TENANT, "c", "four", 2).await, StoreError::OverQuota { .. });
    put(OTHER, "a", "theirs", 2).await.unwrap();
    assert_eq!(store.sealed_secret(TENANT, "a").await.unwrap().as_deref(), Some("two"));
    assert_eq!(store.sealed_secret(TENANT, "c").await.unwrap(), None);
    let names = |secrets: Vec<cofferdam_store::SecretRecord>| {
        secrets.into_iter().map(|secret| secret.name).collect::<Vec<_>>()
    };
    assert_eq!(names(store.secrets(TENANT, "", 9).await.unwrap()), ["a", "b"]);
    assert_eq!(names(store.secrets(TENANT, "a", 9).await.unwrap()), ["b"]);
    let delete = || store.delete_secret(TENANT.to_owned(), "a".to_owned(), event("secret.deleted", "a"));
    delete().await.unwrap();
    assert_refused!(delete().await, StoreError::NotFound { .. });
    assert_eq!(store.sealed_secret(OTHER, "a").await.unwrap().as_deref(), Some("theirs"));
}
