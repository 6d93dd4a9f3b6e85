//! What may be asked of a session.

use crate::artifacts::ArtifactStore;
use crate::job::FileIn;
use crate::output::LiveOutput;
use crate::pool::{Held, Pool};
use cofferdam_backend::{Image, async_trait};
use cofferdam_core::{
    Artifact, GuestPath, IsolationMode, LimitHit, Limits, NetworkPolicy, Outcome, SessionId, SkippedArtifact,
    TaskId,
};
use cofferdam_kernels::KernelLanguage;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// One session.
#[derive(Debug, Clone)]
pub struct SessionSpec {
    pub id: SessionId,
    pub task_id: TaskId,
    /// Of its placement here.
    pub generation: i64,
    /// For every step.
    pub env: Vec<(String, String)>,
    pub limits: Limits,
    pub network: NetworkPolicy,
    pub image: Image,
    pub isolation: IsolationMode,
    pub workspace_root: PathBuf,
    /// Where its sandbox comes from, if not from the pool of all.
    pub place: Option<SessionPlace>,
}

/// Sandboxes of another backend, or of an image.
#[derive(Debug, Clone)]
pub struct SessionPlace {
    pub pool: Arc<Pool>,
    pub held: Held,
}

impl SessionSpec {
    /// A session with the documented defaults.
    pub fn new(id: SessionId, generation: i64) -> Self {
        Self {
            task_id: TaskId::from(&id),
            id,
            generation,
            env: Vec::new(),
            limits: Limits::default(),
            network: NetworkPolicy::None,
            image: Image::Host,
            isolation: IsolationMode::Strict,
            workspace_root: PathBuf::from("/var/lib/cofferdam/workspaces"),
            place: None,
        }
    }
}

/// One step.
#[derive(Debug, Clone)]
pub struct StepSpec {
    /// 1 for the session's first.
    pub number: i64,
    pub work: StepWork,
    /// Steps of the same kind and context run one after the other.
    pub context: String,
    /// Over what the session has.
    pub env: Vec<(String, String)>,
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepWork {
    Command { argv: Vec<String>, stdin: Option<Vec<u8>>, workdir: GuestPath },
    Code { language: KernelLanguage, code: String },
}

/// Something that code shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// `result` or `display`.
    pub kind: String,
    /// By media type.
    pub data: BTreeMap<String, String>,
}

/// Takes what a step writes and shows, as it comes.
#[async_trait]
pub trait StepOutput: LiveOutput {
    /// Its turn has come: from here on it runs.
    async fn begun(&mut self);

    fn show(&mut self, shown: Shown);

    /// What is put into the workspace before it begins; asked for once.
    fn files(&mut self) -> Vec<FileIn> {
        Vec::new()
    }

    /// Where what it leaves is kept; none where it is not.
    fn artifacts(&mut self) -> Option<Box<dyn ArtifactStore>> {
        None
    }
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq)]
pub struct StepEnd {
    pub outcome: Outcome,
    pub exit_code: Option<i32>,
    pub limits_hit: Vec<LimitHit>,
    pub duration: Duration,
    /// What the code raised: name, value, traceback.
    pub error: Option<[String; 3]>,
    pub execution_count: Option<u64>,
    /// The interpreter before this one had died, or was restarted.
    pub is_restarted: bool,
    /// Whether the interpreter still has what was set before, where the step was ended early.
    pub state_kept: Option<bool>,
    pub artifacts: Vec<Artifact>,
    pub artifacts_skipped: Vec<SkippedArtifact>,
    pub warnings: Vec<String>,
}

impl StepEnd {
    pub(super) fn of(outcome: Outcome, duration: Duration) -> Self {
        Self {
            exit_code: outcome.exit_code(),
            outcome,
            limits_hit: Vec::new(),
            duration,
            error: None,
            execution_count: None,
            is_restarted: false,
            state_kept: None,
            artifacts: Vec::new(),
            artifacts_skipped: Vec::new(),
            warnings: Vec::new(),
        }
    }
}
