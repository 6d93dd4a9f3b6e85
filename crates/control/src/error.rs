//! Why a verb did not do what it was asked.

use cofferdam_api::ImageCheck;
use cofferdam_artifacts::ArtifactError;
use cofferdam_core::{EndCause, InvalidValue, JobState, SessionState};
use cofferdam_policy::Denial;
use cofferdam_store::StoreError;
use std::borrow::Cow;
use std::time::Duration;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum ControlError {
    /// A field cannot have that value; nothing was kept.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),

    /// An image that is not what it is to be registered as; nothing was kept.
    #[error("{why}")]
    ImageRefused { why: InvalidValue, check: Box<ImageCheck> },

    /// More than the operator allows; nothing was kept.
    #[error("{field}: {value} is more than {maximum}, which is the most that this server allows")]
    AboveMaximum { field: &'static str, value: String, maximum: String },

    /// A field whose capability is not built, or that the backend does not have.
    #[error("{field} is not supported: {why}")]
    Unsupported { field: &'static str, why: Cow<'static, str> },

    #[error("{0}")]
    Denied(Denial),

    #[error("there is no such {what}")]
    NotFound { what: &'static str },

    #[error("the idempotency key was used for another request")]
    IdempotencyConflict,

    /// Something of that name is there already.
    #[error("there is another {what} of that name")]
    Taken { what: &'static str },

    #[error("the {what} has {count} jobs or sessions that have not ended")]
    InUse { what: &'static str, count: i64 },

    /// The tenant has as much as it may; after a while it may be less.
    #[error("the tenant's quota {quota} of {most} is used up")]
    OverQuota { quota: &'static str, most: u64, retry_after: Duration },

    #[error("the job is {state}")]
    WrongState { state: JobState },

    /// The session takes no such request: it is not ready, or has ended.
    #[error("the session is {}", session_state(*state, *cause))]
    SessionState { state: SessionState, cause: Option<EndCause> },

    /// Its steps are in the way.
    #[error("the session has {count} steps that run or wait")]
    SessionBusy { count: i64 },

    /// The thing is in a state that does not allow this.
    #[error("{text}")]
    Conflict { text: String },

    /// A process takes no input: it was closed, nothing reads it, or it has ended.
    #[error("{text}")]
    Input { text: String },

    #[error("{text}")]
    TooLarge { text: String },

    /// The bytes of an artifact could not be kept or read.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),

    /// What was kept of a session's files is not what was written.
    #[error("what was kept of the session's files cannot be put back: {why}")]
    Kept { why: String },

    /// What was asked for cannot be done while a gate is closed.
    #[error("{}", gate.reason())]
    Gated { gate: crate::Gate, since_ms: i64, retry_after_seconds: u64 },

    /// New work is not taken just now.
    #[error("{0}")]
    Unavailable(String),

    #[error("{0}")]
    Store(StoreError),

    /// At the start: the keys to sign with cannot be used.
    #[error(transparent)]
    Signing(#[from] crate::SigningError),
}

fn session_state(state: SessionState, cause: Option<EndCause>) -> String {
    match cause {
        Some(cause) => format!("{state}: {cause}"),
        None => state.to_string(),
    }
}

impl From<StoreError> for ControlError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { what } => Self::NotFound { what },
            StoreError::WrongState { state, .. } => Self::WrongState { state },
            StoreError::SessionState { state, cause } => Self::SessionState { state, cause },
            StoreError::SessionBusy { count } => Self::SessionBusy { count },
            StoreError::Taken { what } => Self::Taken { what },
            StoreError::InUse { what, count } => Self::InUse { what, count },
            StoreError::WrongArtifactState { state } => {
                Self::Conflict { text: format!("the artifact is {state}") }
            }
            StoreError::Unstorable { what } => {
                Self::Invalid(InvalidValue::new(what, "…", "it must not contain NUL"))
            }
            StoreError::Limit { limit } => {
                Self::Invalid(InvalidValue::new("limit", limit.to_string(), "it must be 0 or more"))
            }
            other => Self::Store(other),
        }
    }
}
