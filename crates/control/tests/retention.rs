//! The sweep, on a store of its own: what goes, what stays, and that a second time changes nothing.

// A case has nothing better to do with an error than to fail.
#![allow(clippy::unwrap_used)]

use cofferdam_api::JobRequest;
use cofferdam_control::{
    Checker, Control, Followed, Keep, Retention, Settings, SigningSettings, Swept, Workers, chain_start,
    job_view, now_ms,
};
use cofferdam_core::{InvalidValue, JobState, Limits};
use cofferdam_policy::{Action, Permit, Principal};
use cofferdam_proof::Checkpoint;
use cofferdam_store::{
    AuditEvent, Claim, Finish, Idempotency, JobSize, Location, NewJob, OutputEvent, OutputKind, Store,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const DAY_MS: i64 = 86_400_000;

/// A worker without room: nothing here is about running.
struct Idle;

impl Checker for Idle {
    fn check(&self, _: &JobRequest) -> Result<Limits, InvalidValue> {
        Ok(Limits::default())
    }
}

struct Bed {
    folder: PathBuf,
    store: Store,
    tenant: String,
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Bed {
    async fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("cofferdam-sweep-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = Store::open(&Location::Sqlite(folder.join("store.db"))).await.unwrap();
        let tenant = store.ensure_tenant("ten-a".to_owned(), "default".to_owned(), 1).await.unwrap();
        Self { folder, store, tenant }
    }

    async fn control(&self, retention: Retention) -> Control {
        self.control_that_signs(retention, true).await
    }

    async fn control_that_signs(&self, retention: Retention, signs: bool) -> Control {
        let signing = SigningSettings { folder: signs.then(|| self.folder.join("signing")) };
        let settings = Settings { retention, signing, ..Settings::default() };
        let workers = Workers { checker: Arc::new(Idle), local: None, remote: None };
        Control::start(self.store.clone(), workers, settings).await.unwrap()
    }

    fn event(&self, kind: &'static str, at_ms: i64) -> AuditEvent {
        let (actor, resource) = ("key".to_owned(), "job".to_owned());
        AuditEvent { at_ms, kind, actor, resource, details: serde_json::json!({}) }
    }

    /// A job that ended at a time, with output and a name.
    async fn ended(&self, id: &str, at_ms: i64) {
        let job = NewJob {
            id: id.to_owned(),
            tenant: self.tenant.clone(),
            agent: None,
            task_id: id.to_owned(),
            spec: "{}".to_owned(),
            terms: None,
            created_at_ms: at_ms,
            size: JobSize::default(),
            queue_deadline_ms: None,
            traceparent: None,
            webhook: None,
        };
        let (owner, worker) = ("c".to_owned(), "w".to_owned());
        let claim = Claim { owner, worker, lease_ms: 60_000, room: None, most_running: None };
        let name = Idempotency { route: "POST /v1/jobs", name: id.to_owned(), body_hash: "b".to_owned() };
        self.store
            .accept(job, Some(claim), Some(name), vec![self.event("job.accepted", at_ms)])
            .await
            .unwrap();
        let end = Finish {
            id: id.to_owned(),
            tenant: self.tenant.clone(),
            fence: 1,
            state: JobState::Succeeded,
            reason: None,
            message: None,
            result: Some(r#"{"exit_code":0}"#.to_owned()),
            at_ms,
        };
        let output = vec![OutputEvent { seq: 1, kind: OutputKind::Stdout, at_ms, bytes: b"said".to_vec() }];
        self.store.finish(end, output, self.event("job.finished", at_ms)).await.unwrap();
    }

    async fn permit(&self, control: &Control) -> Permit {
        let principal = Principal {
            tenant: self.tenant.clone(),
            actor: "key".to_owned(),
            agent: None,
            scopes: vec!["*".to_owned()],
        };
        control.permit(&principal, Action::JobGet, &self.tenant, None).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_thing_is_kept_for_its_own_time() {
    let bed = Bed::new("times").await;
    let now = now_ms();
    for (id, days) in [("ancient", 400), ("old", 31), ("quiet", 8), ("young", 6), ("today", 0)] {
        bed.ended(id, now - days * DAY_MS - 1000).await;
    }
    let control = bed.control(Retention::default()).await;
    let permit = bed.permit(&control).await;
    let swept = control.sweep(now).await.unwrap();
    assert_eq!((swept.idempotency, swept.jobs, swept.output, swept.audit), (4, 2, 1, 2), "{swept:?}");
    for (id, is_kept, has_output) in
        [("ancient", false, false), ("old", false, false), ("quiet", true, false), ("young", true, true)]
    {
        let job = control.get_job(&permit, id).await;
        assert_eq!(job.is_ok(), is_kept, "{id}: {job:?}");
        if let Ok(job) = job {
            let view = job_view(job, None);
            assert_eq!(view.output_expired, !has_output, "{id}");
            let text = serde_json::to_string(&view).unwrap();
            assert_eq!(text.contains(r#""output_expired":true"#), !has_output, "{text}");
        }
    }
    // Whoever follows a job whose output is gone is told of its end at once.
    let mut follower = control.follow_job(&permit, "quiet", 0, true).await.unwrap();
    let next = follower.next().await.unwrap();
    assert!(matches!(&next, Followed::Ended(job) if job.output_expired_at_ms == Some(now)), "{next:?}");
    let mut follower = control.follow_job(&permit, "young", 0, true).await.unwrap();
    assert!(matches!(follower.next().await.unwrap(), Followed::Output(events) if events.len() == 1));

    bed.store.verify_audit(&bed.tenant).await.unwrap();
    let checkpoint = bed.store.audit_checkpoint(&bed.tenant).await.unwrap().unwrap();
    assert_eq!((checkpoint.seq, checkpoint.envelope.is_some()), (2, true));
    // Again: there is nothing left to do, and nothing is written.
    let entries = bed.store.verify_audit(&bed.tenant).await.unwrap();
    assert_eq!(control.sweep(now).await.unwrap(), Swept::default());
    assert_eq!(bed.store.verify_audit(&bed.tenant).await.unwrap(), entries);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_for_ever_stays() {
    let bed = Bed::new("forever").await;
    let now = now_ms();
    bed.ended("ancient", now - 4000 * DAY_MS).await;
    let keep = Keep::Forever;
    let retention = Retention { jobs: keep, output: keep, audit: keep, every: Duration::from_secs(600) };
    let control = bed.control(retention).await;
    let swept = control.sweep(now).await.unwrap();
    assert_eq!((swept.jobs, swept.output, swept.audit), (0, 0, 0), "{swept:?}");
    assert_eq!(bed.store.output("ancient", 0, 5).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_removed_of_the_audit_leaves_a_signature_or_stays() {
    let now = now_ms();
    for (name, signs) in [("signed", true), ("unsigned", false)] {
        let bed = Bed::new(name).await;
        bed.ended("ancient", now - 400 * DAY_MS).await;
        let control = bed.control_that_signs(Retention::default(), signs).await;
        let swept = control.sweep(now).await;
        let checkpoint = bed.store.audit_checkpoint(&bed.tenant).await.unwrap();
        if signs {
            assert_eq!(swept.unwrap().audit, 2);
            let checkpoint = checkpoint.unwrap();
            let (envelope, after) = chain_start(&bed.store, &bed.tenant).await.unwrap();
            let keys = control.signing_keys().unwrap();
            let (signed, _) = Checkpoint::open(&envelope.unwrap(), Some(&keys)).unwrap();
            assert_eq!((after, signed.0.seq, &signed.0.hash), (2, 2, &checkpoint.hash));
        } else {
            assert!(swept.is_err());
            assert_eq!(checkpoint, None);
            assert_eq!(bed.store.audit(&bed.tenant, 0, 1).await.unwrap()[0].seq, 1);
        }
        bed.store.verify_audit(&bed.tenant).await.unwrap();
    }
}

/// It comes by itself, too.
#[tokio::test(flavor = "multi_thread")]
async fn sweeps_come_by_themselves() {
    let bed = Bed::new("period").await;
    bed.ended("old", now_ms() - 31 * DAY_MS).await;
    let retention = Retention { every: Duration::from_millis(20), ..Retention::default() };
    let control = bed.control(retention).await;
    let permit = bed.permit(&control).await;
    let gone = async {
        while control.get_job(&permit, "old").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone).await.expect("it goes");
}
