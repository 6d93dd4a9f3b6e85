//! Jobs on the wire.

use crate::{WebhookMade, WebhookRequest};
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
    pub webhook: Option<WebhookRequest>,
    pub retries: Option<u32>,
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
    pub metadata: BTreeMap<String, String>,
    /// There once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<serde_json::Value>,
    /// In the answer that made it only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookMade>,
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
