//! The wire: what is sent and answered, and nothing of how it is done. Wire shapes exist here only.
//!
//! Units are in names, unknown fields are refused, and an error says what to do about it.

mod error;
mod job;
mod webhook;

pub use error::{ErrorBody, ErrorCode, ErrorDetail};
pub use job::{Command, InlineFile, Job, JobList, JobRequest, JobStatus, LimitsRequest};
pub use webhook::{WebhookBody, WebhookEvent, WebhookMade, WebhookRequest};
