//! The way to what runs jobs: in this process, or elsewhere.

use crate::artifacts::ArtifactDesk;
use crate::image_worker::ImageWorker;
use crate::session_worker::{SecretFile, SessionWorker};
use async_trait::async_trait;
use cofferdam_api::{JobRequest, SandboxRequest};
use cofferdam_core::{InvalidValue, JobId, JobResult, Limits, TaskId};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How much a worker takes on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    pub slots: u64,
    pub cpus_millis: u64,
    pub memory_bytes: u64,
}

/// What a worker is for, and how much of it there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub labels: BTreeMap<String, String>,
    pub backends: Vec<String>,
    /// Digests of its images; none where it does not say.
    pub images: Option<BTreeSet<String>>,
    pub capacity: Capacity,
}

/// Whether work can be given to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    Ready,
    NoWorker,
    /// It cannot make sandboxes; the text says why, for the operator.
    BackendUnhealthy(String),
}

/// One backend of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendHealth {
    pub name: String,
    /// Why it cannot make sandboxes now, for the operator.
    pub problem: Option<String>,
}

/// What a worker's pool has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    pub warm: u64,
    pub cold: u64,
    pub waiting: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Takes output as it comes.
#[async_trait]
pub trait OutputSink: Send {
    /// The sandbox stands and its process runs.
    fn started(&mut self) {}

    fn push(&mut self, stream: Stream, bytes: &[u8]);
    async fn ready(&mut self);

    /// Where the run gets artifacts and leaves them; none where they are not kept.
    fn artifacts(&self) -> Option<Arc<dyn ArtifactDesk>> {
        None
    }
}

/// One attempt at a job.
#[derive(Debug, Clone)]
pub struct RunOrder {
    pub id: JobId,
    pub task_id: TaskId,
    pub request: JobRequest,
    /// 1 for the first. A worker runs an attempt once, however often it is asked to.
    pub attempt: i64,
    /// The claim under which it is asked for.
    pub fence: i64,
    pub lease: Duration,
    /// It was begun under another claim: a worker that does not know it must not begin it again.
    pub is_begun: bool,
    /// What the request asks for by name, opened.
    pub secrets: Vec<SecretFile>,
}

/// What a run is told while it goes on.
#[derive(Debug, Clone)]
pub struct RunSignals {
    /// By whom it is to be ended, once it is.
    pub cancelled: watch::Receiver<Option<String>>,
    /// Changes whenever the lease was renewed in the store.
    pub renewed: watch::Receiver<u64>,
}

/// How a run ended.
#[derive(Debug)]
pub enum RunEnd {
    Result(Box<JobResult>),
    /// It could not be run; the code is for programs, the message for people.
    Errored {
        code: Cow<'static, str>,
        message: String,
    },
    /// It was certainly not begun: another worker may have it.
    Unstarted {
        why: String,
    },
    /// Nobody knows how far it came.
    Lost {
        why: String,
    },
}

/// Runs jobs.
#[async_trait]
pub trait Worker: Send + Sync {
    /// Runs an attempt to its end. What is dropped on the way is ended, unless it runs elsewhere: there it ends with
    /// its lease.
    async fn run(&self, run: RunOrder, output: &mut dyn OutputSink, signals: RunSignals) -> RunEnd;

    /// The way to its sessions, where it has any.
    fn sessions(&self) -> Option<&dyn SessionWorker> {
        None
    }

    /// The way to its images, where it has any.
    fn images(&self) -> Option<&dyn ImageWorker> {
        None
    }

    /// The end of an attempt is kept, and the worker need not remember it any more.
    async fn forget(&self, _id: &JobId, _attempt: i64, _fence: i64) {}

    /// Asked every few seconds, and after a run that could not begin.
    async fn health(&self) -> Health {
        Health::Ready
    }

    /// Its backends, each asked anew; none where that is not known here.
    async fn backends(&self) -> Vec<BackendHealth> {
        Vec::new()
    }

    fn counts(&self) -> WorkerCounts {
        WorkerCounts::default()
    }

    /// This process is about to end: lets go of what it keeps ready, where that would outlive it.
    async fn stop(&self) {}
}

/// What is wrong with a mount.
#[derive(Debug, PartialEq, Eq)]
pub enum MountProblem {
    /// The operator does not allow it.
    Outside(InvalidValue),
    Unusable(InvalidValue),
}

/// Looks at requests before they are kept.
pub trait Checker: Send + Sync {
    /// Whether a request could be run, and within which limits: everything that can be refused beforehand is
    /// refused here.
    fn check(&self, request: &JobRequest) -> Result<Limits, InvalidValue>;

    /// Whether what it mounts is there, where this process can see that. It may wait for a disk.
    fn check_mounts(&self, _sandbox: &SandboxRequest) -> Result<(), MountProblem> {
        Ok(())
    }
}

/// Reaches workers that have registered.
pub trait Connector: Send + Sync {
    fn connect(&self, id: &str, url: &str) -> Arc<dyn Worker>;
}

/// What a control plane gives its jobs to.
pub struct Workers {
    pub checker: Arc<dyn Checker>,
    /// The one in this process.
    pub local: Option<(Arc<dyn Worker>, Offer)>,
    /// The way to others; without it none may register.
    pub remote: Option<Arc<dyn Connector>>,
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers").finish_non_exhaustive()
    }
}
