//! Bodies: JSON, read whole, refused with the path of what is wrong in it.

use crate::answer::Problem;
use crate::listen::TooSlow;
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

/// No request of ours nests deeper than a few; a deep one is only meant to be costly.
const MAX_DEPTH: usize = 32;

/// Looks for brackets outside of texts, before anything is built.
fn check_depth(bytes: &[u8]) -> Result<(), Problem> {
    let (mut depth, mut in_text, mut is_escaped) = (0usize, false, false);
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            let message = format!("the body nests deeper than {MAX_DEPTH}");
            return Err(Problem::new(ErrorCode::Malformed, message, "send a flatter one"));
        }
    }
    Ok(())
}

fn is_too_slow(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<TooSlow>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// A body, and its bytes as they came.
pub(crate) struct Body<T> {
    pub(crate) value: T,
    pub(crate) bytes: Bytes,
}

/// A body that may be left out.
pub(crate) async fn body_or_default<T: DeserializeOwned + Default>(request: Request) -> Result<T, Problem> {
    use axum::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
    let headers = request.headers();
    let is_empty = headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0");
    if is_empty && !headers.contains_key(TRANSFER_ENCODING) {
        return Ok(T::default());
    }
    Body::from_request(request, &()).await.map(|body: Body<T>| body.value)
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        check_kind(request.headers())?;
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            use axum::response::IntoResponse;
            if is_too_slow(&rejection) {
                let fix = "send the body faster";
                return Problem::new(ErrorCode::RequestTimeout, "the body came too slowly", fix);
            }
            let text = rejection.to_string();
            match rejection.into_response().status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    Problem::new(ErrorCode::TooLarge, "the body is too large", "send at most 16 MiB")
                }
                _ => Problem::new(ErrorCode::Malformed, text, "send the body again"),
            }
        })?;
        check_depth(&bytes)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_of_texts() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(check_depth(nested(32).as_bytes()).is_ok());
        assert!(check_depth(nested(33).as_bytes()).is_err());
        let text = format!(r#"{{"a":"{}\"{}"}}"#, "[".repeat(100), "{".repeat(100));
        assert!(check_depth(text.as_bytes()).is_ok());
        assert!(check_depth(format!(r#"{{"\\":{}}}"#, nested(32)).as_bytes()).is_err());
        let wide = format!("[{}]", vec!["[]"; 1000].join(","));
        assert!(check_depth(wide.as_bytes()).is_ok());
    }
}
