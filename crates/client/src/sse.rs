//! Server-sent events, as far as this interface uses them: name, id and one or more lines of data.

/// An event that came whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RawEvent {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// A result carries all that a job wrote, at most 16 MiB, in which a byte can take six to write.
const MAX_EVENT_BYTES: usize = 128 << 20;

/// Takes bytes as they come, and gives events when they are whole.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    event: RawEvent,
    has_data: bool,
    bytes: usize,
}

impl Parser {
    /// The events that these bytes complete; an error if one is larger than any can be.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<RawEvent>, String> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.bytes += piece.len();
            if self.bytes > MAX_EVENT_BYTES {
                return Err(format!("an event of more than {MAX_EVENT_BYTES} bytes"));
            }
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                events.extend(self.take(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r'])));
            }
        }
        Ok(events)
    }

    fn take(&mut self, line: &str) -> Option<RawEvent> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            self.bytes = 0;
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.name = value.to_owned(),
            "id" => self.event.id = Some(value.to_owned()),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(value);
            }
            // Comments keep the connection alive; other fields are not ours.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        ": hello\r\n\r\nevent: init\nid: 0\ndata: {}\n\nevent: stdout\nid:1\ndata: a\ndata:  b\n\n:\n\n";

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut() {
        let whole = Parser::default().push(TEXT.as_bytes()).unwrap();
        assert_eq!(whole.len(), 2);
        assert_eq!(whole[1].data, "a\n b");
        assert_eq!((whole[1].name.as_str(), whole[1].id.as_deref()), ("stdout", Some("1")));
        for cut in 0..TEXT.len() {
            let mut parser = Parser::default();
            let mut events = parser.push(&TEXT.as_bytes()[..cut]).unwrap();
            events.extend(parser.push(&TEXT.as_bytes()[cut..]).unwrap());
            assert_eq!(events, whole, "cut at {cut}");
        }
    }

    #[test]
    fn an_event_that_was_cut_off_is_none() {
        assert!(Parser::default().push(b"event: stdout\nid: 1\ndata: x\n").unwrap().is_empty());
    }
}
