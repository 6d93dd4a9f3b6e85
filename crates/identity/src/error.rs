//! Why a token is not believed. Nothing of the token itself is in here.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TokenError {
    #[error("the token is too long")]
    TooLong,
    #[error("the token is not three parts of base64 with JSON in them")]
    Malformed,
    #[error("the token's header has {0}, which is not taken from a token")]
    Header(&'static str),
    #[error("the token's algorithm is not that of its key")]
    Algorithm,
    #[error("the token was signed with a key that is not known")]
    UnknownKey,
    #[error("the token's signature is wrong")]
    Signature,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    TooEarly,
    #[error("the token is from another issuer")]
    Issuer,
    #[error("the token is for another audience")]
    Audience,
    #[error("the token's claim {0:?} is missing or cannot be what it is")]
    Claim(String),
    /// The keys could not be had, so nothing can be checked.
    #[error("the keys for tokens are not there: {0}")]
    Keys(String),
}
