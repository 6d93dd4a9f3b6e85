//! Jobs on the wire.

use crate::{JobResult, SandboxRequest, SecretUse, WebhookMade, WebhookRequest};
use cofferdam_core::{JobKind, JobState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The languages that code can be in, with their other names.
pub const LANGUAGES: [&str; 21] = [
    "python",
    "py",
    "python3",
    "node",
    "js",
    "javascript",
    "nodejs",
    "bash",
    "sh",
    "shell",
    "ruby",
    "rb",
    "perl",
    "pl",
    "go",
    "golang",
    "java",
    "deno",
    "ts",
    "typescript",
    "php",
];

/// What runs tests and builds; see docs/runners.md for what each does.
pub const TOOLS: [&str; 12] =
    ["cargo", "go", "jest", "node", "pytest", "tap", "unittest", "junit", "tsc", "make", "cc", "javac"];

/// `POST /v1/jobs`. Either `language` and `code`, or `command`, or `sandbox`; a test or a build needs none.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"language": "python", "code": "print(1)"}))]
pub struct JobRequest {
    /// `test` and `build` run a tool on a project and read its report; the result has it.
    #[serde(skip_serializing_if = "JobKind::is_run")]
    pub kind: JobKind,
    /// Of a test or a build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner: Option<RunnerRequest>,
    /// Files that the job is to leave, each with what is to be in it. At most 100, of 1 MiB each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<InlineFile>,
    /// What the code is written in.
    #[schema(schema_with = language)]
    pub language: Option<String>,
    /// The program's text.
    #[schema(example = "print(1)")]
    pub code: Option<String>,
    pub command: Option<Command>,
    /// For the program.
    pub args: Vec<String>,
    /// What the program reads; without it, its input is empty.
    pub stdin: Option<String>,
    /// Put into /workspace before the program starts.
    pub files: Vec<InlineFile>,
    /// Set for the program, besides what every program gets. `CYNODE_*` is not for requests.
    pub env: BTreeMap<String, String>,
    pub limits: LimitsRequest,
    /// `none` or `restricted`; both are loopback only for now. Anything else is `none`, with a warning in the result.
    #[schema(example = "none")]
    pub network_policy: Option<String>,
    /// Secrets of the tenant, as files in memory, in `/run/secrets`.
    #[schema(max_items = 32)]
    pub secrets: Option<Vec<SecretUse>>,
    /// The job is ended after this time. Five minutes, unless it says otherwise.
    #[schema(minimum = 1, example = 30000)]
    pub timeout_ms: Option<u64>,
    /// What makes the sandbox: `native`, or `oci`, `docker` and `podman` where the server has them.
    #[schema(example = "native")]
    pub backend: Option<String>,
    /// The root filesystem: `host`, or where the server allows it, an image of its store, as `NAME:TAG` or by digest.
    #[schema(example = "host")]
    pub image: Option<String>,
    /// In the place of an image: a named set of tools. It is the newest image that is registered for it, see
    /// `GET /v1/images`.
    pub profile: Option<String>,
    /// In the place of `backend`: `docker-sandbox` for what `sandbox` says, in a container of Docker or Podman where the
    /// server has them, and `direct` for the native backend. There is no mode without a sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "direct")]
    pub execution_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxRequest>,
    /// Your own id for what the job serves; the job's own, unless given.
    #[schema(min_length = 1, max_length = 128, pattern = "^[!-~]+$")]
    pub task_id: Option<String>,
    /// The agent whose job it is; the key's own, unless given.
    pub agent: Option<String>,
    /// Your own notes, at most 32, each name and value of at most 512 bytes.
    pub metadata: BTreeMap<String, String>,
    /// Tells you what becomes of the job.
    pub webhook: Option<WebhookRequest>,
    pub retries: Option<Retries>,
    /// Ends the job as `expired` if it has not started by then.
    #[schema(minimum = 1, maximum = 2592000000_u64)]
    pub queue_timeout_ms: Option<u64>,
    /// Only a worker that carries all of these runs the job.
    pub worker_labels: BTreeMap<String, String>,
}

/// How often a job is started again, and after what. A number is the most often, after being lost or errored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Retries {
    Max(u32),
    Policy(RetryPolicy),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    #[schema(maximum = 10)]
    pub max: u32,
    #[serde(default = "RetryCause::all")]
    pub on: Vec<RetryCause>,
    /// Before the second attempt; twice as long before each after it.
    #[serde(default)]
    #[schema(maximum = 3600000)]
    pub backoff_ms: u64,
}

