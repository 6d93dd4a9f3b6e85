//! What a step writes and shows, as a person or a program sees it.

use crate::exit::{Failure, say};
use crate::host::streams::Streams;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_client::StepEvent;
use serde_json::{Value, json};

/// Shows an event the way a program would have written it; of what code shows, the text.
pub(super) fn write(streams: &mut Streams, event: &StepEvent) -> Result<(), Failure> {
    match event {
        StepEvent::Stdout { bytes, .. } => streams.out(bytes),
        StepEvent::Stderr { bytes, .. } => streams.err(bytes),
        StepEvent::Display { result, .. } => match result.data.get("text/plain") {
            Some(text) => streams.out(format!("{text}\n").as_bytes()),
            None => Ok(()),
        },
        StepEvent::Truncated { stream, .. } => {
            say(&format!("{stream} was more than is kept; the rest of it was dropped"));
            Ok(())
        }
        StepEvent::Init { .. } | StepEvent::Result { .. } | StepEvent::Complete { .. } => Ok(()),
    }
}

/// An event with its number. A line that is whole was seen whole.
pub(super) fn line(step: &str, event: &StepEvent) -> Value {
    let seq = event.seq();
    let text = |kind: &str, bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => json!({"step": step, "seq": seq, "event": kind, "text": text}),
        Err(_) => {
            let (text, exact) = (String::from_utf8_lossy(bytes), STANDARD.encode(bytes));
            json!({"step": step, "seq": seq, "event": kind, "text": text, "base64": exact})
        }
    };
    match event {
        StepEvent::Init { .. } => json!({"step": step, "seq": seq, "event": "init"}),
        StepEvent::Stdout { bytes, .. } => text("stdout", bytes),
        StepEvent::Stderr { bytes, .. } => text("stderr", bytes),
        StepEvent::Display { result, .. } => {
            json!({"step": step, "seq": seq, "event": "display", "result": result})
        }
        StepEvent::Truncated { stream, .. } => {
            json!({"step": step, "seq": seq, "event": "truncated", "stream": stream})
        }
        StepEvent::Result { step: result, .. } => {
            json!({"step": step, "seq": seq, "event": "result", "result": result})
        }
        StepEvent::Complete { .. } => json!({"step": step, "seq": seq, "event": "complete"}),
    }
}
