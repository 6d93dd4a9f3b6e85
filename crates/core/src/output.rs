//! Bytes that a process wrote, kept up to a limit. They are hostile, and often not text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// How much of each of stdout and stderr a result keeps.
pub const OUTPUT_KEPT_BYTES: usize = 8 << 20;

/// What was kept of one stream. What came after the limit was read, counted and dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    pub bytes: Vec<u8>,
    pub dropped_bytes: u64,
}

impl CapturedOutput {
    /// Takes one read, keeping what still fits in `limit`.
    pub fn push(&mut self, chunk: &[u8], limit: usize) {
        let room = limit.saturating_sub(self.bytes.len()).min(chunk.len());
        self.bytes.extend_from_slice(&chunk[..room]);
        self.dropped_bytes += (chunk.len() - room) as u64;
    }

    pub fn truncated(&self) -> bool {
        self.dropped_bytes > 0
    }

    /// The text, with bytes that are not UTF-8 replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The exact bytes, where the text cannot show them.
    pub fn base64(&self) -> Option<String> {
        match std::str::from_utf8(&self.bytes) {
            Ok(_) => None,
            // A limit that falls inside a code point loses nothing but that code point.
            Err(error) if self.truncated() && error.error_len().is_none() => None,
            Err(_) => Some(STANDARD.encode(&self.bytes)),
        }
    }
}

/// The fields that one stream adds to a result.
#[derive(Debug, Serialize)]
pub(crate) struct StreamFields {
    pub(crate) text: String,
    pub(crate) base64: Option<String>,
    pub(crate) truncated: bool,
    pub(crate) dropped_bytes: u64,
}

impl From<&CapturedOutput> for StreamFields {
    fn from(output: &CapturedOutput) -> Self {
        Self {
            text: output.text(),
            base64: output.base64(),
            truncated: output.truncated(),
            dropped_bytes: output.dropped_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_past_the_limit_is_counted_and_marked() {
        let mut output = CapturedOutput::default();
        output.push(b"abcdef", 8);
        output.push(b"ghij", 8);
        output.push(b"k", 8);
        assert_eq!((output.text().as_str(), output.dropped_bytes), ("abcdefgh", 3));
        assert!(output.truncated());
    }

    #[test]
    fn bytes_that_are_not_text_have_an_exact_twin() {
        let mut output = CapturedOutput::default();
        output.push(b"a\xffb", 100);
        assert_eq!(output.text(), "a\u{fffd}b");
        assert_eq!(output.base64().as_deref(), Some("Yf9i"));
    }

    #[test]
    fn a_code_point_cut_by_the_limit_is_not_called_binary() {
        let mut output = CapturedOutput::default();
        output.push("aé".as_bytes(), 2);
        assert_eq!(output.base64(), None);
    }
}
