//! What an interpreter says: frames of a line and a body.
//!
//! The line is the frame's kind and the length of its body, `end 42`. Whoever writes them may be hostile, so each
//! is bounded before it is waited for, and what is not exactly a frame ends the kernel.

use crate::cell::{CellError, ResultKind, RichResult};
use serde::Deserialize;
use std::collections::BTreeMap;
use thiserror::Error;

/// A picture or a large table in one result; more than this is not looked at by people.
pub const FRAME_MAX_BYTES: usize = 16 << 20;

/// `display 16777216` and room to spare.
const LINE_MAX_BYTES: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// It waits for its first cell.
    Ready {
        version: String,
    },
    Shown(RichResult),
    End(End),
}

/// How a cell ended, by the interpreter's own word.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    #[serde(default)]
    pub interrupted: bool,
    #[serde(default)]
    pub exit_code: Option<i32>,
    #[serde(default)]
    pub error: Option<CellError>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ready {
    version: String,
}

/// What is not a frame.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    #[error("a frame begins with {0:?}, which is not a kind and a length")]
    Line(String),
    #[error("a frame of {0} bytes is longer than {FRAME_MAX_BYTES}")]
    TooLong(usize),
    #[error("a frame's body is not what its kind says: {0}")]
    Body(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ready,
    Result,
    Display,
    End,
}

/// Cuts bytes into frames. Holds at most one frame, and what came in one read behind it.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// The frame whose line has been read.
    body: Option<(Kind, usize)>,
}

impl Frames {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// How much it holds.
    pub fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The next frame that has come whole. After an error nothing that follows means anything.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let (kind, length) = match self.body {
            Some(known) => known,
            None => match self.line()? {
                Some(line) => *self.body.insert(line),
                None => return Ok(None),
            },
        };
        if self.bytes.len() < length {
            return Ok(None);
        }
        self.body = None;
        let rest = self.bytes.split_off(length);
        let body = std::mem::replace(&mut self.bytes, rest);
        decode(kind, &body).map(Some).map_err(|error| FrameError::Body(error.to_string()))
    }

    fn line(&mut self) -> Result<Option<(Kind, usize)>, FrameError> {
        let head = &self.bytes[..self.bytes.len().min(LINE_MAX_BYTES)];
        let refuse = |line: &[u8]| FrameError::Line(String::from_utf8_lossy(line).into_owned());
        let Some(end) = head.iter().position(|byte| *byte == b'\n') else {
            return if head.len() == LINE_MAX_BYTES { Err(refuse(head)) } else { Ok(None) };
        };
        let line = &head[..end];
        let wrong = || refuse(line);
        let text = std::str::from_utf8(line).map_err(|_| wrong())?;
        let (kind, length) = text.split_once(' ').ok_or_else(wrong)?;
        let kind = match kind {
            "ready" => Kind::Ready,
            "result" => Kind::Result,
            "display" => Kind::Display,
            "end" => Kind::End,
            _ => return Err(wrong()),
        };
        let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length: usize = length.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
        if length > FRAME_MAX_BYTES {
            return Err(FrameError::TooLong(length));
        }
        self.bytes.drain(..=end);
        Ok(Some((kind, length)))
    }
}

fn decode(kind: Kind, body: &[u8]) -> Result<Frame, serde_json::Error> {
    let shown = |kind| {
        let data: BTreeMap<String, String> = serde_json::from_slice(body)?;
        Ok(Frame::Shown(RichResult { kind, data }))
    };
    match kind {
        Kind::Ready => Ok(Frame::Ready { version: serde_json::from_slice::<Ready>(body)?.version }),
        Kind::Result => shown(ResultKind::Result),
        Kind::Display => shown(ResultKind::Display),
        Kind::End => Ok(Frame::End(serde_json::from_slice(body)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8], piece: usize) -> (Vec<Frame>, Option<FrameError>) {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for part in bytes.chunks(piece.max(1)) {
            frames.push(part);
            loop {
                match frames.next_frame() {
                    Ok(Some(frame)) => found.push(frame),
                    Ok(None) => break,
                    Err(error) => return (found, Some(error)),
                }
            }
        }
        (found, None)
    }

    fn frame(kind: &str, body: &str) -> Vec<u8> {
        format!("{kind} {}\n{body}", body.len()).into_bytes()
    }

    #[test]
    fn frames_come_out_as_they_went_in() {
        let bytes = [
            frame("ready", r#"{"version":"3.11.2"}"#),
            frame("result", r#"{"text/plain":"1\n2","text/html":"<b>"}"#),
            frame("display", "{}"),
            frame("end", r#"{"error":{"name":"E","value":"a\nb","traceback":["x"]}}"#),
            frame("end", r#"{"exit_code":3,"interrupted":true}"#),
        ]
        .concat();
        let (found, error) = all(&bytes, 7);
        assert_eq!(error, None);
        assert_eq!(found.len(), 5);
        assert_eq!(found[0], Frame::Ready { version: "3.11.2".into() });
        let Frame::Shown(shown) = &found[1] else { panic!("{found:?}") };
        assert_eq!((shown.kind, shown.data["text/plain"].as_str()), (ResultKind::Result, "1\n2"));
        let Frame::End(end) = &found[3] else { panic!("{found:?}") };
        assert_eq!(end.error.as_ref().unwrap().value, "a\nb");
        assert_eq!(found[4], Frame::End(End { interrupted: true, exit_code: Some(3), error: None }));
    }

    #[test]
    fn what_is_no_frame_is_refused_before_it_is_waited_for() {
        for line in ["end\n", "end x\n", "end -1\n", "end +1\n", "end  1\n", "other 1\n", "\n", "end 1 \n"] {
            assert!(matches!(all(line.as_bytes(), 99).1, Some(FrameError::Line(_))), "{line:?}");
        }
        // No line end where it must have come.
        assert!(matches!(all(&[b'e'; LINE_MAX_BYTES], 1).1, Some(FrameError::Line(_))));
        assert!(matches!(all(b"end 99999999999999999999\n", 1).1, Some(FrameError::Line(_))));
        assert_eq!(all(b"result 16777217\n", 1).1, Some(FrameError::TooLong(16_777_217)));
        for (kind, body) in [
            ("end", "{"),
            ("end", r#"{"other":1}"#),
            ("result", r#"{"text/plain":1}"#),
            ("result", "[]"),
            ("ready", "{}"),
            ("end", "\u{0}"),
        ] {
            assert!(matches!(all(&frame(kind, body), 99).1, Some(FrameError::Body(_))), "{kind} {body}");
        }
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_say_the_same(bytes in proptest::collection::vec(any::<u8>(), 0..200), piece in 1..50usize) {
            prop_assert_eq!(all(&bytes, piece), all(&bytes, 1));
        }

        #[test]
        fn text_survives(values in proptest::collection::btree_map(".{0,20}", ".{0,200}", 0..4), piece in 1..50usize) {
            let body = serde_json::to_string(&values).unwrap();
            let bytes = [frame("display", &body), frame("end", "{}")].concat();
            let (found, error) = all(&bytes, piece);
            prop_assert_eq!(error, None);
            let shown = RichResult { kind: ResultKind::Display, data: values };
            prop_assert_eq!(found, vec![Frame::Shown(shown), Frame::End(End::default())]);
        }
    }
}
