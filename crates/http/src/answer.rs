//! Answers: JSON, and the one way from an error to the wire.

use crate::routes::error_page;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cofferdam_api::{ErrorBody, ErrorCode, ErrorDetail};
use cofferdam_artifacts::ArtifactError;
use cofferdam_control::{ControlError, timestamp};
use cofferdam_core::{InvalidValue, SessionState};
use serde::Serialize;
use serde_json::json;

pub(crate) type Answer<T = Response> = Result<T, Problem>;

/// Something to be said in the place of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    pub(crate) details: serde_json::Value,
    pub(crate) remediation: String,
    /// Whole seconds; for what may pass and does not say, one.
    pub(crate) retry_after: Option<u64>,
}

impl Problem {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>, remediation: impl Into<String>) -> Self {
        let (message, remediation) = (message.into(), remediation.into());
        Self { code, message, details: json!({}), remediation, retry_after: None }
    }
}

/// After how long something that may pass is worth another try, where nobody knows better.
const RETRY_AFTER_SECONDS: u64 = 1;

/// Only a carrier: whatever goes out is rendered by [`crate::observe`], with the id of the request.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl Problem {
    pub(crate) fn render(self, request_id: &str) -> Response {
        let Self { code, message, mut details, remediation, retry_after } = self;
        if let Some(details) = details.as_object_mut() {
            details.insert("help".to_owned(), error_page(code).into());
        }
        let (retryable, request_id) = (code.is_retryable(), request_id.to_owned());
        let error = ErrorDetail { code, message, details, remediation, retryable, request_id };
        let mut response = json(code.status(), &ErrorBody { error });
        if retryable {
            let seconds = retry_after.unwrap_or(RETRY_AFTER_SECONDS);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

pub(crate) fn json(status: u16, body: &impl Serialize) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match serde_json::to_vec(body) {
        Ok(bytes) => (status, [(header::CONTENT_TYPE, "application/json")], bytes).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

impl From<InvalidValue> for Problem {
    fn from(error: InvalidValue) -> Self {
        let mut problem = Self::new(ErrorCode::Invalid, error.to_string(), error.fix.clone());
        problem.details = json!({"field": error.field, "value": error.value});
        problem
    }
}

impl From<ControlError> for Problem {
    fn from(error: ControlError) -> Self {
        let text = error.to_string();
        match error {
            ControlError::Invalid(error) => error.into(),
            ControlError::ImageRefused { why, check } => {
                let mut problem = Self::from(why);
                problem.details["check"] = serde_json::to_value(check).unwrap_or_default();
                problem
            }
            ControlError::AboveMaximum { field, value, maximum } => {
                let mut problem = Self::new(ErrorCode::Invalid, text, format!("ask for at most {maximum}"));
                problem.details = json!({"field": field, "value": value, "maximum": maximum});
                problem
            }
            ControlError::Unsupported { field, why } => {
                let mut problem =
                    Self::new(ErrorCode::Unsupported, text, format!("leave {field} out: {why}"));
                problem.details = json!({"field": field});
                problem
            }
            ControlError::Denied(denial) => {
                let mut problem = Self::new(ErrorCode::Denied, text, denial.change);
                problem.details = json!({"rule": denial.rule});
                problem
            }
            ControlError::NotFound { what } => {
                Self::new(ErrorCode::NotFound, text, format!("check the id of the {what}, and whose it is"))
            }
            ControlError::IdempotencyConflict => {
                Self::new(ErrorCode::IdempotencyConflict, text, "use a new key for a new request")
            }
            ControlError::Taken { .. } => Self::new(ErrorCode::Conflict, text, "choose another name"),
            ControlError::InUse { .. } => {
                Self::new(ErrorCode::WrongState, text, "cancel them, or wait until they have ended")
            }
            ControlError::OverQuota { quota, most, retry_after } => {
                // Rounded up: whoever comes when it says is not too early.
                let seconds = retry_after.as_millis().div_ceil(1000).max(1) as u64;
                let fix = format!("try again in {seconds} s, or ask the operator for more");
                let mut problem = Self::new(ErrorCode::RateLimited, text, fix);
                problem.details = json!({"quota": quota, "maximum": most});
                problem.retry_after = Some(seconds);
                problem
            }
            ControlError::WrongState { .. } => {
                Self::new(ErrorCode::WrongState, text, "wait until it has ended")
            }
            ControlError::SessionState { state, cause } => {
                let fix = match state {
                    SessionState::Ended => "make a new session",
                    SessionState::Paused => "resume it first: POST /v1/sessions/{id}/resume",
                    _ => "wait until it is ready",
                };
                let mut problem = Self::new(ErrorCode::WrongState, text, fix);
                problem.details = json!({"state": state, "cause": cause});
                problem
            }
            ControlError::SessionBusy { .. } => {
                Self::new(ErrorCode::WrongState, text, "interrupt them, or wait until they have ended")
            }
            ControlError::Conflict { .. } => {
                Self::new(ErrorCode::WrongState, text, "look at its state first")
            }
            ControlError::Input { .. } => Self::new(
                ErrorCode::WrongState,
                text,
                "look whether it still runs, and has not closed its input",
            ),
            ControlError::TooLarge { .. } => {
                Self::new(ErrorCode::TooLarge, text, "send less, or announce more")
            }
            ControlError::Artifact(error) => artifact(&error),
            ControlError::Kept { .. } => {
                tracing::error!(error = text, "what was kept is not what was written");
                Self::new(ErrorCode::Internal, text, "tell the operator; what is paused stays so")
            }
            ControlError::Gated { gate, since_ms, retry_after_seconds } => {
                let mut problem = Self::new(ErrorCode::Unavailable, text, "try again later");
                problem.details = json!({"gate": gate.as_str(), "since": timestamp(since_ms)});
                problem.retry_after = Some(retry_after_seconds);
                problem
            }
            ControlError::Unavailable(_) => Self::new(ErrorCode::Unavailable, text, "try again in a moment"),
            ControlError::Store(_) | ControlError::Signing(_) => {
                // What the database said is for the operator, not for a caller.
                tracing::error!(error = text, "the store failed");
                Self::new(ErrorCode::Unavailable, "the store does not answer", "try again in a moment")
            }
        }
    }
}

/// What the place of artifacts said is for the operator, not for a caller.
fn artifact(error: &ArtifactError) -> Problem {
    tracing::error!(error = error.to_string(), "the artifact store failed");
    match error {
        ArtifactError::Away(_) | ArtifactError::NoRandomness => {
            let fix = "try again in a moment";
            Problem::new(ErrorCode::Unavailable, "the artifact store does not answer", fix)
        }
        _ => Problem::new(ErrorCode::Internal, "the artifact's bytes cannot be read", "tell the operator"),
    }
}

pub(crate) async fn no_such_path() -> Problem {
    Problem::new(
        ErrorCode::NotFound,
        "there is no such path",
        "see the documentation for the paths that there are",
    )
}

pub(crate) async fn no_such_method() -> Problem {
    Problem::new(
        ErrorCode::MethodNotAllowed,
        "the path has no such method",
        "see the documentation for the methods that it has",
    )
}
