//! What `cargo build --message-format=json` prints: a line of JSON for everything, the last of which says how it ended.

use crate::collect::{Collector, Place};
use crate::{End, broken, complete, missing, truncated};
use cofferdam_core::Severity;
use serde::Deserialize;

#[derive(Deserialize)]
struct Line {
    reason: String,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    success: Option<bool>,
}

#[derive(Deserialize)]
struct Message {
    level: String,
    message: String,
    #[serde(default)]
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: u64,
    column_start: u64,
    is_primary: bool,
}

pub(crate) fn parse(text: &str, found: &mut Collector) -> End {
    let (mut has_begun, mut success, mut unread) = (false, None, 0_u64);
    // What a build script or a command around cargo prints is no JSON.
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let Ok(line) = serde_json::from_str::<Line>(line) else {
            unread += 1;
            continue;
        };
        has_begun = true;
        if line.reason == "build-finished" {
            success = line.success;
        }
        if let Some(message) = line.message {
            message.add_to(found);
        }
    }
    match (has_begun, success, unread) {
        (false, _, 0) => missing("cargo has said nothing"),
        (_, None, _) => truncated("it does not say how the build ended"),
        (_, Some(_), 1..) => broken(format!("{unread} lines are not what cargo writes")),
        (_, Some(false), 0) if found.diagnostic_counts().errors == 0 => {
            found.diagnostic(Place::default(), Severity::Error, "cargo says that the build failed");
            complete()
        }
        (_, Some(_), 0) => complete(),
    }
}

impl Message {
    fn add_to(&self, found: &mut Collector) {
        let severity = match self.level.as_str() {
            "error" | "error: internal compiler error" => Severity::Error,
            "warning" => Severity::Warning,
            _ => Severity::Note,
        };
        let span = self.spans.iter().find(|span| span.is_primary);
        let place = span.map_or_else(Place::default, |span| Place {
            file: Some(&span.file_name),
            line: Some(span.line_start),
            column: Some(span.column_start),
        });
        // How many there were, and where to read on, is no diagnostic.
        if span.is_some() || severity == Severity::Error {
            found.diagnostic(place, severity, &self.message);
        }
    }
}