/// What a job may be started again after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryCause {
    Lost,
    Errored,
}

impl RetryCause {
    fn all() -> Vec<Self> {
        vec![Self::Lost, Self::Errored]
    }
}

impl Retries {
    pub fn policy(&self) -> RetryPolicy {
        match self {
            Self::Max(max) => RetryPolicy { max: *max, on: RetryCause::all(), backoff_ms: 0 },
            Self::Policy(policy) => policy.clone(),
        }
    }
}

/// What a test or a build runs, and on what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunnerRequest {
    /// What runs, and in which form it reports. Told from the project's files, unless given.
    #[schema(schema_with = tool)]
    pub tool: Option<String>,
    /// The id of an artifact that is a tar archive, compressed or not, or a zip of the project. It is unpacked into
    /// /workspace, below what `files` has.
    pub project: Option<String>,
    /// Where the command leaves its report, below /workspace or /tmp, if it is not what it prints.
    #[schema(example = "target/report.xml")]
    pub report: Option<String>,
}

fn tool() -> utoipa::openapi::schema::Object {
    use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
    let names = TOOLS.into_iter().map(Some).chain([None]);
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .enum_values(Some(names))
        .description(Some(
            "What runs, and in which form it reports. Told from the project's files, unless given.",
        ))
        .build()
}

fn language() -> utoipa::openapi::schema::Object {
    use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
    let names = LANGUAGES.into_iter().map(Some).chain([None]);
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .enum_values(Some(names))
        .description(Some("What the code is written in."))
        .build()
}

/// A list is a program and its arguments; text goes to a shell.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Command {
    Argv(Vec<String>),
    Shell(String),
}

/// A file that is put into the workspace before the process starts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InlineFile {
    /// Below /workspace.
    #[schema(example = "data/input.csv")]
    pub path: String,
    #[serde(default)]
    pub content: Option<String>,
    /// Instead of `content`, for bytes that are not text.
    #[serde(default)]
    pub content_base64: Option<String>,
    /// Instead of either: the id of an artifact whose bytes it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
}

/// Each has a default, which is that of `cofferdam run`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsRequest {
    #[schema(minimum = 0.01, maximum = 4096, example = 1)]
    pub cpus: Option<f64>,
    #[schema(minimum = 4194304, example = 536870912)]
    pub memory_bytes: Option<u64>,
    /// Of /workspace and /tmp together. More than half of the memory, or than 1 GiB, is kept on disk.
    #[schema(minimum = 4096, maximum = 1099511627776_u64, example = 67108864)]
    pub disk_bytes: Option<u64>,
    /// Processes and threads at once.
    #[schema(minimum = 1, maximum = 4194304, example = 100)]
    pub pids: Option<u32>,
    /// Between asking and killing.
    #[schema(maximum = 30000, example = 2000)]
    pub grace_ms: Option<u64>,
    /// How much of each stream is kept.
    #[schema(minimum = 1, maximum = 8388608, example = 65536)]
    pub output_bytes: Option<u64>,
}

/// A job, as it is answered everywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    #[schema(example = "job-aaaaaaaaaaaaaaaa")]
    pub id: String,
    pub task_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub status: JobStatus,
    #[schema(format = DateTime)]
    pub created_at: String,
    /// How often it was started.
    pub attempts: i64,
    pub metadata: BTreeMap<String, String>,
    /// Whether it had output that is not kept any more. Then the result's texts are empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_expired: bool,
    /// There once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JobResult>,
    /// In the answer that made it only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookMade>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobStatus {
    pub state: JobState,
    /// One word on how it came to this state.
    #[schema(example = "exited")]
    pub reason: Option<String>,
    /// The same for people.
    pub message: Option<String>,
    #[schema(format = DateTime)]
    pub last_transition_at: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    /// Without their results.
    pub jobs: Vec<Job>,
    /// For the next page; none at the end.
    pub next_cursor: Option<String>,
}
