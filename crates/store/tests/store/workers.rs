//! Workers elsewhere: when they were heard of, and that no two stores together give one more than it has.

use crate::bed::{Bed, TENANT, assert_refused, claim, end, event, new_job, queue, state};
use cofferdam_core::JobState;
use cofferdam_store::{Accepted, Claim, JobSize, NewJob, StoreError, WorkerRecord, WorkerRoom};

const ROOM: WorkerRoom = WorkerRoom { slots: 5, cpus_millis: 1_000_000, memory_bytes: 1_000_000 };

fn worker(id: &str, url: &str) -> WorkerRecord {
    WorkerRecord {
        id: id.to_owned(),
        url: url.to_owned(),
        labels: r#"{"zone":"a"}"#.to_owned(),
        backends: "native".to_owned(),
        images: None,
        room: ROOM,
        is_draining: false,
        problem: None,
        registered_at_ms: 0,
        silent_ms: 0,
    }
}

fn shared(worker: &str, room: WorkerRoom) -> Claim {
    Claim { worker: worker.to_owned(), room: Some(room), ..claim("owner") }
}

pub(crate) async fn a_worker_is_known_by_its_heartbeats(bed: Bed) {
    let store = bed.open().await;
    assert_eq!(store.workers(60_000).await.unwrap(), []);
    store.heartbeat(worker("w2", "http://b")).await.unwrap();
    store.heartbeat(worker("w1", "http://a")).await.unwrap();
    store.heartbeat(WorkerRecord { is_draining: true, ..worker("w1", "http://c") }).await.unwrap();
    let known = store.workers(60_000).await.unwrap();
    let [first, second] = &known[..] else { panic!("{known:?}") };
    assert_eq!((first.id.as_str(), first.url.as_str(), first.is_draining), ("w1", "http://c", true));
    assert_eq!((second.id.as_str(), second.room, second.is_draining), ("w2", ROOM, false));
    assert!(first.silent_ms >= 0 && first.silent_ms < 60_000 && first.registered_at_ms > 1_700_000_000_000);
    let images = Some("sha256:aa sha256:bb".to_owned());
    assert_eq!(second.images, None);
    store.heartbeat(WorkerRecord { images: images.clone(), ..worker("w2", "http://b") }).await.unwrap();
    assert_eq!(store.workers(60_000).await.unwrap()[1].images, images);
    // What is wrong with it is known from one word to the next.
    let problem = Some("no cgroups".to_owned());
    store.heartbeat(WorkerRecord { problem: problem.clone(), ..worker("w2", "http://b") }).await.unwrap();
    assert_eq!(store.workers(60_000).await.unwrap()[1].problem, problem);
    store.heartbeat(worker("w2", "http://b")).await.unwrap();
    assert_eq!(store.workers(60_000).await.unwrap()[1].problem, None);
    // A worker that was started again has another id, and the address of the one before.
    store.heartbeat(worker("w3", "http://c")).await.unwrap();
    let ids: Vec<_> = store.workers(60_000).await.unwrap().into_iter().map(|worker| worker.id).collect();
    assert_eq!(ids, ["w2", "w3"]);
    store.forget_workers(60_000).await.unwrap();
    assert_eq!(store.workers(60_000).await.unwrap().len(), 2);
    store.forget_workers(-60_000).await.unwrap();
    assert_eq!(store.workers(60_000).await.unwrap(), []);
}

pub(crate) async fn two_stores_together_never_give_a_worker_too_much(bed: Bed) {
    let stores = [bed.open().await, bed.open().await];
    let claims: Vec<_> = (0..200)
        .map(|i| {
            let store = stores[i % 2].clone();
            let job = new_job(&format!("job_{i:03}"));
            tokio::spawn(async move { store.accept(job, Some(shared("w1", ROOM)), None, Vec::new()).await })
        })
        .collect();
    let mut won = 0;
    for claim in claims {
        match claim.await.unwrap().unwrap() {
            Accepted::New { fence: Some(1) } => won += 1,
            other => assert_eq!(other, Accepted::New { fence: None }),
        }
    }
    assert_eq!(won, ROOM.slots, "what did not fit is kept all the same");
    let queued = stores[0].queued_of(TENANT, 1_000).await.unwrap();
    assert_eq!(queued.len() as i64, 200 - ROOM.slots);
    let id = queued[0].id.clone();
    let refused = stores[1].claim(id.clone(), shared("w1", ROOM), event("job.running", &id)).await;
    assert_refused!(refused, StoreError::Full { worker } if worker == "w1");
    assert_eq!(state(&stores[0], &id).await, JobState::Queued);
    stores[1].claim(id.clone(), shared("w2", ROOM), event("job.running", &id)).await.unwrap();
    assert_eq!(stores[0].job(TENANT, &id).await.unwrap().unwrap().worker.as_deref(), Some("w2"));
}

pub(crate) async fn cpus_and_memory_are_counted_too(bed: Bed) {
    let store = bed.open().await;
    let room = WorkerRoom { slots: 100, cpus_millis: 2_500, memory_bytes: 100 };
    for (id, cpus_millis, memory_bytes, fits) in [
        ("a", 1_000, 40, true),
        ("too many cpus", 1_501, 1, false),
        ("too much memory", 1, 61, false),
        ("b", 1_500, 60, true),
        ("nothing is left", 1, 0, false),
    ] {
        let job = NewJob { size: JobSize { cpus_millis, memory_bytes }, ..new_job(id) };
        let accepted = store.accept(job, Some(shared("w1", room)), None, Vec::new()).await.unwrap();
        assert_eq!(accepted, Accepted::New { fence: fits.then_some(1) }, "{id}");
    }
    queue(&store, "without a count").await;
    store.claim("without a count".to_owned(), claim("w1"), event("job.running", "x")).await.unwrap();
}

/// Two processes that start a tenant's jobs go together by what it may have.
pub(crate) async fn two_stores_together_start_no_more_than_a_tenant_may_have(bed: Bed) {
    let stores = [bed.open().await, bed.open().await];
    let room = WorkerRoom { slots: 100, cpus_millis: 100_000, memory_bytes: 100_000 };
    let within = || Some(Claim { most_running: Some(2), ..shared("w1", room) });
    for (at, store) in stores.iter().chain(&stores).enumerate() {
        let job = new_job(&format!("job_{at}"));
        let accepted = store.accept(job, within(), None, Vec::new()).await.unwrap();
        assert_eq!(accepted, Accepted::New { fence: (at < 2).then_some(1) }, "{at}");
    }
    let again = stores[1].claim("job_2".to_owned(), within().unwrap(), event("job.running", "job_2")).await;
    assert_refused!(again, StoreError::AtQuota { tenant } if tenant == TENANT);
    end(&stores[0], "job_0", 1, JobState::Succeeded).await.unwrap();
    stores[1].claim("job_2".to_owned(), within().unwrap(), event("job.running", "job_2")).await.unwrap();
}
