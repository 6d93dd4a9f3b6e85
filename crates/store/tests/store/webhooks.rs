//! What is to be told of jobs: noted with what it tells of, taken once, ended once, and forgotten in the end.

use crate::bed::{Bed, OTHER, TENANT, claim, end, event, given_up, new_job};
use cofferdam_core::JobState;
use cofferdam_store::{Delivery, NewJob, NewWebhook, Next, Store};

async fn accept(store: &Store, id: &str, events: &str, claimed: bool) {
    let webhook = NewWebhook { url: format!("https://{id}/"), secret: "s".into(), events: events.into() };
    let job = NewJob { webhook: Some(webhook), ..new_job(id) };
    let claim = claimed.then(|| claim("w1"));
    store.accept(job, claim, None, vec![event("job.accepted", id)]).await.unwrap();
}

async fn states(store: &Store, id: &str) -> Vec<String> {
    let mut states: Vec<String> = store
        .deliveries_of(TENANT, id)
        .await
        .unwrap()
        .iter()
        .map(|delivery| {
            let facts: serde_json::Value = serde_json::from_str(&delivery.facts).unwrap();
            format!("{} {}", facts["state"].as_str().unwrap(), facts["attempt"])
        })
        .collect();
    states.sort();
    states
}

pub(crate) async fn each_change_is_noted_for_those_who_want_it(bed: Bed) {
    let store = bed.open().await;
    accept(&store, "job_all", "accepted running finished", true).await;
    accept(&store, "job_end", "finished", true).await;
    accept(&store, "job_queued", "running finished", false).await;
    accept(&store, "job_cancelled", "finished", false).await;
    accept(&store, "job_lost", "finished", true).await;
    accept(&store, "job_restored", "finished", true).await;
    let webhook = NewWebhook { url: "https://e/".into(), secret: "s".into(), events: "finished".into() };
    let job = NewJob { webhook: Some(webhook), queue_deadline_ms: Some(4_000), ..new_job("job_expired") };
    store.accept(job, None, None, Vec::new()).await.unwrap();
    store.accept(new_job("job_none"), Some(claim("w1")), None, vec![]).await.unwrap();
    assert_eq!(states(&store, "job_end").await, Vec::<String>::new());
    for id in ["job_all", "job_end", "job_none"] {
        end(&store, id, 1, JobState::Succeeded).await.unwrap();
    }
    store.claim("job_queued".into(), claim("w1"), event("job.running", "job_queued")).await.unwrap();
    let cancel = event("job.cancelled", "job_cancelled");
    store.cancel(TENANT.into(), "job_cancelled".into(), "me".into(), cancel).await.unwrap();
    assert_eq!(states(&store, "job_all").await, ["accepted 0", "running 1", "succeeded 1"]);
    assert_eq!(states(&store, "job_end").await, ["succeeded 1"]);
    assert_eq!(states(&store, "job_queued").await, ["running 1"]);
    assert_eq!(states(&store, "job_cancelled").await, ["cancelled 0"]);
    assert_eq!(states(&store, "job_none").await, Vec::<String>::new());
    let retried = given_up("job_lost", 1, Next::Again { wait_ms: 0 });
    store.give_up(retried, Vec::new(), event("job.retried", "job_lost")).await.unwrap();
    assert_eq!(states(&store, "job_lost").await, Vec::<String>::new(), "it has not ended");
    store.claim("job_lost".into(), claim("w1"), event("job.running", "job_lost")).await.unwrap();
    let lost = given_up("job_lost", 2, Next::Lost);
    store.give_up(lost, Vec::new(), event("job.finished", "job_lost")).await.unwrap();
    assert_eq!(states(&store, "job_lost").await, ["lost 2"]);
    store.expire_queued(5_000).await.unwrap();
    assert_eq!(states(&store, "job_expired").await, ["expired 0"]);
    store.settle_restored(false, 6_000).await.unwrap();
    assert_eq!(states(&store, "job_restored").await, ["lost 1"]);
    assert_eq!(store.deliveries_of(OTHER, "job_all").await.unwrap(), []);
    let done = &store.deliveries_of(TENANT, "job_end").await.unwrap()[0];
    let facts: serde_json::Value = serde_json::from_str(&done.facts).unwrap();
    assert_eq!((facts["exit_code"].as_i64(), facts["at_ms"].as_i64()), (Some(0), Some(2_000)));
    assert_eq!((done.url.as_str(), done.attempts, done.state.as_str()), ("https://job_end/", 0, "waiting"));
}

