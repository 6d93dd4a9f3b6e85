//! A control plane on a store of its own.

use async_trait::async_trait;
use cofferdam_api::JobRequest;
use cofferdam_control::{
    Capacity, Checker, Control, Health, Offer, OutputSink, RunEnd, RunOrder, RunSignals, Settings, Stream,
    Worker, Workers,
};
use cofferdam_core::{InvalidValue, Limits};
use cofferdam_policy::{Action, Permit, Principal};
use cofferdam_store::{Location, Store};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Runs nothing: it says each of the lines of the code after a moment, and ends.
#[derive(Debug)]
pub(crate) struct FakeWorker {
    pub(crate) health: Mutex<Health>,
}

#[async_trait]
impl Worker for FakeWorker {
    async fn health(&self) -> Health {
        self.health.lock().unwrap().clone()
    }

    async fn run(&self, run: RunOrder, output: &mut dyn OutputSink, _: RunSignals) -> RunEnd {
        output.started();
        for line in run.request.code.unwrap_or_default().lines() {
            output.push(Stream::Stdout, format!("{line}\n").as_bytes());
            tokio::time::sleep(Duration::from_millis(120)).await;
            output.ready().await;
        }
        RunEnd::Errored { code: "fake".into(), message: "it was never meant to run".to_owned() }
    }
}

impl Checker for FakeWorker {
    fn check(&self, _: &JobRequest) -> Result<Limits, InvalidValue> {
        Ok(Limits::default())
    }
}

fn workers(worker: &Arc<FakeWorker>) -> Workers {
    let offer = Offer {
        labels: Default::default(),
        backends: vec!["native".to_owned()],
        images: None,
        capacity: Capacity { slots: 4, cpus_millis: 4_000, memory_bytes: 1 << 40 },
    };
    Workers { checker: worker.clone(), local: Some((worker.clone(), offer)), remote: None }
}

pub(crate) struct Bed {
    folder: PathBuf,
    pub(crate) store: Store,
    pub(crate) tenant: String,
}

impl Bed {
    pub(crate) async fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("cofferdam-control-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let store = Store::open(&Location::Sqlite(folder.join("store.db"))).await.unwrap();
        let tenant = store.ensure_tenant("ten-a".into(), "a".into(), 1).await.unwrap();
        Self { folder, store, tenant }
    }

    pub(crate) async fn control(&self, settings: Settings) -> (Control, Arc<FakeWorker>) {
        let worker = Arc::new(FakeWorker { health: Mutex::new(Health::Ready) });
        (Control::start(self.store.clone(), workers(&worker), settings).await.unwrap(), worker)
    }

    /// Another control plane with a connection of its own, as in another process.
    pub(crate) async fn other(&self) -> Control {
        let store = Store::open(&Location::Sqlite(self.folder.join("store.db"))).await.unwrap();
        let worker = Arc::new(FakeWorker { health: Mutex::new(Health::Ready) });
        Control::start(store, workers(&worker), Settings::default()).await.unwrap()
    }

    pub(crate) async fn permit(
        &self,
        control: &Control,
        action: Action,
    ) -> cofferdam_control::Result<Permit> {
        let scopes = vec!["*".to_owned(), "operator".to_owned()];
        let principal = Principal { tenant: self.tenant.clone(), actor: "key-a".into(), agent: None, scopes };
        control.permit(&principal, action, &self.tenant, None).await
    }

    pub(crate) async fn submit(
        &self,
        control: &Control,
        request: JobRequest,
    ) -> cofferdam_control::Result<String> {
        let permit = self.permit(control, Action::JobCreate).await?;
        Ok(control.create_job(&permit, request, None).await?.id)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(crate) async fn wait_until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < Duration::from_secs(30), "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
