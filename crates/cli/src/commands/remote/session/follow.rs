//! What a step writes and shows, as a person or a program sees it.

use crate::exit::{Failure, say};
use crate::host::streams::Streams;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_client::StepEvent;
use serde_json::{Value, json};

/// Shows events the way a program would have written them; of what code shows, the text.
pub(super) struct Shower {
    pub(super) streams: Streams,
    /// The value of the last expression, which comes another way than output and may be here before it.
    value: Option<String>,
}

impl Shower {
    pub(super) fn open() -> Result<Self, Failure> {
        Ok(Self { streams: Streams::open()?, value: None })
    }

    pub(super) fn show(&mut self, event: &StepEvent) -> Result<(), Failure> {
        match event {
            StepEvent::Stdout { bytes, .. } => self.streams.out(bytes),
            StepEvent::Stderr { bytes, .. } => self.streams.err(bytes),
            StepEvent::Display { result, .. } => match result.data.get("text/plain") {
                Some(text) if result.kind == "result" => {
                    self.value = Some(format!("{text}\n"));
                    Ok(())
                }
                Some(text) => self.streams.out(format!("{text}\n").as_bytes()),
                None => Ok(()),
            },
            StepEvent::Truncated { stream, .. } => {
                say(&format!("{stream} was more than is kept; the rest of it was dropped"));
                Ok(())
            }
            StepEvent::Init { .. } | StepEvent::Complete { .. } => Ok(()),
            StepEvent::Result { .. } => self.end(),
        }
    }

    /// All that there is was shown.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        self.value.take().map_or(Ok(()), |text| self.streams.out(text.as_bytes()))
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
