//! A job as it is shown.

use crate::timestamp;
use cofferdam_api::{Job, JobRequest, JobStatus};
use cofferdam_store::{JobRecord, OutputEvent, OutputKind};

/// The wire's form of a job; with its output, where the result is to be shown whole.
pub fn job_view(job: JobRecord, output: Option<&[OutputEvent]>) -> Job {
    let request: Option<JobRequest> = serde_json::from_str(&job.spec).ok();
    let result = job.result.and_then(|text| serde_json::from_str(&text).ok());
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
        attempts: job.starts,
        metadata: request.map(|request| request.metadata).unwrap_or_default(),
        result: result.map(|result| with_output(result, output.unwrap_or_default())),
    }
}

/// Puts what is kept as events where a result has its text.
fn with_output(mut result: serde_json::Value, output: &[OutputEvent]) -> serde_json::Value {
    // What earlier attempts wrote is there for whoever follows, and no part of the result.
    let began = output.iter().rposition(|event| event.kind == OutputKind::Init).map_or(0, |at| at + 1);
    let output = &output[began..];
    for (kind, name) in [(OutputKind::Stdout, "stdout"), (OutputKind::Stderr, "stderr")] {
        let events = output.iter().filter(|event| event.kind == kind);
        let bytes: Vec<u8> = events.flat_map(|event| event.bytes.iter().copied()).collect();
        if let Some(object) = result.as_object_mut() {
            object.insert(name.to_owned(), String::from_utf8_lossy(&bytes).into());
        }
    }
    result
}
