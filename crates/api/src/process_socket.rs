//! What is said over a process's WebSocket: output in binary frames, everything else as JSON in text frames.

use crate::{ErrorCode, ProcessView};
use serde::{Deserialize, Serialize};

/// From the client. A binary frame is input as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToProcess {
    /// What the process reads.
    Input {
        text: String,
    },
    /// Nothing more comes for it to read. A terminal is told by its own sign for that.
    CloseInput {},
    Resize {
        rows: u16,
        columns: u16,
    },
    Signal {
        signal: i32,
    },
}

/// From the server. `exit`, or an `error` that is the last, comes before every close.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromProcess {
    /// The first message: how it stands.
    Attached { process: ProcessView },
    /// What was before this number was dropped, and was not seen.
    Truncated { seq: u64 },
    /// How it ended; all of its output came before.
    Exit { process: ProcessView },
    Error {
        code: ErrorCode,
        message: String,
        /// Whether the connection ends with it.
        is_last: bool,
    },
}

/// A piece of output, in a binary frame: one byte for the stream, eight for the number (the most significant first),
/// then the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFrame {
    pub seq: u64,
    pub is_stderr: bool,
    pub bytes: Vec<u8>,
}

const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const HEAD: usize = 9;

impl OutputFrame {
    pub fn encode(&self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(HEAD + self.bytes.len());
        frame.push(if self.is_stderr { STDERR } else { STDOUT });
        frame.extend_from_slice(&self.seq.to_be_bytes());
        frame.extend_from_slice(&self.bytes);
        frame
    }

    pub fn decode(frame: &[u8]) -> Result<Self, String> {
        let Some((head, bytes)) = frame.split_first_chunk::<HEAD>() else {
            return Err(format!("a frame of {} bytes; one of output has at least {HEAD}", frame.len()));
        };
        let [kind, seq @ ..] = *head;
        let is_stderr = match kind {
            STDOUT => false,
            STDERR => true,
            other => return Err(format!("a frame of kind {other}; output is 1 or 2")),
        };
        Ok(Self { seq: u64::from_be_bytes(seq), is_stderr, bytes: bytes.to_vec() })
    }
}

/// The ways in which such a connection is closed. What a client does about it is the reason for the number.
pub mod close_code {
    /// The process has ended, and `exit` said how; or the folder has, and `gone` said so.
    pub const ENDED: u16 = 1000;
    /// The server stops: connect again, from the next number.
    pub const GOING: u16 = 1001;
    /// What came cannot be read.
    pub const UNREADABLE: u16 = 1002;
    /// The key or ticket is not valid any more, or whoever came may not do this.
    pub const REFUSED: u16 = 1008;
    pub const TOO_LARGE: u16 = 1009;
    /// Something failed: the last message says what.
    pub const FAILED: u16 = 1011;
}

impl ToProcess {
    /// Reads a text frame, or says what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| {
            format!("not a message ({error}); they are input, close_input, resize and signal, by `type`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_and_what_is_none_is_named() {
        let read = |text: &str| ToProcess::read(text);
        assert_eq!(read(r#"{"type":"input","text":"ls\n"}"#), Ok(ToProcess::Input { text: "ls\n".into() }));
        assert_eq!(read(r#"{"type":"close_input"}"#), Ok(ToProcess::CloseInput {}));
        assert_eq!(
            read(r#"{"type":"resize","rows":1,"columns":2}"#),
            Ok(ToProcess::Resize { rows: 1, columns: 2 })
        );
        for wrong in [
            "",
            "ls",
            "[]",
            "null",
            "{}",
            r#"{"type":"exit"}"#,
            r#"{"type":"attached"}"#,
            r#"{"type":1}"#,
            r#"{"type":"input"}"#,
            r#"{"type":"input","text":null}"#,
            r#"{"type":"input","text":"a","more":1}"#,
            r#"{"type":"close_input","more":1}"#,
            r#"{"type":"resize","rows":-1,"columns":2}"#,
            r#"{"type":"resize","rows":65536,"columns":2}"#,
            r#"{"type":"resize","rows":1.5,"columns":2}"#,
            r#"{"type":"signal","signal":"KILL"}"#,
            r#"{"type":"signal","signal":9,"type":"input"}"#,
            "{\"type\":\"input\",\"text\":\"\\ud800\"}",
        ] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.contains("close_input, resize and signal"), "{wrong}: {error}");
        }
        assert!(read(&"[".repeat(100_000)).is_err(), "depth is limited");
    }

    #[test]
    fn output_frames_come_back_as_they_were() {
        for (is_stderr, bytes) in [(false, &b""[..]), (true, b"\xff\x00x")] {
            let frame = OutputFrame { seq: u64::MAX - 1, is_stderr, bytes: bytes.to_vec() };
            assert_eq!(OutputFrame::decode(&frame.encode()), Ok(frame));
        }
        for wrong in
            [&b""[..], b"\x01", b"\x01\0\0\0\0\0\0\0", b"\x00\0\0\0\0\0\0\0\x01x", b"\x03\0\0\0\0\0\0\0\x01"]
        {
            assert!(OutputFrame::decode(wrong).is_err(), "{wrong:?}");
        }
    }
}
