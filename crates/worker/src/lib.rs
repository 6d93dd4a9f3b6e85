//! The data plane: runs jobs in sandboxes, whatever backend makes them.
//!
//! A job is a sandbox, one process in it, its output and its artifacts; when [`run`] returns, the sandbox is
//! gone. This crate knows languages (as data), the task contract (the environment and the folders that a job
//! finds) and how a job's end is told from evidence. It knows no concrete backend, and it never touches a
//! terminal or the host's environment.

pub mod artifacts;
mod ids;
mod job;
mod mounts;
mod output;
mod pool;
pub mod request;
mod runner;
pub mod runtime;
mod session;
mod task_env;
mod terminal;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use cofferdam_kernels::KernelLanguage;
pub use ids::{draw_job_id, draw_sandbox_id};
pub use job::{
    ArtifactsWanted, Cancellation, Canceller, FileIn, JobError, JobSpec, Stdin, Work, cancellation, check,
    run, run_in, run_keeping, sandbox_spec,
};
pub use mounts::{MountRefused, open_mounts};
pub use output::{Discard, LiveOutput, OutputStream};
pub use pool::{Held, Pool, PoolCounts, PoolSettings, Taken, WaitingInterpreter};
pub use runner::{Expected, Runner, Tool};
pub use session::request as session_request;
pub use session::{
    ArchiveFormat, FileChange, Listed, Match, Matches, ProcessNews, ProcessOrder, ProcessPiece, ProcessState,
    SECRET_MODE, Saved, Search, SessionError, SessionPlace, SessionSpec, Sessions, Shown, StepEnd,
    StepOutput, StepSpec, StepWork, Unpacked, WatchNews, check_secrets,
};
pub use task_env::{ARTIFACTS_DIR, WORKSPACE_DIR};
pub use terminal::{Resizer, Terminal, WindowSize, terminal};
