//! The wire: what is sent and answered, and nothing of how it is done. Wire shapes exist here only.
//!
//! Units are in names, unknown fields are refused, and an error says what to do about it.

mod artifact;
mod error;
mod job;

pub use artifact::{
    Artifact, ArtifactCreated, ArtifactList, ArtifactRequest, FinalizeRequest, LinkRequest, SignedUrl,
};
pub use error::{ErrorBody, ErrorCode, ErrorDetail};
pub use job::{Command, InlineFile, Job, JobList, JobRequest, JobStatus, LimitsRequest};
