//! The data of the events by which output is followed. The event `result` carries a [`crate::Job`].

use crate::ErrorCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One event of a stream, as its three lines say. What is in `data` depends on `event`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({"event": "stdout", "id": "1", "data": "{\"seq\":1,\"text\":\"1\\n\"}"}))]
pub struct StreamEvent {
    /// `init`, `stdout`, `stderr`, `display`, `truncated`, `result`, `exit`, `error` or `complete`.
    #[schema(pattern = "^(init|stdout|stderr|display|truncated|result|exit|error|complete)$")]
    pub event: String,
    /// The number to go on from; an `error` has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// JSON: InitData, OutputData, TruncatedData, Job, ErrorData or CompleteData.
    pub data: String,
}

/// `init`: the first event, and the first of each attempt after the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InitData {
    pub seq: i64,
    /// The job's.
    pub id: String,
    /// Which attempt begins, where it is not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i64>,
}

/// `stdout` and `stderr`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputData {
    pub seq: i64,
    /// What was written, with bytes that are not UTF-8 replaced.
    pub text: String,
    /// The exact bytes, where the text cannot show them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// `truncated`: from here on nothing of the stream was kept, or nothing of any of them is kept any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TruncatedData {
    pub seq: i64,
    /// `stdout`, `stderr` or `all`.
    #[schema(example = "stdout")]
    pub stream: String,
    /// `expired`, where the output was kept for its time and is gone now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `error`: the server cannot go on; the stream ends. It may be taken up again, with another key where the code is
/// `unauthenticated`: the one that opened it is not valid any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorData {
    pub code: ErrorCode,
    pub message: String,
}

/// `complete`: nothing more will come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CompleteData {
    pub seq: i64,
}
