//! What can go wrong, as values: what the server refused, and what never became an answer.

use cofferdam_api::{ErrorBody, ErrorCode};
use serde_json::Value;
use std::time::Duration;
use thiserror::Error;

pub type Result<T> = std::result::Result<T, ClientError>;

#[derive(Debug, Error)]
pub enum ClientError {
    /// The server answered, and said why not.
    #[error(transparent)]
    Refused(Box<Refusal>),

    /// No answer came.
    #[error("no answer from {url}")]
    Unreachable { url: String, source: reqwest::Error },

    /// An answer came that is not one of this interface's.
    #[error("the answer of {url} is not Cofferdam's: {what}")]
    Strange { url: String, what: String },

    #[error("{0}")]
    Setup(String),
}

/// An error of the interface. The code is text where this client is older than the server.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{} ({name}, {request_id})", self.advice())]
pub struct Refusal {
    pub status: u16,
    pub code: Option<ErrorCode>,
    pub name: String,
    pub message: String,
    pub details: Value,
    pub remediation: String,
    pub retryable: bool,
    pub request_id: String,
    /// How long the server asked to wait.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// Reads the body of an answer that is not a success.
    pub(crate) fn read(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(body).ok()?;
        let error = value.get("error")?;
        let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let known: Option<ErrorBody> = serde_json::from_value(value.clone()).ok();
        Some(Self {
            status,
            code: known.map(|body| body.error.code),
            name: error.get("code")?.as_str()?.to_owned(),
            message: text("message"),
            details: error.get("details").cloned().unwrap_or_default(),
            remediation: text("remediation"),
            retryable: error.get("retryable").and_then(Value::as_bool).unwrap_or(false),
            request_id: text("request_id"),
            retry_after,
        })
    }

    /// What is wrong and what to do. The message on a value says both already.
    fn advice(&self) -> String {
        match self.message.ends_with(&self.remediation) {
            true => self.message.clone(),
            false => format!("{}; {}", self.message, self.remediation),
        }
    }
}

impl ClientError {
    /// The code of a refusal.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(refusal) => refusal.code,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_read_whole_even_with_a_code_of_the_future() {
        let body = r#"{"error":{"code":"denied","message":"no","details":{"rule":"scope"},"remediation":"ask",
            "retryable":false,"request_id":"req-1"}}"#;
        let refusal = Refusal::read(403, None, body.as_bytes()).unwrap();
        assert_eq!((refusal.code, refusal.name.as_str()), (Some(ErrorCode::Denied), "denied"));
        assert_eq!(refusal.details["rule"], "scope");
        assert_eq!(refusal.to_string(), "no; ask (denied, req-1)");
        let said_before = body.replace(r#""no""#, r#""x: no such thing: ask""#);
        let refusal = Refusal::read(403, None, said_before.as_bytes()).unwrap();
        assert_eq!(refusal.to_string(), "x: no such thing: ask (denied, req-1)");
        let refusal = Refusal::read(418, None, &body.replace("denied", "teapot").into_bytes()).unwrap();
        assert_eq!((refusal.code, refusal.name.as_str()), (None, "teapot"));
        assert!(Refusal::read(502, None, b"<html>").is_none());
    }
}
