//! A job as it is shown.

use crate::timestamp;
use cofferdam_api::{Job, JobRequest, JobResult, JobStatus};
use cofferdam_store::{JobRecord, OutputEvent, OutputKind};

/// The wire's form of a job; with its output, where the result is to be shown whole.
pub fn job_view(job: JobRecord, output: Option<&[OutputEvent]>) -> Job {
    let request: Option<JobRequest> = serde_json::from_str(&job.spec).ok();
    let result: Option<JobResult> = job.result.and_then(|text| serde_json::from_str(&text).ok());
    Job {
        id: job.id,
        task_id: job.task_id,
        agent: job.agent,
        status: JobStatus {
            state: job.state,
            reason: job.reason,
            message: job.message,
            last_transition_at: timestamp(job.transition_at_ms),
        },
        created_at: timestamp(job.created_at_ms),
        output_expired: job.output_expired_at_ms.is_some(),
        attempts: job.starts,
        metadata: request.map(|request| request.metadata).unwrap_or_default(),
        result: result.map(|result| with_output(result, output.unwrap_or_default())),
        webhook: None,
    }
}

/// Puts what is kept as events where a result has its text.
fn with_output(result: JobResult, output: &[OutputEvent]) -> JobResult {
    // What earlier attempts wrote is there for whoever follows, and no part of the result.
    let began = output.iter().rposition(|event| event.kind == OutputKind::Init).map_or(0, |at| at + 1);
    let text = |kind| {
        let events = output[began..].iter().filter(|event| event.kind == kind);
        let bytes: Vec<u8> = events.flat_map(|event| event.bytes.iter().copied()).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    JobResult { stdout: text(OutputKind::Stdout), stderr: text(OutputKind::Stderr), ..result }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core as core;

    /// What a worker says of a run is all on the wire: a field that is added there is not forgotten here.
    #[test]
    fn nothing_of_a_result_is_left_out() {
        let output = core::CapturedOutput { bytes: vec![0xff], dropped_bytes: 7 };
        let result = core::JobResult {
            sandbox_id: Some(core::SandboxId::from_random([1; 10])),
            container_id: None,
            outcome: core::Outcome::Signaled { signal: 9 },
            limits_hit: vec![core::LimitHit {
                limit: core::LimitKind::Output,
                count: 1,
                first_at_ms: Some(3),
            }],
            stdout: output.clone(),
            stderr: output,
            duration_ms: 5,
            resource_usage: core::ResourceUsage {
                cpu_percent: Some(1.5),
                cpu_time_ms: Some(1),
                memory_bytes: Some(2),
                memory_peak_bytes: Some(3),
                pids_peak: Some(4),
                io_bytes: Some(5),
            },
            artifacts: vec![core::Artifact {
                path: "a".into(),
                size_bytes: 1,
                id: Some("art-a".into()),
                sha256: Some("00".into()),
            }],
            artifacts_skipped: vec![core::SkippedArtifact { path: "b".into(), reason: "a link".into() }],
            isolation: core::IsolationReport::unproven(core::IsolationMode::Strict, "a test"),
            network_policy_applied: core::NetworkPolicy::Restricted,
            warnings: vec!["w".into()],
            report: Some(Box::default()),
        };
        let said = serde_json::to_value(&result).unwrap();
        let wire: JobResult = serde_json::from_value(said.clone()).unwrap();
        assert_eq!(serde_json::to_value(&wire).unwrap(), said);
    }
}
