//! A result that another process has written.

use crate::{
    Artifact, CapturedOutput, IsolationReport, JobResult, LimitHit, NetworkPolicy, Outcome, Report,
    ResourceUsage, SandboxId, SkippedArtifact,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, de::Error};

/// The fields of the written form that are not told by others.
#[derive(Deserialize)]
struct Written {
    sandbox_id: Option<String>,
    #[serde(default)]
    container_id: Option<String>,
    outcome: Outcome,
    limits_hit: Vec<LimitHit>,
    stdout: String,
    stdout_base64: Option<String>,
    stdout_dropped_bytes: u64,
    stderr: String,
    stderr_base64: Option<String>,
    stderr_dropped_bytes: u64,
    duration_ms: u64,
    resource_usage: ResourceUsage,
    artifacts: Vec<Artifact>,
    artifacts_skipped: Vec<SkippedArtifact>,
    isolation: IsolationReport,
    network_policy_applied: NetworkPolicy,
    warnings: Vec<String>,
    #[serde(default)]
    report: Option<Box<Report>>,
}

impl<'de> Deserialize<'de> for JobResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let output = |text: String, base64: Option<String>, dropped_bytes| {
            let bytes = match base64 {
                Some(exact) => STANDARD.decode(exact).map_err(D::Error::custom)?,
                None => text.into_bytes(),
            };
            Ok(CapturedOutput { bytes, dropped_bytes })
        };
        let sandbox_id = written.sandbox_id.map(|text| SandboxId::parse("sandbox_id", &text)).transpose();
        Ok(Self {
            sandbox_id: sandbox_id.map_err(D::Error::custom)?,
            container_id: written.container_id,
            outcome: written.outcome,
            limits_hit: written.limits_hit,
            stdout: output(written.stdout, written.stdout_base64, written.stdout_dropped_bytes)?,
            stderr: output(written.stderr, written.stderr_base64, written.stderr_dropped_bytes)?,
            duration_ms: written.duration_ms,
            resource_usage: written.resource_usage,
            artifacts: written.artifacts,
            artifacts_skipped: written.artifacts_skipped,
            isolation: written.isolation,
            network_policy_applied: written.network_policy_applied,
            warnings: written.warnings,
            report: written.report,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IsolationMode, LimitKind};

    #[test]
    fn what_was_written_is_read_again() {
        let result = JobResult {
            sandbox_id: Some(SandboxId::from_random([7; 10])),
            container_id: Some("c0ffee".into()),
            outcome: Outcome::Cancelled { by: "somebody".into() },
            limits_hit: vec![LimitHit { limit: LimitKind::Disk, count: 2, first_at_ms: None }],
            stdout: CapturedOutput { bytes: b"a\xffb".to_vec(), dropped_bytes: 0 },
            stderr: CapturedOutput { bytes: b"text".to_vec(), dropped_bytes: 7 },
            duration_ms: 5,
            resource_usage: ResourceUsage { cpu_percent: Some(1.5), ..ResourceUsage::default() },
            artifacts: vec![Artifact { path: "a".into(), size_bytes: 1, id: None, sha256: None }],
            artifacts_skipped: vec![SkippedArtifact { path: "b".into(), reason: "a link".into() }],
            isolation: IsolationReport::unproven(IsolationMode::Strict, "a test"),
            network_policy_applied: NetworkPolicy::Restricted,
            warnings: vec!["careful".into()],
            report: Some(Box::new(Report { notes: vec!["a note".into()], ..Report::default() })),
        };
        let text = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<JobResult>(&text).unwrap(), result);
    }
}
