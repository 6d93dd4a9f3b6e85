//! Where a follower was when it was cut off.

use axum::http::HeaderMap;
use cofferdam_core::InvalidValue;

/// The number in `Last-Event-ID`.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<i64>, InvalidValue> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let is_plain = text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if is_plain => Ok(Some(number)),
        _ => Err(InvalidValue::new("Last-Event-ID", text, "it must be the id of an event of this stream")),
    }
}
