//! Processes of a session on the wire.

use crate::Command;
use cofferdam_core::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// `POST /v1/sessions/{id}/processes`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"command": ["bash", "-i"], "terminal": {"rows": 24, "columns": 80}}))]
pub struct ProcessRequest {
    pub command: Option<Command>,
    /// A terminal of its own; without it, pipes.
    pub terminal: Option<TerminalSize>,
    /// Set for it, over what the session has.
    pub env: BTreeMap<String, String>,
    /// /workspace, unless given.
    #[schema(example = "/workspace")]
    pub workdir: Option<String>,
    /// It is ended after this time; without it, with the session.
    #[schema(minimum = 1, maximum = 9223372036854775807_u64)]
    pub timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    #[schema(minimum = 1, maximum = 1000, example = 24)]
    pub rows: u16,
    #[schema(minimum = 1, maximum = 1000, example = 80)]
    pub columns: u16,
}

/// A process that was started by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProcessView {
    /// 1 for the session's first.
    pub number: u64,
    pub command: Vec<String>,
    pub is_terminal: bool,
    #[schema(format = DateTime)]
    pub started_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub ended_at: Option<String>,
    /// How it ended, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The number of the last piece of its output.
    pub last_seq: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProcessList {
    pub processes: Vec<ProcessView>,
}

/// `POST …/processes/{number}/signal`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"signal": 15}))]
pub struct SignalRequest {
    #[schema(minimum = 1, maximum = 64)]
    pub signal: i32,
}

/// `POST …/processes/{number}/tickets`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"origin": "https://app.example"}))]
pub struct TicketRequest {
    /// The pages that may use it, by scheme, host and port; without it, those of this server.
    #[schema(example = "https://app.example")]
    pub origin: Option<String>,
    /// Whether it only allows to look.
    pub read_only: bool,
}

/// A ticket, which opens one WebSocket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TicketView {
    pub ticket: String,
    /// Where to use it, below this server's address.
    pub url: String,
    #[schema(format = DateTime)]
    pub expires_at: String,
}
