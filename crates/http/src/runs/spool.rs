//! What a run has written, numbered, for as long as somebody may ask for it.

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{RunEnd, RunEvent};
use cofferdam_control::{OutputSink, Stream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// One byte more than control keeps of a stream, so that it sees that there was more.
const MAX_BYTES: usize = cofferdam_core::OUTPUT_KEPT_BYTES + 1;

/// Small pieces become one, up to this, while nobody has seen them.
const PIECE_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Spool {
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    pieces: Vec<(Stream, Vec<u8>)>,
    kept: [usize; 2],
    /// How many pieces somebody has seen: those do not change any more.
    seen: usize,
    end: Option<RunEnd>,
}

impl Spool {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { inner: Mutex::default(), changed: watch::Sender::new(0) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, stream: Stream, bytes: &[u8]) {
        {
            let mut inner = self.inner();
            let at = usize::from(stream == Stream::Stderr);
            let taken = bytes.len().min(MAX_BYTES - inner.kept[at]);
            if taken == 0 {
                return;
            }
            inner.kept[at] += taken;
            let bytes = &bytes[..taken];
            let is_unseen = inner.pieces.len() > inner.seen;
            match inner.pieces.last_mut() {
                Some((last, piece)) if is_unseen && *last == stream && piece.len() + taken <= PIECE_BYTES => {
                    piece.extend_from_slice(bytes);
                }
                _ => inner.pieces.push((stream, bytes.to_vec())),
            }
        }
        self.tell();
    }

    pub(super) fn end(&self, end: RunEnd) {
        self.inner().end = Some(end);
        self.tell();
    }

    pub(super) fn is_ended(&self) -> bool {
        self.inner().end.is_some()
    }

    pub(super) fn last_seq(&self) -> u64 {
        let inner = self.inner();
        inner.pieces.len() as u64 + u64::from(inner.end.is_some())
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Wakes whoever follows.
    pub(super) fn tell(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// The event after a number, if it has happened.
    pub(super) fn after(&self, seq: u64) -> Option<RunEvent> {
        let mut inner = self.inner();
        let at = usize::try_from(seq).ok()?;
        match inner.pieces.get(at) {
            Some((stream, bytes)) => {
                let (seq, base64) = (seq + 1, STANDARD.encode(bytes));
                let event = match stream {
                    Stream::Stdout => RunEvent::Stdout { seq, base64 },
                    Stream::Stderr => RunEvent::Stderr { seq, base64 },
                };
                inner.seen = inner.seen.max(at + 1);
                Some(event)
            }
            None if at == inner.pieces.len() => {
                inner.end.clone().map(|end| RunEvent::End { seq: seq + 1, end })
            }
            None => None,
        }
    }
}

/// The way of output into a spool.
pub(super) struct Sink(pub(super) Arc<Spool>);

#[async_trait]
impl OutputSink for Sink {
    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        self.0.push(stream, bytes);
    }

    /// What is kept is bounded, so nobody has to be waited for.
    async fn ready(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(event: Option<RunEvent>) -> Option<(u64, Vec<u8>)> {
        match event {
            Some(RunEvent::Stdout { seq, base64 } | RunEvent::Stderr { seq, base64 }) => {
                Some((seq, STANDARD.decode(base64).unwrap()))
            }
            _ => None,
        }
    }

    #[test]
    fn what_was_seen_does_not_change_and_what_was_not_is_gathered() {
        let spool = Spool::new();
        spool.push(Stream::Stdout, b"a");
        spool.push(Stream::Stdout, b"b");
        assert_eq!(bytes(spool.after(0)), Some((1, b"ab".to_vec())));
        spool.push(Stream::Stdout, b"c");
        assert_eq!(bytes(spool.after(0)), Some((1, b"ab".to_vec())));
        assert_eq!(bytes(spool.after(1)), Some((2, b"c".to_vec())));
        assert_eq!(spool.after(2), None);
        let end = RunEnd::Errored { code: "x".into(), message: "y".into() };
        spool.end(end.clone());
        assert_eq!(spool.after(2), Some(RunEvent::End { seq: 3, end }));
        assert_eq!((spool.after(3), spool.after(u64::MAX)), (None, None));
    }

    #[test]
    fn a_flood_is_bounded_and_known_to_be_one() {
        let spool = Spool::new();
        for _ in 0..10 {
            spool.push(Stream::Stderr, &vec![b'x'; 1 << 20]);
        }
        let mut total = 0;
        let mut seq = 0;
        while let Some((next, piece)) = bytes(spool.after(seq)) {
            (seq, total) = (next, total + piece.len());
        }
        assert_eq!(total, cofferdam_core::OUTPUT_KEPT_BYTES + 1);
    }
}
