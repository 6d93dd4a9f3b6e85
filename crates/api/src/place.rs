//! Sessions between control and the worker that has them: start, step and terminate, and one call for everything else.

use crate::{FileChangeData, ProcessRequest, ProcessView, SessionRequest, StepRequest, TerminalSize};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST /sessions`. The same session and generation are started once, however often they are sent.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceStart {
    /// Who is asked. Another worker may have come to its address since.
    #[schema(example = "wrk-aaaaaaaaaaaaaaaa")]
    pub worker_id: String,
    #[schema(example = "ses-aaaaaaaaaaaaaaaa")]
    pub session_id: String,
    pub task_id: String,
    /// Of the placement. An older one than was seen is refused.
    #[schema(minimum = 1)]
    pub generation: i64,
    pub request: SessionRequest,
}

/// A session that a worker has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct PlaceStarted {
    pub session_id: String,
    pub generation: i64,
    /// What the worker calls its sandbox.
    pub sandbox_id: String,
}

/// `POST /sessions/{id}/steps`. The same step is begun once, however often it is sent; it is a run from then on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceStep {
    pub generation: i64,
    /// 1 for the session's first.
    #[schema(minimum = 1)]
    pub number: i64,
    /// Without another word for twice this long, the step is interrupted.
    pub lease_ms: u64,
    pub request: StepRequest,
}

/// The head of `POST /sessions/{id}/calls`: what is asked of a session. Bytes that belong to it come after it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceCall {
    pub generation: i64,
    pub call: SessionCall,
}

/// What can be asked of a session, besides start, step and terminate.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub enum SessionCall {
    RestartContext {
        language: String,
        context: String,
    },
    StatFile {
        path: String,
    },
    /// The answer is followed by the file's bytes, from `first` on.
    ReadFile {
        path: String,
        first: u64,
    },
    /// The answer is followed by a `tar` or a `zip`.
    ReadArchive {
        path: String,
        kind: String,
    },
    /// Followed by a `tar` or a `zip`.
    WriteArchive {
        path: String,
        kind: String,
    },
    SearchFiles {
        path: String,
        name: Option<String>,
        content: Option<String>,
        ignores_case: bool,
        limit: u64,
    },
    WatchFiles {
        path: String,
        after: Option<u64>,
        time_ms: u64,
    },
    /// Followed by the file's bytes.
    WriteFile {
        path: String,
        mode: u32,
    },
    ListFiles {
        path: String,
        depth: u64,
        limit: u64,
    },
    MakeFolder {
        path: String,
    },
    MoveFile {
        from: String,
        to: String,
    },
    RemoveFile {
        path: String,
        all: bool,
    },
    StartProcess {
        request: ProcessRequest,
    },
    ListProcesses,
    ProcessOutput {
        number: u64,
        after: u64,
        time_ms: u64,
    },
    /// Followed by what the process is to read.
    WriteProcess {
        number: u64,
        is_last: bool,
    },
    SignalProcess {
        number: u64,
        signal: i32,
    },
    ResizeProcess {
        number: u64,
        size: TerminalSize,
    },
    Freeze,
    Thaw,
    /// The session stands still for as long as the answer is read: it has content without meaning, and no end.
    Hold,
    /// The answer is followed by the session's files, and then by how many there were.
    Save {
        most: u64,
    },
    /// Followed by what was saved.
    Restore,
    /// Puts the files of another session of the same worker, which stands still, into this one.
    Copy {
        from: String,
        from_generation: i64,
    },
    /// Followed by the secret's value.
    GiveSecret {
        path: String,
    },
}

/// The head of what `POST /sessions/{id}/calls` answers, and its last word where bytes came after the head.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PlaceAnswer {
    Done {
        #[schema(value_type = Object)]
        value: serde_json::Value,
    },
    /// It was not done; the code is for programs, the message for people.
    Failed { code: String, message: String },
}

/// What a process wrote after a number, and how it stands.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct ProcessNews {
    pub pieces: Vec<ProcessNewsPiece>,
    pub has_gap: bool,
    pub process: ProcessView,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct ProcessNewsPiece {
    pub seq: u64,
    pub is_stderr: bool,
    pub base64: String,
}

/// What changed in a folder after a number.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct WatchNews {
    pub changes: Vec<FileChangeData>,
    pub has_gap: bool,
    pub last_seq: u64,
    pub is_over: bool,
}

/// What was written of a session's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct SavedNews {
    pub entries: u64,
    pub bytes: u64,
    pub skipped: u64,
}
