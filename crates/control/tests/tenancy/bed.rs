//! A control plane on a store of its own, and a worker whose jobs end when the test says so.

use async_trait::async_trait;
use cofferdam_api::JobRequest;
use cofferdam_control::{
    Capacity, Checker, Control, Offer, OutputSink, RunEnd, RunOrder, RunSignals, Settings, TenantChange,
    Worker, Workers,
};
use cofferdam_core::{InvalidValue, Limits};
use cofferdam_policy::{Action, Principal};
use cofferdam_store::{Location, Store};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{Semaphore, watch};

/// Runs nothing: a job takes a permit of the gate, and is over.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) open: Semaphore,
    /// The ids of jobs in the order in which they began.
    pub(crate) began: Mutex<Vec<String>>,
    pub(crate) changed: watch::Sender<usize>,
}

#[async_trait]
impl Worker for Gate {
    async fn run(&self, run: RunOrder, _: &mut dyn OutputSink, _: RunSignals) -> RunEnd {
        self.began.lock().unwrap().push(run.id.to_string());
        self.changed.send_modify(|count| *count += 1);
        self.open.acquire().await.unwrap().forget();
        RunEnd::Errored { code: "gate".into(), message: "it only waited".to_owned() }
    }
}

impl Checker for Gate {
    fn check(&self, request: &JobRequest) -> Result<Limits, InvalidValue> {
        let memory_bytes = request.limits.memory_bytes.unwrap_or(1 << 20);
        Ok(Limits { memory_bytes, ..Limits::default() })
    }
}

pub(crate) struct Bed {
    pub(crate) control: Control,
    pub(crate) gate: Arc<Gate>,
    folder: PathBuf,
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Bed {
    pub(crate) async fn new(slots: usize, memory_bytes: u64) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("cofferdam-tenancy-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let store = Store::open(&Location::Sqlite(folder.join("store.db"))).await.unwrap();
        let gate = Arc::new(Gate {
            open: Semaphore::new(0),
            began: Mutex::default(),
            changed: watch::Sender::new(0),
        });
        Control::first_key(&store, "default").await.unwrap();
        let offer = Offer {
            labels: Default::default(),
            backends: vec!["native".to_owned()],
            images: None,
            capacity: Capacity { slots: slots as u64, cpus_millis: slots as u64 * 1000, memory_bytes },
        };
        let workers = Workers { checker: gate.clone(), local: Some((gate.clone(), offer)), remote: None };
        let control = Control::start(store, workers, Settings::default()).await.unwrap();
        Self { control, gate, folder }
    }

    /// A tenant with quotas of its own, and whoever may do everything in it.
    pub(crate) async fn tenant(&self, name: &str, quotas: cofferdam_api::QuotasRequest) -> Principal {
        let default = self.control.store().tenant_by_name("default").await.unwrap().unwrap().id;
        let operator = principal(&default, &["*", "operator"]);
        let permit = self.control.permit(&operator, Action::TenantCreate, &default, None).await.unwrap();
        let tenant = self.control.create_tenant(&permit, name, TenantChange { quotas }).await.unwrap();
        principal(&tenant.id, &["*"])
    }

    pub(crate) async fn submit(
        &self,
        who: &Principal,
        memory_bytes: u64,
    ) -> cofferdam_control::Result<String> {
        let permit = self.control.permit(who, Action::JobCreate, &who.tenant, None).await?;
        let body = format!(r#"{{"command":["true"],"limits":{{"memory_bytes":{memory_bytes}}}}}"#);
        let request = serde_json::from_str(&body).unwrap();
        Ok(self.control.create_job(&permit, request, None).await?.id)
    }

    /// Lets so many jobs end.
    pub(crate) fn end(&self, count: usize) {
        self.gate.open.add_permits(count);
    }

    /// Waits until so many have begun.
    pub(crate) async fn begun(&self, count: usize) -> Vec<String> {
        self.gate.changed.subscribe().wait_for(|begun| *begun >= count).await.unwrap();
        self.gate.began.lock().unwrap().clone()
    }

    /// Waits until a job has begun, letting one end at a time, and returns how many ended for it.
    pub(crate) async fn ends_until_begun(&self, job: &str) -> usize {
        for ends in 0.. {
            let before = self.gate.began.lock().unwrap().clone();
            if before.iter().any(|begun| begun == job) {
                return ends;
            }
            self.end(1);
            self.begun(before.len() + 1).await;
        }
        unreachable!("it counts for ever")
    }
}

pub(crate) fn principal(tenant: &str, scopes: &[&str]) -> Principal {
    let scopes = scopes.iter().map(|&scope| scope.to_owned()).collect();
    Principal { tenant: tenant.to_owned(), actor: "test".to_owned(), agent: None, scopes }
}
