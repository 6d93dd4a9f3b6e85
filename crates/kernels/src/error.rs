//! Why there is no kernel, or no cell.

use cofferdam_backend::BackendError;
use cofferdam_core::{InvalidValue, Outcome};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum KernelError {
    /// The request is wrong, whatever the kernel.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),

    #[error(transparent)]
    Backend(#[from] BackendError),

    /// The program is not in the image, or is not what its name says.
    #[error("{program} ended before it was ready ({cause:?}){said}")]
    NotStarted {
        program: &'static str,
        cause: Outcome,
        /// What it wrote to stderr, where there was anything.
        said: String,
    },

    #[error("{program} was not ready after {seconds} s")]
    TooSlow { program: &'static str, seconds: u64 },

    /// It answered in a way that no kernel does.
    #[error("the kernel does not keep to its protocol: {0}")]
    Protocol(String),

    #[error("this kernel is over; start another one")]
    Over,
}
