//! Receipts and the audit between tenants, and without a key to sign with.

use async_trait::async_trait;
use cofferdam_api::JobRequest;
use cofferdam_control::{
    Checker, Control, ControlError, OutputSink, RunEnd, RunOrder, RunSignals, Settings, SigningSettings,
    Worker, Workers, rotate_signing_key,
};
use cofferdam_core::{InvalidValue, JobState, Limits};
use cofferdam_policy::{Action, Permit, Principal};
use cofferdam_proof::{Checkpoint, Envelope, Head, KeyList, Receipt};
use cofferdam_store::{AuditEvent, AuditFilter, AuditHead, Claim, Finish, JobSize, Location, NewJob, Store};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Nothing here runs a job.
struct NoWorker;

#[async_trait]
impl Worker for NoWorker {
    async fn run(&self, _: RunOrder, _: &mut dyn OutputSink, _: RunSignals) -> RunEnd {
        RunEnd::Errored { code: "test".into(), message: "nothing runs here".to_owned() }
    }
}

impl Checker for NoWorker {
    fn check(&self, _: &JobRequest) -> Result<Limits, InvalidValue> {
        Ok(Limits::default())
    }
}

const JOB: &str = "job-aaaaaaaaaaaaaaaa";

struct Bed {
    folder: PathBuf,
    control: Control,
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn event(kind: &'static str) -> AuditEvent {
    let (actor, resource) = ("system".to_owned(), JOB.to_owned());
    AuditEvent { at_ms: 1, kind, actor, resource, details: serde_json::json!({}) }
}

impl Bed {
    /// A service with two tenants, and one finished job, which is the first one's.
    async fn new(signs: bool) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("cofferdam-receipts-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let store = Store::open(&Location::Sqlite(folder.join("cofferdam.db"))).await.expect("a store");
        let signing = SigningSettings { folder: signs.then(|| folder.join("signing")) };
        let settings = Settings { signing, ..Settings::default() };
        let workers = Workers { checker: Arc::new(NoWorker), local: None, remote: None };
        let control = Control::start(store.clone(), workers, settings).await.expect("control");
        for tenant in ["ten-one", "ten-two"] {
            store.ensure_tenant(tenant.to_owned(), tenant.to_owned(), 1).await.expect("a tenant");
        }
        let job = NewJob {
            id: JOB.to_owned(),
            tenant: "ten-one".to_owned(),
            agent: None,
            task_id: "task".to_owned(),
            spec: r#"{"language":"python","code":"print(1)"}"#.to_owned(),
            terms: None,
            traceparent: None,
            webhook: None,
            created_at_ms: 1,
            size: JobSize::default(),
            queue_deadline_ms: None,
        };
        let owner = "ctl-a".to_owned();
        let claim =
            Claim { owner, worker: "wrk-a".to_owned(), lease_ms: 60_000, room: None, most_running: None };
        store.accept(job, Some(claim), None, vec![event("job.accepted")]).await.expect("a job");
        let end = Finish {
            id: JOB.to_owned(),
            tenant: "ten-one".to_owned(),
            fence: 1,
            state: JobState::Succeeded,
            reason: None,
            message: None,
            result: Some(r#"{"outcome":{"kind":"exited","code":0}}"#.to_owned()),
            at_ms: 2,
        };
        store.finish(end, Vec::new(), event("job.finished")).await.expect("its end");
        Self { folder, control }
    }

    async fn permit(&self, tenant: &str, action: Action) -> Permit {
        let principal = Principal {
            tenant: tenant.to_owned(),
            actor: format!("key of {tenant}"),
            agent: None,
            scopes: vec!["*".to_owned()],
        };
        self.control.permit(&principal, action, tenant, None).await.expect("a permit")
    }

    async fn receipt(&self, tenant: &str) -> Result<Envelope, ControlError> {
        self.control.get_receipt(&self.permit(tenant, Action::ReceiptGet).await, JOB).await
    }

    fn keys(&self) -> KeyList {
        self.control.signing_keys().expect("keys")
    }
}

#[tokio::test]
async fn a_receipt_is_its_tenants_alone() {
    let bed = Bed::new(true).await;
    let own = bed.receipt("ten-one").await.expect("a receipt");
    let (receipt, proof) = Receipt::open(&own, Some(&bed.keys())).expect("a good one");
    assert_eq!((receipt.tenant.as_str(), proof.is_signed()), ("ten-one", true));
    let foreign = bed.receipt("ten-two").await;
    assert!(matches!(foreign, Err(ControlError::NotFound { what: "job" })), "{foreign:?}");
    // And nothing is noted of it in either chain but the owner's own reading.
    let kinds = async |tenant| {
        let entries = bed.control.store().audit(tenant, 0, 100).await.expect("entries");
        entries.into_iter().map(|entry| entry.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds("ten-one").await, ["job.accepted", "job.finished", "receipt.read"]);
    assert_eq!(kinds("ten-two").await, [""; 0]);
}

#[tokio::test]
async fn heads_and_checkpoints_are_of_one_tenant_and_kind() {
    let bed = Bed::new(true).await;
    let head = bed.control.head_audit(&bed.permit("ten-one", Action::AuditHead).await).await.expect("a head");
    let (Head(point), _) = Head::open(&head, Some(&bed.keys())).expect("good");
    let kept = bed.control.store().audit_head("ten-one").await.expect("a head");
    assert_eq!((point.tenant.as_str(), point.seq, &point.hash), ("ten-one", 2, &kept.hash));
    let empty =
        bed.control.head_audit(&bed.permit("ten-two", Action::AuditHead).await).await.expect("a head");
    let (Head(point), _) = Head::open(&empty, Some(&bed.keys())).expect("good");
    assert_eq!((point.tenant.as_str(), point.seq, point.hash.as_str()), ("ten-two", 0, ""));
    let removed = AuditHead { seq: 1, hash: kept.hash };
    let checkpoint = bed.control.sign_checkpoint("ten-one", &removed).expect("a checkpoint");
    assert!(Checkpoint::open(&checkpoint, Some(&bed.keys())).is_ok());
    assert!(Head::open(&checkpoint, Some(&bed.keys())).is_err());
}

/// A chain on its way out goes no further than it was asked to, and its own reading is in it.
#[tokio::test]
async fn an_export_ends_where_it_was_asked_to() {
    let bed = Bed::new(true).await;
    let permit = bed.permit("ten-one", Action::AuditExport).await;
    for (up_to, lines) in [(Some(1), 2), (Some(0), 1), (None, 4), (Some(100), 4)] {
        let mut export = bed.control.export_audit(&permit, up_to).await.expect("an export");
        let mut text = String::new();
        while let Some(more) = export.next().await.expect("lines") {
            text.push_str(&more);
        }
        assert_eq!(text.lines().count(), lines, "{up_to:?}: {text}");
    }
}

/// What could not be shown to others is refused, and everything else goes on.
#[tokio::test]
async fn without_a_key_nothing_is_signed_and_no_path_is_told() {
    let bed = Bed::new(false).await;
    let refused = bed.receipt("ten-one").await.expect_err("no key");
    assert!(matches!(&refused, ControlError::Unavailable(text) if !text.contains('/')), "{refused:?}");
    let permit = bed.permit("ten-one", Action::AuditList).await;
    let filter = AuditFilter { limit: 10, ..AuditFilter::default() };
    assert_eq!(bed.control.list_audit(&permit, &filter).await.expect("entries").len(), 3);
    let bed = Bed::new(true).await;
    let folder = bed.folder.join("signing");
    std::fs::remove_file(folder.join("keys.json")).expect("the keys");
    let refused = bed.receipt("ten-one").await.expect_err("no key");
    assert!(!refused.to_string().contains(&*bed.folder.to_string_lossy()), "{refused}");
    rotate_signing_key(&folder, false).expect("a new key");
    assert!(bed.receipt("ten-one").await.is_ok(), "a key that is there again is used again");
}
