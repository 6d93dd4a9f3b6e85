//! What may be asked of a job.

use crate::artifacts::ArtifactStore;
use crate::pool::Held;
use crate::runner::Runner;
use crate::runtime::Runtime;
use crate::task_env::workspace;
use crate::terminal::Terminal;
use cofferdam_backend::{Image, Mount, OomScope, Reader, SandboxSpec};
use cofferdam_core::{GuestPath, IsolationMode, JobId, Limits, NetworkPolicy, SandboxId, TaskId};
use std::fmt;
use std::path::PathBuf;

/// What a job runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// A program and its first arguments.
    Command { argv: Vec<String> },
    /// Code, as text.
    Code { runtime: &'static Runtime, code: String },
    /// The own command of the tool that the runner names, or finds.
    Tool,
    /// A file that is in the image or among the files in.
    File { runtime: &'static Runtime, path: GuestPath },
}

/// What a job's process reads.
pub enum Stdin {
    /// Its end, from the start.
    Empty,
    Bytes(Vec<u8>),
    /// Whatever comes, for as long as it comes.
    Stream(Reader),
}

/// A file that is put into the sandbox before the process starts.
pub struct FileIn {
    pub path: GuestPath,
    pub mode: u32,
    pub content: Reader,
}

/// What happens to the files that a job leaves in its artifacts folder.
pub enum ArtifactsWanted {
    /// Nothing: the folder is not even looked at.
    No,
    /// The result names them.
    Listed,
    /// The result names them, and their bytes are kept.
    Stored(Box<dyn ArtifactStore>),
}

/// One job.
#[derive(Debug)]
pub struct JobSpec {
    pub job_id: JobId,
    pub task_id: TaskId,
    pub work: Work,
    /// For the program, after those that the work itself has.
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub workdir: GuestPath,
    pub stdin: Stdin,
    pub files: Vec<FileIn>,
    pub terminal: Option<Terminal>,
    pub artifacts: ArtifactsWanted,
    pub limits: Limits,
    pub network: NetworkPolicy,
    pub image: Image,
    pub isolation: IsolationMode,
    /// Whether the result says what was used and how it was enclosed. Without, only what decides the outcome is
    /// looked at.
    pub details: bool,
    pub writable_root: bool,
    pub workspace_root: PathBuf,
    pub mounts: Vec<Mount>,
    /// What its sandbox is made of, for as long as it is there.
    pub held: Held,
    /// Of a test, a build, or a job of which files are expected.
    pub runner: Option<Box<Runner>>,
}

impl JobSpec {
    /// A job with the documented defaults, which serves no task but itself.
    pub fn new(job_id: JobId, work: Work) -> Self {
        Self {
            task_id: TaskId::from(&job_id),
            job_id,
            work,
            args: Vec::new(),
            env: Vec::new(),
            workdir: workspace(),
            stdin: Stdin::Empty,
            files: Vec::new(),
            terminal: None,
            artifacts: ArtifactsWanted::Listed,
            limits: Limits::default(),
            network: NetworkPolicy::None,
            image: Image::Host,
            isolation: IsolationMode::Strict,
            details: true,
            writable_root: false,
            workspace_root: PathBuf::from("/var/lib/cofferdam/workspaces"),
            mounts: Vec::new(),
            held: None,
            runner: None,
        }
    }
}

/// The sandbox that a job needs.
pub fn sandbox_spec(id: SandboxId, job: &JobSpec) -> SandboxSpec {
    SandboxSpec {
        id,
        image: job.image.clone(),
        limits: job.limits.clone(),
        network: job.network,
        isolation: job.isolation,
        oom_scope: OomScope::Sandbox,
        writable_root: job.writable_root,
        terminal: job.terminal.is_some(),
        pausable: false,
        workspace_root: job.workspace_root.clone(),
        mounts: job.mounts.clone(),
        files: None,
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl fmt::Debug for FileIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileIn").field("path", &self.path).field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl fmt::Debug for ArtifactsWanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::No => "No",
            Self::Listed => "Listed",
            Self::Stored(_) => "Stored",
        })
    }
}
