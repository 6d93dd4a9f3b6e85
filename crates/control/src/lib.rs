//! The control plane: what can be asked for, one file a verb, and the task that gives kept work to a worker.
//!
//! A verb takes a [`Permit`], so nothing happens that the policy was not asked about. It writes what should be, and
//! what was written is what counts: a process that dies and comes back goes on from there. Nothing here knows HTTP,
//! and nothing knows how a sandbox is made.
//!
//! [`Permit`]: cofferdam_policy::Permit

mod artifacts;
mod audit;
mod backends;
mod bypass;
mod clock;
mod dispatch;
mod error;
mod fair;
mod feeds;
mod fleet;
mod gates;
mod ids;
mod image_shelves;
mod image_worker;
mod images;
mod jobs;
mod keys;
mod leases;
mod limits;
mod master_key;
mod metrics;
mod mounts;
mod noted;
mod once;
mod output_log;
mod pieces;
mod placement;
mod quota;
mod receipts;
mod retention;
mod secrets;
mod service;
mod session_worker;
mod sessions;
mod settings;
mod signing;
mod tenants;
mod terms;
mod tokens;
mod webhooks;
mod worker;
mod workers;

pub use artifacts::{ArtifactDesk, ArtifactSettings, Download, Reader, Upload, artifact_view};
pub use audit::{AuditExport, chain_start};
pub use backends::BackendSettings;
pub use clock::now_ms;
pub use cofferdam_core::timestamp;
pub use error::ControlError;
pub use feeds::{EventFollower, Followed, Follower};
pub use fleet::HEARTBEAT;
pub use gates::{Gate, Refusal, cell, degradation_page};
pub use ids::instance as draw_name;
pub use image_worker::{ImageFailure, ImageWorker, InspectedImage};
pub use images::image_view;
pub use jobs::{Submitted, job_view};
pub use keys::{KeyOrder, NewSecret, OPERATOR, hash};
pub use limits::{DefaultLimits, LimitSettings, MaximumLimits};
pub use master_key::{check_master_key, rewrap_master_key};
pub use metrics::{Metrics, Phase};
pub use mounts::MountSettings;
pub use once::Named;
pub use pieces::{Piece, PieceReader};
pub use quota::Quotas;
pub use retention::{Keep, Retention, Swept};
pub use secrets::secret_view;
pub use service::ServiceTokens;
pub use session_worker::{
    ArchiveKind, FileReader, FileSearch, FileWriter, Hold, Placed, ProcessPiece, ProcessTold, SavedFiles,
    SecretFile, SessionFailure, SessionOrder, SessionStarted, SessionWorker, StepEnd, StepOrder, StepSink,
    WatchTold,
};
pub use sessions::{
    FILE_MODE, FollowedFileLink, FollowedStep, Forked, KEPT, NOT_KEPT, PauseMode, SessionSettings,
    StepFollower, SubmittedStep, TicketFor, like_job, resumed_view, session_view, snapshot_view, step_view,
};
pub use settings::{Node, Settings};
pub use signing::{Rotated, SigningError, SigningSettings, rotate_signing_key, sign_head, signing_key_list};
pub use tenants::TenantChange;
pub use tokens::Unrecognised;
pub use webhooks::WebhookSettings;
pub use worker::{
    BackendHealth, Capacity, Checker, Connector, Health, MountProblem, Offer, OutputSink, RunEnd, RunOrder,
    RunSignals, Stream, Worker, WorkerCounts, Workers,
};
pub use workers::MAX_WORKER_IMAGES;

use artifacts::Artifacts;
use bypass::Bypass;
use cofferdam_artifacts::Vault;
use cofferdam_identity::Verifier;
use cofferdam_policy::{Action, Denial, Facts, Permit, Policy, Principal};
use cofferdam_store::{AuditEvent, Store};
use cofferdam_turns::Running;
use dispatch::Dispatcher;
use feeds::Feeds;
use fleet::Fleet;
use gates::Gates;
use noted::Noted;
use signing::Signing;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// The tenant that a server begins with.
pub const FIRST_TENANT: &str = "default";

