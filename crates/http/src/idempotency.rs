//! The name that a caller gives a request, so that sending it again does not do it again.

use axum::http::HeaderMap;
use cofferdam_core::InvalidValue;

pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, InvalidValue> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let is_plain = !text.is_empty() && text.len() <= 255 && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain {
        return Ok(Some(text.to_owned()));
    }
    Err(InvalidValue::new("Idempotency-Key", text, "it must be 1 to 255 visible ASCII characters"))
}
