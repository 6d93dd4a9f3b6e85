//! Sessions on the wire.

use crate::{LimitsRequest, SecretUse};
use cofferdam_core::{EndCause, NetworkPolicy, SessionState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// `POST /v1/sessions`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"ttl_seconds": 600}))]
pub struct SessionRequest {
    /// The session ends so long after it was made, unless it is extended. An hour, unless it says otherwise.
    #[schema(minimum = 1, example = 600)]
    pub ttl_seconds: Option<u64>,
    /// It also ends when no step has run, and nothing else was asked of it, for so long: at most a year.
    #[schema(minimum = 1, maximum = 31536000_u64, example = 300)]
    pub idle_timeout_seconds: Option<u64>,
    /// Set for every step, besides what every program gets. `CYNODE_*` is not for requests.
    pub env: BTreeMap<String, String>,
    /// Of all that runs in it; `output_bytes` is of each step.
    pub limits: LimitsRequest,
    /// `none` or `restricted`; both are loopback only for now. Anything else is `none`, with a warning.
    #[schema(example = "none")]
    pub network_policy: Option<String>,
    /// What makes the sandbox: `native`, or `oci`, `docker` and `podman` where the server has them.
    #[schema(example = "native")]
    pub backend: Option<String>,
    /// The root filesystem: `host`, or where the server allows it, an image of its store, as `NAME:TAG` or by digest.
    #[schema(example = "host")]
    pub image: Option<String>,
    /// In the place of an image: a named set of tools. It is the newest image that is registered for it, see
    /// `GET /v1/images`.
    pub profile: Option<String>,
    /// What becomes of it at its deadline: `delete`, or `pause`, which keeps its files as an archive.
    #[schema(example = "delete")]
    pub on_expiry: Option<String>,
    /// What becomes of it when its worker is told to stop: `end`, or `archive`, which keeps its files.
    #[schema(example = "end")]
    pub on_drain: Option<String>,
    /// The id or the name of a snapshot, whose files it begins with.
    #[schema(example = json!(null))]
    pub snapshot: Option<String>,
    /// Secrets of the tenant, as files in memory, in `/run/secrets`.
    #[schema(max_items = 32)]
    pub secrets: Option<Vec<SecretUse>>,
    /// Your own id for what the session serves; the session's own, unless given.
    #[schema(min_length = 1, max_length = 128, pattern = "^[!-~]+$")]
    pub task_id: Option<String>,
    /// The agent whose session it is; the key's own, unless given.
    pub agent: Option<String>,
    /// Your own notes, at most 32, each name and value of at most 512 bytes.
    pub metadata: BTreeMap<String, String>,
    /// Only a worker that carries all of these has it.
    pub worker_labels: BTreeMap<String, String>,
}

/// A session, as it is answered everywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    #[schema(example = "ses-aaaaaaaaaaaaaaaa")]
    pub id: String,
    pub task_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub status: SessionStatus,
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it ends, unless it is extended.
    #[schema(format = DateTime)]
    pub expires_at: String,
    /// When it was last used; the idle time-out counts from here.
    #[schema(format = DateTime)]
    pub last_used_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_seconds: Option<u64>,
    /// How many steps it has taken.
    pub steps: i64,
    pub metadata: BTreeMap<String, String>,
    pub network_policy_applied: NetworkPolicy,
    /// The enclosure that it is in, once that is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<String>,
    /// How it is paused, and what that keeps; also in the answer to a resume, for the pause that it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PauseView>,
    /// What the request says that has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// How a session is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PauseKind {
    /// Everything stays where it is, and nothing runs.
    Freeze,
    /// Files are kept, encrypted; the sandbox is gone, and its room is free.
    Archive,
}

/// What a pause keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PauseView {
    pub mode: PauseKind,
    pub kept: Vec<String>,
    pub not_kept: Vec<String>,
}

/// `POST /v1/sessions/{id}/pause`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"mode": "archive"}))]
pub struct SessionPause {
    pub mode: PauseKind,
}

/// `POST /v1/sessions/{id}/fork`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"count": 2}))]
pub struct SessionFork {
    /// How many children.
    #[schema(minimum = 1, maximum = 16)]
    pub count: u64,
}

/// The children of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SessionForks {
    pub sessions: Vec<Session>,
    pub kept: Vec<String>,
    pub not_kept: Vec<String>,
}

/// `POST /v1/sessions/{id}/snapshots`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "with-tools"}))]
pub struct SnapshotRequest {
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9-]*$")]
    pub name: String,
}

/// Files of a session under a name. They do not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    #[schema(example = "snp-aaaaaaaaaaaaaaaa")]
    pub id: String,
    pub name: String,
    /// Whose files they were.
    pub session: String,
    pub created_by: String,
    pub size_bytes: u64,
    #[schema(format = DateTime)]
    pub created_at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SnapshotList {
    pub snapshots: Vec<Snapshot>,
    /// For the next page; none at the end.
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionStatus {
    pub state: SessionState,
    /// Why it ended.
    pub cause: Option<EndCause>,
    /// The same for people.
    pub message: Option<String>,
    #[schema(format = DateTime)]
    pub last_transition_at: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    pub sessions: Vec<Session>,
    /// For the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// `POST /v1/sessions/{id}/extend`: one of the two. A deadline that is further off already stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"ttl_seconds": 600}))]
pub struct SessionExtend {
    /// From now.
    #[schema(minimum = 1, example = 600)]
    pub ttl_seconds: Option<u64>,
    #[schema(format = DateTime, example = "2031-01-01T00:00:00.000Z")]
    pub expires_at: Option<String>,
}