pub type Result<T> = std::result::Result<T, ControlError>;

/// The control plane of one process.
#[derive(Clone)]
pub struct Control {
    parts: Arc<Parts>,
}

struct Parts {
    store: Store,
    policy: Policy,
    checker: Arc<dyn Checker>,
    /// Names this process as the one that answers for a job; new at every start, after the name of its node.
    instance: String,
    fleet: Arc<Fleet>,
    dispatcher: Dispatcher,
    tenants: quota::Tenants,
    tokens: Option<Verifier>,
    bypass: Option<Bypass>,
    running: Running,
    settings: Settings,
    artifacts: Option<Artifacts>,
    signing: Signing,
    noted: Noted,
    /// Of the sessions that this process has placed.
    rooms: sessions::Rooms,
    used_tickets: sessions::UsedTickets,
    absent: sessions::Absent,
    /// Something that was kept of a session is to go.
    archives_swept: Notify,
    forgetting: sessions::Forgetting,
    is_draining: AtomicBool,
    began: std::time::Instant,
    /// Whoever follows something has to let go.
    stopped: watch::Sender<bool>,
    metrics: Metrics,
    gates: Gates,
    /// Something may be wrong, and is worth a look.
    trouble: Notify,
    backends: backends::Seen,
    /// Held by who changes which images are registered, and which of them the image store keeps.
    pins: tokio::sync::Mutex<()>,
    feeds: Feeds,
    deliveries: webhooks::Deliveries,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("instance", &self.parts.instance).finish_non_exhaustive()
    }
}

impl Control {
    /// Takes up where the process before ended: what it ran itself is lost, what runs elsewhere is taken over, and what
    /// it kept waiting goes on.
    pub async fn start(store: Store, workers: Workers, settings: Settings) -> Result<Self> {
        Self::start_with(store, workers, settings, None).await
    }

    /// The same with a place for artifacts. Without one, jobs leave none and verbs on them are not served.
    pub async fn start_with(
        store: Store,
        workers: Workers,
        settings: Settings,
        vault: Option<Vault>,
    ) -> Result<Self> {
        let signing = Signing::open(&settings.signing)?;
        let Workers { checker, local, remote } = workers;
        let node = if settings.node.name.is_empty() { ids::instance()? } else { settings.node.name.clone() };
        let instance = format!("{node}:{}", ids::instance()?);
        store.end_leases(format!("{node}:"), instance.clone()).await?;
        // What the process before had, went with it.
        store.lose_sessions(format!("{node}:"), instance.clone(), now_ms()).await?;
        let local = local.map(|(worker, offer)| (instance.clone(), worker, offer));
        let tokens = match &settings.jwt {
            None => None,
            Some(jwt) => {
                let opened = Verifier::open(jwt.clone()).await;
                Some(opened.map_err(|error| ControlError::Unavailable(error.to_string()))?)
            }
        };
        let bypass = match settings.dev_no_auth {
            false => None,
            true => {
                let id = ids::tenant()?.to_string();
                Some(Bypass::new(store.ensure_tenant(id, FIRST_TENANT.to_owned(), now_ms()).await?))
            }
        };
        let policy = match &settings.rules {
            None => Policy::builtin(),
            Some(rules) => Policy::parse(rules).map_err(ControlError::Unavailable)?,
        };
        let parts = Parts {
            store,
            policy,
            checker,
            dispatcher: Dispatcher::default(),
            tenants: quota::Tenants::default(),
            tokens,
            bypass,
            instance,
            fleet: Arc::new(Fleet::new(local, remote)),
            running: Running::default(),
            deliveries: webhooks::Deliveries::new(&settings.webhooks)?,
            settings,
            artifacts: vault.map(Artifacts::new),
            signing,
            noted: Noted::default(),
            rooms: sessions::Rooms::default(),
            used_tickets: sessions::UsedTickets::default(),
            absent: sessions::Absent::default(),
            archives_swept: Notify::new(),
            forgetting: sessions::Forgetting::default(),
            is_draining: AtomicBool::new(false),
            began: std::time::Instant::now(),
            stopped: watch::Sender::new(false),
            metrics: Metrics::default(),
            gates: Gates::default(),
            trouble: Notify::new(),
            backends: backends::Seen::default(),
            pins: tokio::sync::Mutex::default(),
            feeds: Feeds::default(),
        };
        let control = Self { parts: Arc::new(parts) };
        control.seal_old_sessions().await?;
        control.say_that_it_is_there().await?;
        control.attend_due().await?;
        // What this process's own past had begun with sessions that are somewhere else.
        control.take_up(&format!("{node}:"), &control.parts.instance).await?;
        control.spawn_dispatch();
        control.spawn_renewals();
        control.spawn_due();
        control.spawn_sweeps();
        control.spawn_bypass_notes();
        control.spawn_expiry();
        control.spawn_sweep();
        control.spawn_archive_sweep();
        control.spawn_watch();
        control.spawn_artifact_watch();
        control.spawn_signing_watch();
        control.spawn_feeds();
        control.spawn_webhooks();
        let pinning = control.clone();
        tokio::spawn(async move { pinning.pin_registered().await });
        Ok(control)
    }

