//! Errors on the wire: a closed set of codes, each with one status.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What went wrong. The set is closed; each has a page in the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The body is not JSON.
    Malformed,
    /// A field has a value that it cannot have.
    Invalid,
    /// A field whose capability is not built.
    Unsupported,
    /// No key, or one that is not valid.
    Unauthenticated,
    /// The key is valid and may not do this.
    Denied,
    /// There is no such thing, or not for this caller.
    NotFound,
    /// The method does not exist for this path.
    MethodNotAllowed,
    /// The idempotency key was used for another request.
    IdempotencyConflict,
    /// Something of that name is there already.
    Conflict,
    /// The thing is in a state that does not allow this.
    WrongState,
    /// The request did not come in time.
    RequestTimeout,
    TooLarge,
    /// The part that was asked for lies behind the end.
    RangeNotSatisfiable,
    /// The body is said to be something else than JSON.
    UnsupportedMediaType,
    /// Too many requests, or too much work at once.
    RateLimited,
    /// New work cannot be kept or run just now.
    Unavailable,
    /// A defect of the server's.
    Internal,
}

impl ErrorCode {
    pub const ALL: [Self; 17] = [
        Self::Malformed,
        Self::Invalid,
        Self::Unsupported,
        Self::Unauthenticated,
        Self::Denied,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::IdempotencyConflict,
        Self::Conflict,
        Self::WrongState,
        Self::RequestTimeout,
        Self::TooLarge,
        Self::RangeNotSatisfiable,
        Self::UnsupportedMediaType,
        Self::RateLimited,
        Self::Unavailable,
        Self::Internal,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Invalid => "invalid",
            Self::Unsupported => "unsupported",
            Self::Unauthenticated => "unauthenticated",
            Self::Denied => "denied",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::IdempotencyConflict => "idempotency_conflict",
            Self::Conflict => "conflict",
            Self::WrongState => "wrong_state",
            Self::RequestTimeout => "request_timeout",
            Self::TooLarge => "too_large",
            Self::RangeNotSatisfiable => "range_not_satisfiable",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::RateLimited => "rate_limited",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal",
        }
    }

    pub fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::Invalid | Self::Unsupported => 422,
            Self::Unauthenticated => 401,
            Self::Denied => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::IdempotencyConflict | Self::Conflict | Self::WrongState => 409,
            Self::RequestTimeout => 408,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::RangeNotSatisfiable => 416,
            Self::RateLimited => 429,
            Self::Unavailable => 503,
            Self::Internal => 500,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Unavailable)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    pub error: ErrorDetail,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    pub code: ErrorCode,
    pub message: String,
    /// What the message is about, such as the path of a field and its value; `help` is where the code's page is served.
    #[schema(value_type = Object, example = json!({"field": "timeout_ms", "value": "0", "help": "/docs/errors/invalid"}))]
    pub details: serde_json::Value,
    /// What to do about it.
    #[schema(example = "it must be more than 0")]
    pub remediation: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// For whoever looks after the server.
    pub request_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_wire() {
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_string(&code).unwrap(), format!("{:?}", code.as_str()));
        }
    }
}
