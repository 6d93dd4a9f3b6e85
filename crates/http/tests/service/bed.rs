//! A control plane on a store of its own, whose worker only pretends, and a server before it.

use crate::idle_images::IdleImages;
use crate::idle_sessions::IdleSessions;
use async_trait::async_trait;
use cofferdam_api::JobRequest;
use cofferdam_artifacts::{Location as Place, MasterKey, Vault};
use cofferdam_control::{
    Capacity, Checker, Control, FIRST_TENANT, ImageWorker, Offer, OutputSink, RunEnd, RunOrder, RunSignals,
    SessionWorker, Settings, SigningSettings, Worker, Workers,
};
use cofferdam_core::{InvalidValue, Limits};
use cofferdam_http::{HttpSettings, Tls};
use cofferdam_store::{Location, Store};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

/// Takes as long as the code says, in milliseconds, and runs nothing.
#[derive(Default)]
struct Idle {
    sessions: Arc<IdleSessions>,
}

#[async_trait]
impl Worker for Idle {
    fn sessions(&self) -> Option<&dyn SessionWorker> {
        Some(&*self.sessions)
    }

    fn images(&self) -> Option<&dyn ImageWorker> {
        Some(&IdleImages)
    }

    async fn run(&self, run: RunOrder, _: &mut dyn OutputSink, _: RunSignals) -> RunEnd {
        let ms = run.request.code.and_then(|code| code.parse().ok()).unwrap_or(0);
        tokio::time::sleep(Duration::from_millis(ms)).await;
        RunEnd::Errored { code: "idle".into(), message: "it only waited".to_owned() }
    }
}

impl Checker for Idle {
    fn check(&self, _: &JobRequest) -> Result<Limits, InvalidValue> {
        Ok(Limits::default())
    }
}

fn workers(sessions: &Arc<IdleSessions>) -> Workers {
    let offer = Offer {
        labels: Default::default(),
        backends: vec!["native".to_owned()],
        images: None,
        capacity: Capacity { slots: 1000, cpus_millis: 10_000_000, memory_bytes: 1 << 44 },
    };
    let worker = Arc::new(Idle { sessions: Arc::clone(sessions) });
    Workers { checker: Arc::new(Idle::default()), local: Some((worker, offer)), remote: None }
}

pub(crate) struct Bed {
    pub(crate) control: Control,
    /// The first key, which may do everything.
    pub(crate) key: String,
    /// Of the worker.
    pub(crate) sessions: Arc<IdleSessions>,
    folder: PathBuf,
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Bed {
    pub(crate) async fn new(settings: Settings) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("cofferdam-http-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let store = Store::open(&Location::Sqlite(folder.join("store.db"))).await.unwrap();
        let key = Control::first_key(&store, FIRST_TENANT).await.unwrap().secret;
        let signing = SigningSettings { folder: Some(folder.join("signing")) };
        let settings = Settings { signing, ..settings };
        let master = MasterKey::open_or_make(&folder.join("master.key")).unwrap();
        let vault = Vault::open(&Place::Folder(folder.join("artifacts")), master).unwrap();
        let sessions = Arc::new(IdleSessions::default());
        let control = Control::start_with(store, workers(&sessions), settings, Some(vault)).await.unwrap();
        Self { control, key, sessions, folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Serves on a free port for as long as the test runs.
    pub(crate) async fn serve(&self, settings: HttpSettings, tls: Option<Tls>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(cofferdam_http::serve(
            listener,
            cofferdam_http::router(self.control.clone()),
            settings,
            tls,
            std::future::pending(),
        ));
        address
    }
}
