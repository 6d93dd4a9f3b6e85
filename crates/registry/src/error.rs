//! What can go wrong with a pull, each in words that name the value and the fix.

use cofferdam_core::InvalidValue;
use cofferdam_images::ImageError;
use thiserror::Error;

pub type Result<T> = std::result::Result<T, PullError>;

#[derive(Debug, Error)]
pub enum PullError {
    #[error(transparent)]
    Invalid(#[from] InvalidValue),

    #[error(transparent)]
    Image(#[from] ImageError),

    #[error("{reference}: {host} has no such image, or does not show it without a login")]
    NotFound { reference: String, host: String },

    #[error(
        "{host} wants a login; give --username and --password-stdin, or log in with `docker login {host}`"
    )]
    LoginNeeded { host: String },

    #[error("{host} refused the login of {user:?}; check the name and the password")]
    LoginRefused { host: String, user: String },

    #[error("{host} answered {status} to {what}; ask whoever runs it, or try again later")]
    Status { host: String, status: u16, what: String },

    #[error("{host} cannot be reached: {why}")]
    Unreachable { host: String, why: String },

    #[error("{what} from {host}: {why}")]
    Refused { host: String, what: String, why: String },

    #[error("{what} was cut {times} times; what came is kept, so try again to go on from there: {why}")]
    Cut { what: String, times: u32, why: String },
}
