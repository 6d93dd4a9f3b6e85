//! Why bytes could not be kept or read.

use std::io;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum ArtifactError {
    /// The place does not answer, or refuses us. It may help to try again later.
    #[error("the artifact store does not answer")]
    Away(#[source] object_store::Error),

    #[error("the artifact store has no bytes for this artifact")]
    Missing,

    /// What lies there is not what was put there.
    #[error("the bytes of the artifact were changed: {0}")]
    Damaged(&'static str),

    /// Not under this master key.
    #[error("the artifact's key cannot be opened with this master key")]
    WrongMasterKey,

    #[error("{what}")]
    Setup { what: String },

    #[error("the kernel gives no random bytes")]
    NoRandomness,
}

impl From<object_store::Error> for ArtifactError {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => Self::Missing,
            other => Self::Away(other),
        }
    }
}

impl From<ArtifactError> for io::Error {
    fn from(error: ArtifactError) -> Self {
        Self::other(error)
    }
}
