//! A step as it is shown.

use crate::timestamp;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{RichResult, Step, StepRequest, StepResult, StepStatus};
use cofferdam_core::{JobState, Outcome};
use cofferdam_store::{OutputEvent, OutputKind, StepRecord};

/// The wire's form of a step; with its output, where the result is to be shown whole.
pub fn step_view(step: StepRecord, output: Option<&[OutputEvent]>) -> Step {
    let request: StepRequest = serde_json::from_str(&step.spec).unwrap_or_default();
    let result = step.result.as_deref().and_then(|text| serde_json::from_str(text).ok());
    // What its session took with it has no result of its own, and yet an outcome.
    let result = result.or_else(|| outcome_of(&step).map(result_of));
    let name = step.context.split_once('/').map_or("", |(_, name)| name);
    Step {
        id: step.id,
        session_id: step.session,
        number: step.number,
        language: request.language,
        context: name.to_owned(),
        status: StepStatus {
            state: step.state,
            reason: step.reason,
            message: step.message,
            last_transition_at: timestamp(step.transition_at_ms),
        },
        created_at: timestamp(step.created_at_ms),
        started_at: step.started_at_ms.map(timestamp),
        result: output.and_then(|output| Some(with_output(result?, output))),
    }
}

fn outcome_of(step: &StepRecord) -> Option<Outcome> {
    match step.state {
        JobState::Lost => Some(Outcome::Lost),
        JobState::Expired => Some(Outcome::Expired),
        JobState::Cancelled => Some(Outcome::Cancelled { by: "the end of its session".to_owned() }),
        _ => None,
    }
}

pub(super) fn result_of(outcome: Outcome) -> StepResult {
    StepResult {
        exit_code: outcome.exit_code(),
        outcome,
        stdout: String::new(),
        stdout_base64: None,
        stdout_truncated: false,
        stderr: String::new(),
        stderr_base64: None,
        stderr_truncated: false,
        results: Vec::new(),
        results_truncated: false,
        error: None,
        execution_count: None,
        kernel_restarted: false,
        state_kept: None,
        limits_hit: Vec::new(),
        duration_ms: 0,
        artifacts: Vec::new(),
        artifacts_skipped: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Puts what is kept as events where a result has its text.
fn with_output(result: StepResult, output: &[OutputEvent]) -> StepResult {
    let (stdout, stdout_base64) = text(output, OutputKind::Stdout, result.stdout_truncated);
    let (stderr, stderr_base64) = text(output, OutputKind::Stderr, result.stderr_truncated);
    let shown = output.iter().filter(|event| event.kind == OutputKind::Display);
    let results: Vec<RichResult> =
        shown.filter_map(|event| serde_json::from_slice(&event.bytes).ok()).collect();
    StepResult { stdout, stdout_base64, stderr, stderr_base64, results, ..result }
}

fn text(output: &[OutputEvent], kind: OutputKind, is_cut: bool) -> (String, Option<String>) {
    let events = output.iter().filter(|event| event.kind == kind);
    let bytes: Vec<u8> = events.flat_map(|event| event.bytes.iter().copied()).collect();
    match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            // A limit that falls inside a code point loses nothing but that code point.
            let is_whole = is_cut && error.utf8_error().error_len().is_none();
            let base64 = (!is_whole).then(|| STANDARD.encode(error.as_bytes()));
            (String::from_utf8_lossy(error.as_bytes()).into_owned(), base64)
        }
    }
}
