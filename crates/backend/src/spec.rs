//! What is asked of a backend.

use cofferdam_core::{GuestPath, IsolationMode, Limits, NetworkPolicy, SandboxId};
use std::any::Any;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// Where a sandbox's root filesystem comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Image {
    /// This machine's own programs, read-only, with a made-up `/etc`.
    Host,
    /// A folder that holds a root filesystem.
    Folder(PathBuf),
    /// Folders that make one together, as an overlay's layers: the uppermost first.
    Layers(Vec<PathBuf>),
    /// One that a daemon has or can be given, by the name that it is known by there.
    Named(String),
}

/// What an out-of-memory kill takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OomScope {
    /// Everything in the sandbox: for a job, half of which is worth nothing.
    Sandbox,
    /// The process that is to blame: for a session, which goes on.
    Process,
}

/// Something that is seen at a path of a sandbox besides its root.
#[derive(Debug, Clone)]
pub struct Mount {
    pub source: MountSource,
    pub target: GuestPath,
    pub read_only: bool,
}

#[derive(Debug, Clone)]
pub enum MountSource {
    /// The sandbox's own /workspace, at a second place.
    Workspace,
    /// A folder of the host. Whoever has opened it has decided that it may be seen; its path is nobody's business any
    /// more, since something else may be there by now.
    Folder(Arc<OwnedFd>),
}

/// The files of a sandbox as they were at a moment, shared with it until either changes them.
#[derive(Debug)]
pub struct SharedFiles {
    /// In its workspace.
    pub entries: u64,
    pub bytes: u64,
    /// Of folders in folders, the workspace itself being the first.
    pub depth: usize,
    /// What the backend that made this knows of them.
    pub held: Arc<dyn Any + Send + Sync>,
}

/// One sandbox.
#[derive(Debug, Clone)]
pub struct SandboxSpec {
    pub id: SandboxId,
    pub image: Image,
    pub limits: Limits,
    pub network: NetworkPolicy,
    pub isolation: IsolationMode,
    pub oom_scope: OomScope,
    /// Whether the root filesystem can be written to, within the disk limit; what is written is gone afterwards.
    pub writable_root: bool,
    /// Whether processes may ask for a terminal.
    pub terminal: bool,
    /// Whether it can be paused; a job never is, and saves the time.
    pub pausable: bool,
    /// Where a workspace on disk is kept; only used with a disk that is not in memory.
    pub workspace_root: PathBuf,
    /// Only some backends can have any; the others refuse them.
    pub mounts: Vec<Mount>,
    /// The files that it begins with, of another sandbox of the same backend with a disk of the same size.
    pub files: Option<Arc<SharedFiles>>,
}

/// How a process is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// Pipes for stdout and stderr; stdin is a pipe, or at its end from the start.
    Pipes { stdin: bool },
    /// A terminal of its own.
    Terminal { rows: u16, columns: u16 },
}

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// The program and its arguments. A name without a slash is looked up in the `PATH` of `env`, inside.
    pub argv: Vec<String>,
    /// The whole environment: nothing else gets in.
    pub env: Vec<(String, String)>,
    pub cwd: GuestPath,
    /// Whether a missing working directory is made, where it lies on a writable mount.
    pub make_cwd: bool,
    pub stdio: Stdio,
}
