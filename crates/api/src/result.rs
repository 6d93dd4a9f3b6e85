//! What came of a job, on the wire. The same fields are there however it ended.

use cofferdam_core::{
    Artifact, ControlState, IsolationMode, LimitHit, NetworkPolicy, Outcome, Report, ResourceUsage,
    SkippedArtifact,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobResult {
    /// Only where the process ended by itself.
    pub exit_code: Option<i32>,
    pub outcome: Outcome,
    /// What it ran into on the way.
    #[serde(default)]
    pub limits_hit: Vec<LimitHit>,
    /// The first 8 MiB, with bytes that are not UTF-8 replaced.
    #[serde(default)]
    pub stdout: String,
    /// The exact bytes, where the text cannot show them.
    #[serde(default)]
    pub stdout_base64: Option<String>,
    #[serde(default)]
    pub stdout_truncated: bool,
    #[serde(default)]
    pub stdout_dropped_bytes: u64,
    #[serde(default)]
    pub stderr: String,
    #[serde(default)]
    pub stderr_base64: Option<String>,
    #[serde(default)]
    pub stderr_truncated: bool,
    #[serde(default)]
    pub stderr_dropped_bytes: u64,
    /// The SHA-256 of what was kept of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_size_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_size_bytes: Option<u64>,
    #[serde(default)]
    pub duration_ms: u64,
    #[serde(default)]
    pub resource_usage: ResourceUsage,
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    #[serde(default)]
    pub artifacts_skipped: Vec<SkippedArtifact>,
    /// Absent where no sandbox was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Absent where no sandbox was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_policy_applied: Option<NetworkPolicy>,
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Null where no sandbox was made.
    #[serde(default)]
    pub sandbox_id: Option<String>,
    /// What the daemon calls the sandbox, where it is a container of Docker or Podman.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// Of its tests, its build, or the files that were expected of it, where it had any of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
}

/// Which walls the sandbox had, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Isolation {
    #[schema(example = "native")]
    pub backend: String,
    pub mode: IsolationMode,
    pub controls: Vec<IsolationControl>,
}

/// One wall. Its name is text here, so that a client can read the report of a server with more of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IsolationControl {
    #[schema(example = "user_namespace")]
    pub control: String,
    pub state: ControlState,
    /// What the probe saw, or why the control is weaker or missing.
    pub note: String,
}