/// A change that was not written is not told of, either.
pub(crate) async fn a_refused_change_tells_nobody(bed: Bed) {
    let store = bed.open().await;
    accept(&store, "job_a", "finished", true).await;
    assert!(end(&store, "job_a", 7, JobState::Succeeded).await.is_err());
    assert_eq!(states(&store, "job_a").await, Vec::<String>::new());
    end(&store, "job_a", 1, JobState::Failed).await.unwrap();
    assert!(end(&store, "job_a", 1, JobState::Succeeded).await.is_err());
    assert_eq!(states(&store, "job_a").await, ["failed 1"]);
}

async fn due(store: &Store, now: i64) -> Vec<Delivery> {
    store.deliveries_due(now, 10).await.unwrap()
}

pub(crate) async fn a_delivery_is_taken_once_and_due_again_until_it_has_ended(bed: Bed) {
    let store = bed.open().await;
    let other = bed.open().await;
    accept(&store, "job_a", "finished", true).await;
    assert_eq!(due(&store, i64::MAX).await, []);
    end(&store, "job_a", 1, JobState::Succeeded).await.unwrap();
    assert_eq!(due(&store, 1_999).await, []);
    let first = due(&store, 2_000).await.remove(0);
    let (mine, theirs) = tokio::join!(
        store.delivery_take(first.event_id.clone(), 0, 9_000),
        other.delivery_take(first.event_id.clone(), 0, 9_000)
    );
    assert_ne!(mine.unwrap(), theirs.unwrap(), "one of the two has it");
    assert_eq!(due(&store, 8_999).await, []);
    store.delivery_postpone(first.event_id.clone(), 5_000, "no\0answer".into()).await.unwrap();
    let again = due(&store, 5_000).await.remove(0);
    assert_eq!((again.event_id.as_str(), again.attempts), (first.event_id.as_str(), 1));
    assert_eq!(again.last_error.as_deref(), Some("no answer"));
    let note = event("webhook.given_up", "job_a");
    let before = store.verify_audit(TENANT).await.unwrap();
    for _ in 0..2 {
        let given_up = Some(("no answer".to_owned(), note.clone()));
        store.delivery_end(&again, 6_000, given_up).await.unwrap();
    }
    assert_eq!(store.verify_audit(TENANT).await.unwrap(), before + 1, "it is noted once");
    assert_eq!(due(&store, i64::MAX).await, []);
    let ended = store.deliveries_of(TENANT, "job_a").await.unwrap().remove(0);
    assert_eq!((ended.state.as_str(), ended.secret.as_str()), ("given_up", ""));
}

pub(crate) async fn what_has_ended_is_forgotten_and_what_waits_is_not(bed: Bed) {
    let store = bed.open().await;
    for id in ["job_a", "job_b"] {
        accept(&store, id, "finished", true).await;
        end(&store, id, 1, JobState::Succeeded).await.unwrap();
    }
    let done = store.deliveries_of(TENANT, "job_a").await.unwrap().remove(0);
    store.delivery_end(&done, 5_000, None).await.unwrap();
    assert_eq!(store.deliveries_forget(5_000).await.unwrap(), 0);
    assert_eq!(store.deliveries_forget(5_001).await.unwrap(), 1);
    assert_eq!(states(&store, "job_a").await, Vec::<String>::new());
    assert_eq!(states(&store, "job_b").await, ["succeeded 1"]);
    // A job that is deleted takes its webhook along; what is to be told is told.
    store.delete_job(TENANT.into(), "job_b".into(), event("job.deleted", "job_b")).await.unwrap();
    assert_eq!(due(&store, i64::MAX).await.len(), 1);
}
