//! Bodies: JSON, read whole, refused with the path of what is wrong in it.

use crate::MAX_BODY_BYTES;
use crate::answer::Problem;
use crate::listen::TooSlow;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use cofferdam_api::{ErrorCode, Objects};
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

fn too_large() -> Problem {
    Problem::new(ErrorCode::TooLarge, "the body is too large", "send at most 16 MiB")
}

/// A body that is announced to be too large is not waited for.
fn check_length(headers: &HeaderMap) -> Result<(), Problem> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    match length.and_then(|length| length.parse::<u64>().ok()) {
        Some(length) if length > MAX_BODY_BYTES as u64 => Err(too_large()),
        _ => Ok(()),
    }
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
        check_length(request.headers())?;
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            use axum::response::IntoResponse;
            if is_too_slow(&rejection) {
                let fix = "send the body faster";
                return Problem::new(ErrorCode::RequestTimeout, "the body came too slowly", fix);
            }
            let text = rejection.to_string();
            match rejection.into_response().status() {
                StatusCode::PAYLOAD_TOO_LARGE => too_large(),
                _ => Problem::new(ErrorCode::Malformed, text, "send the body again"),
            }
        })?;
        check_depth(&bytes)?;
        let value = parse(&bytes).or_else(|problem| match whole_numbers(&bytes) {
            // What is wrong is said of what was sent.
            Some(plain) if problem.code == ErrorCode::Invalid => parse(&plain).map_err(|_| problem),
            _ => Err(problem),
        })?;
        Ok(Self { value, bytes })
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(Objects(&mut reader)).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        if inner.is_data() {
            let message = format!("{path}: {inner}");
            let mut problem = Problem::new(ErrorCode::Invalid, message, "see the documentation of the field");
            problem.details = json!({"field": path});
            problem
        } else {
            let message = format!("the body is not JSON: {inner}");
            Problem::new(ErrorCode::Malformed, message, "send a JSON object")
        }
    })?;
    reader.end().map_err(|error| {
        let message = format!("the body is not JSON: {error}");
        Problem::new(ErrorCode::Malformed, message, "send one object")
    })?;
    Ok(value)
}

/// The same body with its whole numbers written as such: 5.0 and 5e0 are whole to JSON and to its schemas, and some
/// languages write every number like that. None where there are none of these. Looked at only where a body does not fit.
fn whole_numbers(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(bytes.len());
    let (mut in_text, mut is_escaped, mut is_changed) = (false, false, false);
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        if !in_text && (byte == b'-' || byte.is_ascii_digit()) {
            let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
            let (number, after) = rest.split_at(rest.iter().take_while(|byte| is_part(byte)).count());
            match whole(number) {
                Some(text) => {
                    is_changed = true;
                    plain.extend_from_slice(text.as_bytes());
                }
                None => plain.extend_from_slice(number),
            }
            rest = after;
            continue;
        }
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            _ => {}
        }
        plain.push(byte);
        rest = after;
    }
    is_changed.then_some(plain)
}

/// Up to here every whole number is one float, and the other way round.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// A number with a fraction or an exponent, without them, where it is whole.
fn whole(number: &[u8]) -> Option<String> {
    if !number.iter().any(|byte| b".eE".contains(byte)) {
        return None;
    }
    let value: f64 = serde_json::from_slice(number).ok()?;
    (value.fract() == 0.0 && value.abs() <= MAX_EXACT).then(|| format!("{value:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        let plain =
            |text: &str| whole_numbers(text.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(plain(r#"{"a":5.0,"b":[-2e3,1.5,7]}"#).as_deref(), Some(r#"{"a":5,"b":[-2000,1.5,7]}"#));
        assert_eq!(plain(r#"{"a":"5.0","5.0":"\"5.0"}"#), None);
        assert_eq!(plain(r#"{"a":1.5,"b":1e300,"c":5..0}"#), None);
        assert_eq!(plain(r#"{"a":9007199254740992.0}"#).as_deref(), Some(r#"{"a":9007199254740992}"#));
    }

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
