//! What is run, and what is told of it.

use cofferdam_core::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How a kernel is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelOptions {
    /// The whole environment of its process.
    pub env: Vec<(String, String)>,
    pub workdir: String,
    /// How long a cell that was asked to stop may take before its process is killed.
    pub grace: Duration,
    /// Python's kernel compiled, as an interpreter of the same image has told it that was nobody's yet. One of another
    /// version has no use for it, and compiles the kernel itself, as where this is not there.
    pub compiled: Option<Arc<[u8]>>,
}

/// A piece of code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    pub code: String,
    /// Set before the cell runs; it stays set.
    pub env: Vec<(String, String)>,
    /// After this it is interrupted.
    pub timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Where a result comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultKind {
    /// The value of the cell's last expression.
    Result,
    /// What the code showed by itself: `display(…)`, a figure.
    Display,
}

impl ResultKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Display => "display",
        }
    }
}

/// A value in every form that it offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RichResult {
    pub kind: ResultKind,
    /// By MIME type: text, or base64 for pictures that are not text.
    pub data: BTreeMap<String, String>,
}

/// What a cell raised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellError {
    pub name: String,
    pub value: String,
    /// Lines, without frames of the kernel's own.
    pub traceback: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellEnd {
    /// 1 for a kernel's first cell.
    pub execution_count: u64,
    pub outcome: CellOutcome,
    pub error: Option<CellError>,
    /// In Bash, that of the last command.
    pub exit_code: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellOutcome {
    Completed,
    Raised,
    /// Somebody asked for it. Where the state could not be kept, the process is gone.
    Interrupted {
        state_kept: bool,
    },
    TimedOut {
        state_kept: bool,
    },
    /// The process ended, by itself or not.
    Died {
        cause: Outcome,
    },
}

/// Takes what a cell tells while it runs.
pub trait CellSink: Send {
    fn output(&mut self, stream: Stream, bytes: &[u8]);
    fn display(&mut self, result: RichResult);
}
