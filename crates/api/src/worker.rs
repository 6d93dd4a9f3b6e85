//! Workers on the wire: what they say of themselves, and what operators are told.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How much a worker takes on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerCapacity {
    pub slots: u64,
    pub cpus_millis: u64,
    pub memory_bytes: u64,
}

/// `PUT /internal/workers/{id}`: a worker is there. The first one registers it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerHeartbeat {
    /// Where control reaches it.
    pub url: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    pub backends: Vec<String>,
    pub capacity: WorkerCapacity,
    /// It takes no new work.
    #[serde(default)]
    pub is_draining: bool,
    /// Why it cannot make sandboxes just now; none where it can. For the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512)]
    pub problem: Option<String>,
    /// Digests of images that it has; not given where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 256)]
    pub images: Option<Vec<String>>,
    /// The sessions that it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<WorkerSession>,
}

/// A session that a worker has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerSession {
    #[schema(example = "ses-aaaaaaaaaaaaaaaa")]
    pub id: String,
    pub generation: i64,
    /// For how long it has had it.
    pub age_ms: u64,
    /// Why its sandbox is gone, where it went by itself: the session ends as lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// What a worker is told in return.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct WorkerHeartbeatAnswer {
    /// When to come again.
    pub next_ms: u64,
    /// Sessions that it said it has, and that are not its own any more: it ends them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_yours: Vec<WorkerSession>,
}

/// A worker, as `GET /v1/workers` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerView {
    #[schema(example = "wrk-aaaaaaaaaaaaaaaa")]
    pub id: String,
    /// None where it is a part of the server itself.
    pub url: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub backends: Vec<String>,
    pub capacity: WorkerCapacity,
    /// What the server that answers has given to it.
    pub used: WorkerCapacity,
    /// `ready`, `draining`, `unhealthy`: it cannot make sandboxes, or `out`: not heard of for two heartbeats.
    #[schema(example = "ready")]
    pub state: String,
    pub last_heartbeat_ms_ago: Option<i64>,
    /// Why it cannot make sandboxes, where it is `unhealthy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerList {
    pub workers: Vec<WorkerView>,
}
