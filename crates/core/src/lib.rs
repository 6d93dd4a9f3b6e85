//! The words of Cofferdam, as types: what may be asked for, and how it ended.
//!
//! This crate is pure. It parses and validates, it never reads a file, a clock or the environment, and it
//! knows nothing of how a sandbox is made.

mod chain;
mod check;
mod cpus;
mod duration;
mod error;
mod guest_path;
mod host_path;
mod id;
mod isolation;
mod job_state;
mod limits;
mod network;
mod outcome;
mod output;
mod report;
mod result;
mod result_read;
mod session_state;
mod size;
mod timestamp;
mod utf8;

pub use chain::{AuditEntry, chain_hash};
pub use check::{Check, CheckState};
pub use cpus::Cpus;
pub use duration::parse_duration;
pub use error::InvalidValue;
pub use guest_path::GuestPath;
pub use host_path::{HostPath, MountRoot};
pub use id::{ArtifactId, JobId, KeyId, SandboxId, SessionId, StepId, TaskId, TenantId, encode_id};
pub use isolation::{Control, ControlState, IsolationMode, IsolationReport, IsolationRow};
pub use job_state::JobState;
pub use limits::{DEFAULT_DISK_MAX, Disk, Limits, MAX_DISK, MAX_GRACE, MIN_DISK, MIN_MEMORY};
pub use network::NetworkPolicy;
pub use outcome::{LimitHit, LimitKind, Outcome};
pub use output::{CapturedOutput, OUTPUT_KEPT_BYTES};
pub use report::{
    Compared, Diagnostic, DiagnosticCounts, ExpectedState, JobKind, Report, ReportState, Severity, TestCase,
    TestCounts, TestStatus, Verdict,
};
pub use result::{Artifact, JobResult, ResourceUsage, SkippedArtifact};
pub use session_state::{EndCause, SessionState};
pub use size::ByteSize;
pub use timestamp::{parse_timestamp, timestamp};
pub use utf8::CutCharacter;
