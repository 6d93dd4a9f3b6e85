//! Jobs on the wire.

use cofferdam_core::JobState;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `POST /v1/jobs`. Either `language` and `code`, or `command`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobRequest {
    pub language: Option<String>,
    pub code: Option<String>,
    pub command: Option<Command>,
    pub args: Vec<String>,
    pub stdin: Option<String>,
    pub files: Vec<InlineFile>,
    pub env: BTreeMap<String, String>,
    pub limits: LimitsRequest,
    pub network_policy: Option<String>,
    pub timeout_ms: Option<u64>,
    pub backend: Option<String>,
    pub image: Option<String>,
    pub profile: Option<String>,
    pub task_id: Option<String>,
    pub agent: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub webhook: Option<serde_json::Value>,
    pub retries: Option<Retries>,
    /// Ends the job if it has not started by then.
    pub queue_timeout_ms: Option<u64>,
    /// Only a worker that carries all of these runs the job.
    pub worker_labels: BTreeMap<String, String>,
}

/// How often a job is started again, and after what. A number is the most often, after being lost or errored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Retries {
    Max(u32),
    Policy(RetryPolicy),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    pub max: u32,
    #[serde(default = "RetryCause::all")]
    pub on: Vec<RetryCause>,
    /// Before the second attempt; twice as long before each after it.
    #[serde(default)]
    pub backoff_ms: u64,
}

/// What a job may be started again after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
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

/// A list is a program and its arguments; text goes to a shell.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Command {
    Argv(Vec<String>),
    Shell(String),
}

/// A file that is put into the workspace before the process starts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InlineFile {
    pub path: String,
    #[serde(default)]
    pub content: Option<String>,
    /// Instead of `content`, for bytes that are not text.
    #[serde(default)]
    pub content_base64: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsRequest {
    pub cpus: Option<f64>,
    pub memory_bytes: Option<u64>,
    pub disk_bytes: Option<u64>,
    pub pids: Option<u32>,
    pub grace_ms: Option<u64>,
}

/// A job, as it is answered everywhere.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Job {
    pub id: String,
    pub task_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub status: JobStatus,
    pub created_at: String,
    /// How often it was started.
    pub attempts: i64,
    pub metadata: BTreeMap<String, String>,
    /// There once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<serde_json::Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JobStatus {
    pub state: JobState,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub last_transition_at: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobList {
    pub jobs: Vec<Job>,
    /// For the next page; none at the end.
    pub next_cursor: Option<String>,
}
