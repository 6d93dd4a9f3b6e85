//! Texts that somebody else chose.

use crate::bed::{
    Bed, OTHER, TENANT, assert_refused, claim, event, finish, named, new_job, queue, start, state,
};
use cofferdam_core::JobState;
use cofferdam_store::{Finish, JobFilter, NewJob, NewKey, StoreError};

const ODD: [&str; 8] = [
    "",
    "'; DROP TABLE jobs; --",
    "$1 ? {{bytes}} \\0 %s",
    "\u{feff}\u{202e}e\u{301}\u{200d}👩‍👩‍👧",
    "\u{1}\u{7f}\r\n\t\u{1b}[31m",
    "\u{fffd}\u{ffff}\u{10ffff}",
    "ſt İı ß",
    r#"{"text":"\u0000"}"#,
];

pub(crate) async fn odd_texts_come_back_as_they_were(bed: Bed) {
    let store = bed.open().await;
    for (i, odd) in ODD.into_iter().enumerate() {
        let id = format!("job_{i}{odd}");
        let job = NewJob { agent: Some(odd.to_owned()), spec: odd.to_owned(), ..new_job(&id) };
        let events = vec![event("job.accepted", odd)];
        store.accept(job, Some(claim(odd)), named(odd, odd), events).await.unwrap();
        let end = Finish { message: Some(odd.to_owned()), ..finish(&id, 1, JobState::Failed) };
        store.finish(end, Vec::new(), event("job.finished", odd)).await.unwrap();
        let kept = store.job(TENANT, &id).await.unwrap().unwrap();
        assert_eq!((kept.agent.as_deref(), kept.message.as_deref()), (Some(odd), Some(odd)));
        assert_eq!((kept.spec.as_str(), kept.worker.as_deref()), (odd, Some(odd)));
    }
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 2 * ODD.len() as i64);
    let long = NewJob { spec: "ü".repeat(1 << 20), ..new_job("long") };
    store.accept(long.clone(), None, None, Vec::new()).await.unwrap();
    assert_eq!(store.job(TENANT, "long").await.unwrap().unwrap().spec, long.spec);
}

/// PostgreSQL has no such texts. SQLite has, and its tools cut them short, so neither gets any: not as something that
/// failed and may be tried again, but as what it is.
pub(crate) async fn texts_with_nul_are_refused(bed: Bed) {
    let store = bed.open().await;
    start(&store, "job_a", "w1").await;
    queue(&store, "job_b").await;
    let nul = || "a\0b".to_owned();
    for job in [
        NewJob { id: nul(), ..new_job("x") },
        NewJob { agent: Some(nul()), ..new_job("x") },
        NewJob { task_id: nul(), ..new_job("x") },
        NewJob { spec: nul(), ..new_job("x") },
        NewJob { terms: Some(nul()), ..new_job("x") },
    ] {
        assert_refused!(store.accept(job, None, None, Vec::new()).await, StoreError::Unstorable { .. });
    }
    for (claim, name, events) in [
        (Some(claim("\0")), None, vec![]),
        (None, named("\0", "body"), vec![]),
        (None, named("name", "\0"), vec![]),
        (None, None, vec![event("job.accepted", "\0")]),
    ] {
        let refused = store.accept(new_job("x"), claim, name, events).await;
        assert_refused!(refused, StoreError::Unstorable { .. });
    }
    let end = finish("job_a", 1, JobState::Failed);
    for end in [
        Finish { reason: Some(nul()), ..end.clone() },
        Finish { message: Some(nul()), ..end.clone() },
        Finish { result: Some(nul()), ..end },
    ] {
        let refused = store.finish(end, Vec::new(), event("job.finished", "job_a")).await;
        assert_refused!(refused, StoreError::Unstorable { .. });
    }
    let by_nul =
        store.cancel(TENANT.to_owned(), "job_b".to_owned(), nul(), event("job.cancelled", "x")).await;
    assert_refused!(by_nul, StoreError::Unstorable { .. });
    let claimed = store.claim("job_b".to_owned(), claim("\0"), event("job.started", "x")).await;
    assert_refused!(claimed, StoreError::Unstorable { .. });
    let tenant = store.ensure_tenant("ten_x".to_owned(), nul(), 1).await;
    assert_refused!(tenant, StoreError::Unstorable { .. });
    let key = NewKey {
        id: "key_a".to_owned(),
        tenant: OTHER.to_owned(),
        name: nul(),
        hash: "hash".to_owned(),
        scopes: String::new(),
        agent: None,
        created_at_ms: 1,
        expires_at_ms: None,
    };
    assert_refused!(store.create_key(key, event("key.created", "x")).await, StoreError::Unstorable { .. });

    assert_eq!(state(&store, "job_a").await, JobState::Running);
    assert_eq!(state(&store, "job_b").await, JobState::Queued);
    assert_eq!(store.job(TENANT, "x").await.unwrap(), None);
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), 2);
    // What is asked for by such a text is not there, or is refused; which of the two is the engine's affair.
    assert!(!matches!(store.job(TENANT, "a\0b").await, Ok(Some(_))));
    assert!(!matches!(store.key_by_hash("\0").await, Ok(Some(_))));
    let filter = JobFilter { task_id: Some(nul()), limit: 5, ..JobFilter::default() };
    assert_eq!(store.jobs(TENANT, &filter).await.unwrap_or_default(), []);
    store.ping().await.unwrap();
}

pub(crate) async fn a_nul_is_refused_alone(bed: Bed) {
    let store = bed.open().await;
    let tasks: Vec<_> = (0..60)
        .map(|i| {
            let store = store.clone();
            let spec = if i % 7 == 0 { "\0" } else { "{}" }.to_owned();
            let job = NewJob { spec, ..new_job(&format!("job_{i}")) };
            tokio::spawn(async move { (i, store.accept(job, None, None, Vec::new()).await) })
        })
        .collect();
    for task in tasks {
        let (i, answer) = task.await.unwrap();
        assert_eq!(answer.is_ok(), i % 7 != 0, "{i}: {answer:?}");
        let is_there = store.job(TENANT, &format!("job_{i}")).await.unwrap().is_some();
        assert_eq!(is_there, i % 7 != 0, "{i}");
    }
}
