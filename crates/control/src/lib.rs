//! The control plane: what can be asked for, one file a verb, and the task that gives kept work to a worker.
//!
//! A verb takes a [`Permit`], so nothing happens that the policy was not asked about. It writes what should be, and
//! what was written is what counts: a process that dies and comes back goes on from there. Nothing here knows HTTP,
//! and nothing knows how a sandbox is made.
//!
//! [`Permit`]: cofferdam_policy::Permit

mod audit;
mod clock;
mod dispatch;
mod error;
mod feeds;
mod gates;
mod ids;
mod jobs;
mod keys;
mod metrics;
mod noted;
mod receipts;
mod running;
mod settings;
mod signing;
mod terms;
mod webhooks;
mod worker;

pub use audit::AuditExport;
pub use clock::now_ms;
pub use cofferdam_core::timestamp;
pub use error::ControlError;
pub use feeds::{EventFollower, Followed, Follower};
pub use gates::{Gate, Refusal, cell, degradation_page};
pub use jobs::{Submitted, job_view};
pub use keys::{NewSecret, hash};
pub use metrics::{Metrics, Phase};
pub use settings::Settings;
pub use signing::{Rotated, SigningError, SigningSettings, rotate_signing_key, sign_head, signing_key_list};
pub use webhooks::WebhookSettings;
pub use worker::{Capacity, Health, OutputSink, RunEnd, Stream, Worker, WorkerCounts};

use cofferdam_policy::{Action, Permit, Policy, Principal};
use cofferdam_store::{AuditEvent, Store};
use dispatch::Dispatcher;
use feeds::Feeds;
use gates::Gates;
use noted::Noted;
use running::Running;
use signing::Signing;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};

pub type Result<T> = std::result::Result<T, ControlError>;

/// The control plane of one process.
#[derive(Clone)]
pub struct Control {
    parts: Arc<Parts>,
}

struct Parts {
    store: Store,
    policy: Policy,
    worker: Arc<dyn Worker>,
    /// Names this process as the one that runs a job; new at every start.
    instance: String,
    dispatcher: Dispatcher,
    running: Running,
    settings: Settings,
    signing: Signing,
    noted: Noted,
    is_draining: AtomicBool,
    /// Whoever follows something has to let go.
    stopped: watch::Sender<bool>,
    metrics: Metrics,
    gates: Gates,
    /// Something may be wrong, and is worth a look.
    trouble: Notify,
    feeds: Feeds,
    deliveries: webhooks::Deliveries,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("instance", &self.parts.instance).finish_non_exhaustive()
    }
}

impl Control {
    /// Takes up where the process before ended: what it ran is lost, what it kept waiting goes on.
    pub async fn start(store: Store, worker: Arc<dyn Worker>, settings: Settings) -> Result<Self> {
        let signing = Signing::open(&settings.signing)?;
        let instance = ids::instance()?;
        store.lose_all_but(instance.clone(), now_ms()).await?;
        let parts = Parts {
            store,
            policy: Policy::builtin(),
            dispatcher: Dispatcher::new(worker.capacity()),
            worker,
            instance,
            running: Running::default(),
            deliveries: webhooks::Deliveries::new(&settings.webhooks)?,
            settings,
            signing,
            noted: Noted::default(),
            is_draining: AtomicBool::new(false),
            stopped: watch::Sender::new(false),
            metrics: Metrics::default(),
            gates: Gates::default(),
            trouble: Notify::new(),
            feeds: Feeds::default(),
        };
        let control = Self { parts: Arc::new(parts) };
        control.spawn_dispatch();
        control.spawn_watch();
        control.spawn_feeds();
        control.spawn_webhooks();
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
        self.pass_gates(action)?;
        match self.parts.policy.decide(principal, action, tenant, agent) {
            Ok(permit) => Ok(permit),
            Err(denial) => {
                self.parts.metrics.denials.one(&denial.rule);
                let event = AuditEvent {
                    at_ms: now_ms(),
                    kind: "denied",
                    actor: principal.actor.clone(),
                    resource: tenant.to_owned(),
                    details: serde_json::json!({"action": action.as_str(), "rule": denial.rule}),
                };
                self.parts.store.note(principal.tenant.clone(), event).await?;
                Err(ControlError::Denied(denial))
            }
        }
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
        self.parts.stopped.send_replace(true);
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
