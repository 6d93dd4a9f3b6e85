//! Runs on the wire: between control and a worker, one attempt at a job, or one step of a session.

use crate::{JobRequest, RichResult};
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// `POST /runs`. The same job and attempt make one run, however often they are sent.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCreate {
    /// Who is asked. Another worker may have come to its address since.
    #[schema(example = "wrk-aaaaaaaaaaaaaaaa")]
    pub worker_id: String,
    #[schema(example = "job-aaaaaaaaaaaaaaaa")]
    pub job_id: String,
    pub task_id: String,
    /// 1 for the first.
    #[schema(minimum = 1)]
    pub attempt: i64,
    /// The claim of whoever asks. An older one than was seen is refused.
    pub fence: i64,
    /// Without another word for twice this long, the run is ended.
    pub lease_ms: u64,
    pub request: JobRequest,
    /// The secrets that the request names, for the sandbox's memory and nowhere else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 32)]
    pub secrets: Vec<RunSecret>,
}

/// A secret on its way to a worker.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"path": "/run/secrets/token", "value": "not a real secret"}))]
pub struct RunSecret {
    /// Below `/run/secrets`.
    pub path: String,
    pub value: String,
}

impl fmt::Debug for RunSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunSecret({})", self.path)
    }
}

/// A run as the worker knows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct Run {
    /// Of a step: its session's id, a dash, and its number.
    pub job_id: String,
    /// Of a step: the generation of its session.
    pub attempt: i64,
    pub fence: i64,
    pub state: RunState,
    /// The number of the last event.
    pub last_seq: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    Running,
    Ended,
}

/// `POST /runs/{id}/lease`: the owner is still there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunLease {
    pub attempt: i64,
    pub fence: i64,
    pub lease_ms: u64,
}

/// `POST /runs/{id}/terminate`: ends the process as a deadline would.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunTerminate {
    pub attempt: i64,
    pub fence: i64,
    /// Who wants it.
    pub by: String,
}

/// `POST /runs/{id}/outputs/{number}`: what became of an artifact that the run leaves.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunOutputKept {
    pub attempt: i64,
    pub fence: i64,
    pub verdict: RunOutputVerdict,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RunOutputVerdict {
    Kept {
        size_bytes: u64,
    },
    /// Nothing of it was kept.
    Refused {
        why: String,
    },
}

/// One line of `GET /runs/{id}/output`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    Stdout {
        seq: u64,
        base64: String,
    },
    Stderr {
        seq: u64,
        base64: String,
    },
    /// The sandbox stands and its process runs.
    Started {
        seq: u64,
    },
    /// The turn of a step has come, and it runs.
    Begun {
        seq: u64,
    },
    /// A step shows something.
    Shown {
        seq: u64,
        result: RichResult,
    },
    /// The run wants an artifact, at `PUT /runs/{id}/inputs/{number}`.
    Input {
        seq: u64,
        number: u64,
        artifact: String,
    },
    /// The run leaves an artifact, at `GET /runs/{id}/outputs/{number}`, and waits to hear what became of it.
    Output {
        seq: u64,
        number: u64,
        path: String,
    },
    /// The run is over, and nothing comes after this.
    End {
        seq: u64,
        end: RunEnd,
    },
    /// Nothing has happened for a while; the connection stands.
    Idle,
}

/// How a run ended: with a result, or without having begun.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RunEnd {
    /// The output is not in the result: it came before.
    Result {
        #[schema(value_type = Object)]
        result: serde_json::Value,
    },
    Errored {
        code: String,
        message: String,
    },
}
