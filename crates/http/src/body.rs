//! Bodies: JSON, read whole, refused with the path of what is wrong in it.

use crate::answer::Problem;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use cofferdam_api::ErrorCode;
use serde::de::DeserializeOwned;
use serde_json::json;

/// What a body may be said to be. The second is what curl says of everything, unless told otherwise.
const KINDS: [&str; 2] = ["application/json", "application/x-www-form-urlencoded"];

fn check_kind(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let text = String::from_utf8_lossy(value.as_bytes());
    let kind = text.split(';').next().unwrap_or_default().trim();
    if KINDS.iter().any(|known| kind.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    let message = format!("the body is said to be {kind:?}");
    Err(Problem::new(ErrorCode::UnsupportedMediaType, message, "send JSON, as application/json"))
}

/// A body, and its bytes as they came.
pub(crate) struct Body<T> {
    pub(crate) value: T,
    pub(crate) bytes: Bytes,
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        check_kind(request.headers())?;
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            use axum::response::IntoResponse;
            let text = rejection.to_string();
            match rejection.into_response().status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    Problem::new(ErrorCode::TooLarge, "the body is too large", "send at most 16 MiB")
                }
                _ => Problem::new(ErrorCode::Malformed, text, "send the body again"),
            }
        })?;
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let inner = error.into_inner();
            if inner.is_data() {
                let message = format!("{path}: {inner}");
                let mut problem =
                    Problem::new(ErrorCode::Invalid, message, "see the documentation of the field");
                problem.details = json!({"field": path});
                problem
            } else {
                Problem::new(
                    ErrorCode::Malformed,
                    format!("the body is not JSON: {inner}"),
                    "send a JSON object",
                )
            }
        })?;
        // A list would be taken for the fields in their order.
        if !bytes.trim_ascii_start().starts_with(b"{") {
            let mut problem =
                Problem::new(ErrorCode::Invalid, "the body is not an object", "send one JSON object, in { }");
            problem.details = json!({"field": "."});
            return Err(problem);
        }
        match reader.end() {
            Ok(()) => Ok(Self { value, bytes }),
            Err(error) => Err(Problem::new(
                ErrorCode::Malformed,
                format!("the body is not JSON: {error}"),
                "send one object",
            )),
        }
    }
}
