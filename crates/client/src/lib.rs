//! The client: every verb of the interface as a typed function.
//!
//! What may be sent again safely is sent again, when the server says that it may pass or the connection fails: a job
//! is only ever created once, because each creation has an idempotency key of its own. Output is followed across
//! broken connections without a gap or a repetition.
//!
//! It reads no environment and touches no terminal.

mod artifacts;
mod attach;
mod audit;
mod error;
mod files;
mod images;
mod jobs;
mod keeping;
mod keys;
mod output;
mod processes;
mod retry;
mod send;
mod sessions;
mod sse;
mod steps;
mod tenants;

pub use artifacts::{Download, Progress};
pub use attach::{Attached, AttachedEvent};
pub use audit::Export;
pub use error::{ClientError, Refusal, Result};
pub use files::{ArchiveFormat, FileDownload};
pub use jobs::JobQuery;
pub use output::{Output, OutputEvent};
pub use retry::Patience;
pub use send::Client;
pub use sessions::SessionQuery;
pub use steps::StepEvent;
