//! Events of a stream, by which output is followed.

use axum::response::sse::Event;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{DisplayData, InitData, OutputData, RichResult, TruncatedData};
use cofferdam_store::{OutputEvent, OutputKind};
use serde::Serialize;

pub(crate) fn event(name: &str, seq: Option<i64>, data: &impl Serialize) -> Event {
    let event = Event::default().event(name).data(serde_json::to_string(data).unwrap_or_default());
    match seq {
        Some(seq) => event.id(seq.to_string()),
        None => event,
    }
}

/// An event of what something has written, as it is kept.
pub(crate) fn output_event(id: &str, output: &OutputEvent) -> Event {
    let (seq, name) = (output.seq, output.kind.as_str());
    let text = || String::from_utf8_lossy(&output.bytes).into_owned();
    match output.kind {
        OutputKind::Init => {
            let attempt = text().parse().ok();
            event(name, Some(seq), &InitData { seq, id: id.to_owned(), attempt })
        }
        OutputKind::Display => {
            let result = serde_json::from_slice(&output.bytes).unwrap_or_else(|_| nothing_shown());
            event(name, Some(seq), &DisplayData { seq, result })
        }
        OutputKind::Truncated => event(name, Some(seq), &TruncatedData { seq, stream: text(), reason: None }),
        OutputKind::Stdout | OutputKind::Stderr => {
            let is_text = std::str::from_utf8(&output.bytes).is_ok();
            let base64 = (!is_text).then(|| STANDARD.encode(&output.bytes));
            event(name, Some(seq), &OutputData { seq, text: text(), base64 })
        }
    }
}

/// What was kept is what was shown; if not, it is known that there was something.
fn nothing_shown() -> RichResult {
    RichResult { kind: "display".to_owned(), data: Default::default() }
}
