//! The result of a job: everything that is left when its sandbox is gone.

use crate::output::StreamFields;
use crate::{CapturedOutput, IsolationReport, LimitHit, NetworkPolicy, Outcome, Report, SandboxId};
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// What a job used. Null where it could not be measured, never 0 instead.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ResourceUsage {
    /// Of one core, over the whole run.
    pub cpu_percent: Option<f64>,
    pub cpu_time_ms: Option<u64>,
    /// At the last sample.
    pub memory_bytes: Option<u64>,
    pub memory_peak_bytes: Option<u64>,
    pub pids_peak: Option<u64>,
    pub io_bytes: Option<u64>,
}

/// A file that a job left in its artifacts folder.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = JobArtifact))]
pub struct Artifact {
    /// Below the artifacts folder.
    pub path: String,
    pub size_bytes: u64,
    /// By which it can be asked for, where it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// Something in the artifacts folder that is not a plain file or folder, or could not be taken.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SkippedArtifact {
    pub path: String,
    pub reason: String,
}

/// How a job ended, what it wrote, used and left.
#[derive(Debug, Clone, PartialEq)]
pub struct JobResult {
    /// None where it had none.
    pub sandbox_id: Option<SandboxId>,
    /// What a daemon calls it, where a daemon has made it.
    pub container_id: Option<String>,
    pub outcome: Outcome,
    pub limits_hit: Vec<LimitHit>,
    pub stdout: CapturedOutput,
    pub stderr: CapturedOutput,
    pub duration_ms: u64,
    pub resource_usage: ResourceUsage,
    pub artifacts: Vec<Artifact>,
    pub artifacts_skipped: Vec<SkippedArtifact>,
    pub isolation: IsolationReport,
    pub network_policy_applied: NetworkPolicy,
    pub warnings: Vec<String>,
    /// Of its tests, its build or the files that were expected of it, where it had any of these.
    pub report: Option<Box<Report>>,
}

impl Serialize for JobResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            sandbox_id,
            container_id,
            outcome,
            limits_hit,
            stdout,
            stderr,
            duration_ms,
            resource_usage,
            artifacts,
            artifacts_skipped,
            isolation,
            network_policy_applied,
            warnings,
            report,
        } = self;
        let (out, err) = (StreamFields::from(stdout), StreamFields::from(stderr));
        let mut s = serializer.serialize_struct("JobResult", 21)?;
        s.serialize_field("exit_code", &outcome.exit_code())?;
        s.serialize_field("outcome", outcome)?;
        s.serialize_field("limits_hit", limits_hit)?;
        s.serialize_field("stdout", &out.text)?;
        s.serialize_field("stdout_base64", &out.base64)?;
        s.serialize_field("stdout_truncated", &out.truncated)?;
        s.serialize_field("stdout_dropped_bytes", &out.dropped_bytes)?;
        s.serialize_field("stderr", &err.text)?;
        s.serialize_field("stderr_base64", &err.base64)?;
        s.serialize_field("stderr_truncated", &err.truncated)?;
        s.serialize_field("stderr_dropped_bytes", &err.dropped_bytes)?;
        s.serialize_field("duration_ms", duration_ms)?;
        s.serialize_field("resource_usage", resource_usage)?;
        s.serialize_field("artifacts", artifacts)?;
        s.serialize_field("artifacts_skipped", artifacts_skipped)?;
        s.serialize_field("isolation", isolation)?;
        s.serialize_field("network_policy_applied", network_policy_applied)?;
        s.serialize_field("warnings", warnings)?;
        s.serialize_field("sandbox_id", sandbox_id)?;
        if let Some(container_id) = container_id {
            s.serialize_field("container_id", container_id)?;
        }
        if let Some(report) = report {
            s.serialize_field("report", report)?;
        }
        s.end()
    }
}