    /// Asks whether a principal may do something to what is `tenant`'s. A denial is noted.
    pub async fn permit(
        &self,
        principal: &Principal,
        action: Action,
        tenant: &str,
        agent: Option<&str>,
    ) -> Result<Permit> {
        self.permit_on(principal, action, tenant, Facts { agent, ..Facts::default() }).await
    }

    /// The same, for a request that says more of itself.
    pub async fn permit_on(
        &self,
        principal: &Principal,
        action: Action,
        tenant: &str,
        facts: Facts<'_>,
    ) -> Result<Permit> {
        self.pass_gates(action)?;
        match self.parts.policy.decide_on(principal, action, tenant, facts) {
            Ok(permit) => Ok(permit),
            Err(denial) => {
                let details = serde_json::json!({"action": action.as_str(), "rule": denial.rule});
                self.note_denial(principal, tenant, &denial, details).await?;
                Err(ControlError::Denied(denial))
            }
        }
    }

    async fn note_denial(
        &self,
        principal: &Principal,
        tenant: &str,
        denial: &Denial,
        details: serde_json::Value,
    ) -> Result<()> {
        self.parts.metrics.denials.one(&denial.rule);
        let event = AuditEvent {
            at_ms: now_ms(),
            kind: "denied",
            actor: principal.actor.clone(),
            resource: tenant.to_owned(),
            details,
        };
        Ok(self.parts.store.note(principal.tenant.clone(), event).await?)
    }

    /// Takes no new work and waits for what runs, up to a time. What is queued stays kept, for the next start.
    pub async fn drain(&self, time: Duration) {
        self.parts.is_draining.store(true, Ordering::Relaxed);
        let idle = async {
            while !self.parts.running.is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = tokio::time::timeout(time, idle).await;
        self.archive_before_the_end().await;
        if let Some(worker) = self.parts.fleet.local() {
            worker.stop().await;
        }
        // A store that is gone by now has told of it elsewhere.
        let _ = self.note_bypass().await;
        self.parts.stopped.send_replace(true);
    }

    /// Waits until this process is about to stop: whoever follows something lets go.
    pub async fn stopped(&self) {
        let _ = self.parts.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }

    pub fn is_draining(&self) -> bool {
        self.parts.is_draining.load(Ordering::Relaxed)
    }

    pub fn store(&self) -> &Store {
        &self.parts.store
    }

    fn event(
        &self,
        permit: &Permit,
        kind: &'static str,
        resource: &str,
        details: serde_json::Value,
    ) -> AuditEvent {
        let (actor, resource) = (permit.actor().to_owned(), resource.to_owned());
        AuditEvent { at_ms: now_ms(), kind, actor, resource, details }
    }
}
