//! Why a verb did not do what it was asked.

use cofferdam_core::{InvalidValue, JobState};
use cofferdam_policy::Denial;
use cofferdam_store::StoreError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum ControlError {
    /// A field cannot have that value; nothing was kept.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),

    /// A field whose capability is not built.
    #[error("{field} is not supported: {why}")]
    Unsupported { field: &'static str, why: &'static str },

    #[error("{0}")]
    Denied(Denial),

    #[error("there is no such {what}")]
    NotFound { what: &'static str },

    #[error("the idempotency key was used for another request")]
    IdempotencyConflict,

    #[error("the job is {state}")]
    WrongState { state: JobState },

    /// New work is not taken just now.
    #[error("{0}")]
    Unavailable(String),

    #[error("{0}")]
    Store(StoreError),

    /// At the start: the keys to sign with cannot be used.
    #[error(transparent)]
    Signing(#[from] crate::SigningError),
}

impl From<StoreError> for ControlError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { what } => Self::NotFound { what },
            StoreError::WrongState { state, .. } => Self::WrongState { state },
            StoreError::Unstorable { what } => {
                Self::Invalid(InvalidValue::new(what, "…", "it must not contain NUL"))
            }
            other => Self::Store(other),
        }
    }
}
