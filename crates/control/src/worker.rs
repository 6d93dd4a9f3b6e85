//! The way to what runs jobs: in this process, or elsewhere.

use crate::artifacts::ArtifactDesk;
use async_trait::async_trait;
use cofferdam_api::JobRequest;
use cofferdam_core::{InvalidValue, JobId, JobResult, Limits, TaskId};
use std::sync::Arc;
use tokio::sync::watch;

/// How much a worker takes on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    pub slots: usize,
    pub memory_bytes: u64,
}

/// Whether work can be given to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    Ready,
    NoWorker,
    /// It cannot make sandboxes; the text says why, for the operator.
    BackendUnhealthy(String),
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

/// How a run ended: with a result, or without having begun.
#[derive(Debug)]
pub enum RunEnd {
    Result(Box<JobResult>),
    /// It could not be run; the code is for programs, the message for people.
    Errored {
        code: &'static str,
        message: String,
    },
}

/// Runs jobs.
#[async_trait]
pub trait Worker: Send + Sync {
    fn capacity(&self) -> Capacity;

    /// Asked every few seconds, and after a run that could not begin.
    async fn health(&self) -> Health {
        Health::Ready
    }

    fn counts(&self) -> WorkerCounts {
        WorkerCounts::default()
    }

    /// Whether a request could be run, and within which limits: everything that can be refused beforehand is
    /// refused here.
    fn check(&self, request: &JobRequest) -> Result<Limits, InvalidValue>;

    /// Runs a job to its end. `cancelled` says by whom it is to be ended, once it is.
    async fn run(
        &self,
        id: JobId,
        task_id: TaskId,
        request: JobRequest,
        output: &mut dyn OutputSink,
        cancelled: watch::Receiver<Option<String>>,
    ) -> RunEnd;
}
