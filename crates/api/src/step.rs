//! Steps of a session on the wire.

use crate::{Command, InlineFile};
use cofferdam_core::{Artifact, JobState, LimitHit, Outcome, SkippedArtifact};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The languages that a session keeps an interpreter for, with their other names.
pub const KERNEL_LANGUAGES: [&str; 10] =
    ["python", "py", "python3", "node", "js", "javascript", "nodejs", "typescript", "ts", "bash"];

/// `POST /v1/sessions/{id}/steps`. Either `language` and `code`, or `command`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"language": "python", "code": "x = 41"}))]
pub struct StepRequest {
    /// Whose interpreter runs the code. It stays, and so does what the code sets.
    #[schema(schema_with = language)]
    pub language: Option<String>,
    #[schema(example = "x = 41")]
    pub code: Option<String>,
    /// A program of its own, which ends with the step.
    pub command: Option<Command>,
    /// Steps of one context run one after the other; those of different ones at the same time. Each language has its
    /// own contexts, each with an interpreter of its own, and so have commands. `default`, unless given.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9._-]+$", example = "default")]
    pub context: Option<String>,
    /// What the command reads; without it, its input is empty. Code has no input.
    pub stdin: Option<String>,
    /// Set for this step, over what the session has.
    pub env: BTreeMap<String, String>,
    /// Where the command runs; /workspace, unless given.
    #[schema(example = "/workspace")]
    pub workdir: Option<String>,
    /// Put into the workspace when its turn comes, before it begins.
    pub files: Vec<InlineFile>,
    /// The step is ended after this time. Five minutes, unless it says otherwise.
    #[schema(minimum = 1, example = 30000)]
    pub timeout_ms: Option<u64>,
}

fn language() -> utoipa::openapi::schema::Object {
    use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
    let names = KERNEL_LANGUAGES.into_iter().map(Some).chain([None]);
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .enum_values(Some(names))
        .description(Some("Whose interpreter runs the code. It stays, and so does what the code sets."))
        .build()
}

/// `POST /v1/sessions/{id}/contexts/{name}/restart`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"language": "python"}))]
pub struct ContextRestart {
    /// Whose interpreter: each language has contexts of its own.
    #[schema(example = "python")]
    pub language: String,
}

/// A step, as it is answered everywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Step {
    #[schema(example = "stp-aaaaaaaaaaaaaaaa")]
    pub id: String,
    #[schema(example = "ses-aaaaaaaaaaaaaaaa")]
    pub session_id: String,
    /// 1 for the session's first.
    pub number: i64,
    /// None for a command.
    pub language: Option<String>,
    pub context: String,
    pub status: StepStatus,
    #[schema(format = DateTime)]
    pub created_at: String,
    /// None while it waits for others of its context.
    #[schema(format = DateTime)]
    pub started_at: Option<String>,
    /// There once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<StepResult>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepStatus {
    pub state: JobState,
    /// One word on how it came to this state.
    #[schema(example = "exited")]
    pub reason: Option<String>,
    /// The same for people.
    pub message: Option<String>,
    #[schema(format = DateTime)]
    pub last_transition_at: String,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepResult {
    /// Only where the process ended by itself; of code, 0 where it ran to its end and 1 where it raised an error.
    #[serde(default)]
    pub exit_code: Option<i32>,
    pub outcome: Outcome,
    /// What is kept of it, with bytes that are not UTF-8 replaced.
    #[serde(default)]
    pub stdout: String,
    /// The exact bytes, where the text cannot show them.
    #[serde(default)]
    pub stdout_base64: Option<String>,
    #[serde(default)]
    pub stdout_truncated: bool,
    #[serde(default)]
    pub stderr: String,
    #[serde(default)]
    pub stderr_base64: Option<String>,
    #[serde(default)]
    pub stderr_truncated: bool,
    /// What the code showed: the value of its last expression, and whatever it displays.
    #[serde(default)]
    pub results: Vec<RichResult>,
    /// Whether there were more of these than are kept.
    #[serde(default)]
    pub results_truncated: bool,
    /// What the code raised.
    #[serde(default)]
    pub error: Option<StepError>,
    /// How many steps the interpreter has run, this one among them.
    #[serde(default)]
    pub execution_count: Option<u64>,
    /// Whether the interpreter is a new one, because the one before it had died or was restarted: nothing of what was
    /// set before is there.
    #[serde(default)]
    pub kernel_restarted: bool,
    /// Whether what was set before is still there, where a step was ended early.
    #[serde(default)]
    pub state_kept: Option<bool>,
    #[serde(default)]
    pub limits_hit: Vec<LimitHit>,
    #[serde(default)]
    pub duration_ms: u64,
    /// What is new in the artifacts folder since the step before.
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    #[serde(default)]
    pub artifacts_skipped: Vec<SkippedArtifact>,
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Something that code shows, in one or more forms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RichResult {
    /// `result` for the value of the last expression, `display` for what the code shows by itself.
    #[schema(example = "result")]
    pub kind: String,
    /// By media type: text as it is, anything else as base64.
    #[schema(example = json!({"text/plain": "42"}))]
    pub data: BTreeMap<String, String>,
}

/// What code raised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepError {
    #[schema(example = "ZeroDivisionError")]
    pub name: String,
    #[schema(example = "division by zero")]
    pub value: String,
    pub traceback: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepList {
    /// Without their results.
    pub steps: Vec<Step>,
    /// For the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// `display`: something that code shows, while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DisplayData {
    pub seq: i64,
    pub result: RichResult,
}
