//! What can go wrong with a sandbox, by what the caller can do about it.

use cofferdam_core::InvalidValue;
use std::io;
use thiserror::Error;

pub type Result<T, E = BackendError> = std::result::Result<T, E>;

#[derive(Debug, Error)]
pub enum BackendError {
    /// The request is wrong, whatever the machine.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),

    /// This machine cannot give the isolation that was asked for.
    #[error("{reason}; {fix}")]
    Refused { reason: String, fix: String },

    /// The backend has no such ability; its capabilities say so beforehand.
    #[error("the {backend} backend cannot {what}")]
    Unsupported { backend: &'static str, what: &'static str },

    /// No such file, program or folder inside the sandbox.
    #[error("{path}: not found in the sandbox")]
    NotFound { path: String },

    /// The program is there and cannot be run, or the file cannot be opened by the sandbox's user.
    #[error("{path}: {reason}")]
    NotPermitted { path: String, reason: String },

    /// The sandbox is gone, or going.
    #[error("the sandbox is gone: {cause}")]
    Gone { cause: String },

    /// Making or using the sandbox failed at a named step. Nothing of the caller's was run by it.
    #[error("{step}: {source}")]
    Failed { step: String, source: io::Error },
}

impl BackendError {
    pub fn failed(step: impl Into<String>, source: io::Error) -> Self {
        Self::Failed { step: step.into(), source }
    }
}
