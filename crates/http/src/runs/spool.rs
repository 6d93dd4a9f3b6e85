//! What a run has written, numbered, for as long as somebody may ask for it.

use super::desk::{DeskOfRun, RunDesk};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{RichResult, RunEnd, RunEvent};
use cofferdam_control::{ArtifactDesk, Metrics, OutputSink, Phase, StepSink, Stream};
use cofferdam_telemetry::TRACE;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::watch;
use tracing::{Span, info_span};

/// One byte more than control keeps of a stream, so that it sees that there was more.
const MAX_BYTES: usize = cofferdam_core::OUTPUT_KEPT_BYTES + 1;

/// As many as control keeps of what a step shows.
const MAX_SHOWN: usize = 256;

/// Small pieces become one, up to this, while nobody has seen them.
const PIECE_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Spool {
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
}

/// Something that has happened to a run.
#[derive(Debug)]
enum Happening {
    Wrote(Stream, Vec<u8>),
    Started,
    /// The turn of a step has come.
    Begun,
    Shown(RichResult),
    /// It wants an artifact.
    Input {
        number: u64,
        artifact: String,
    },
    /// It leaves an artifact.
    Output {
        number: u64,
        path: String,
    },
}

#[derive(Debug, Default)]
struct Inner {
    happened: Vec<Happening>,
    kept: [usize; 2],
    shown: usize,
    shown_bytes: usize,
    /// How many of those somebody has seen: they do not change any more.
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
            let is_unseen = inner.happened.len() > inner.seen;
            match inner.happened.last_mut() {
                Some(Happening::Wrote(last, piece))
                    if is_unseen && *last == stream && piece.len() + taken <= PIECE_BYTES =>
                {
                    piece.extend_from_slice(bytes);
                }
                _ => inner.happened.push(Happening::Wrote(stream, bytes.to_vec())),
            }
        }
        self.tell();
    }

    /// One more than control keeps of what a step shows, so that it sees that there was more.
    fn show(&self, result: RichResult) {
        let bytes = serde_json::to_vec(&result).map_or(usize::MAX, |bytes| bytes.len());
        {
            let mut inner = self.inner();
            if inner.shown > MAX_SHOWN || inner.shown_bytes > MAX_BYTES {
                return;
            }
            inner.shown += 1;
            inner.shown_bytes = inner.shown_bytes.saturating_add(bytes);
            inner.happened.push(Happening::Shown(result));
        }
        self.tell();
    }

    fn note(&self, happening: Happening) {
        self.inner().happened.push(happening);
        self.tell();
    }

    /// The run wants an artifact.
    pub(super) fn ask(&self, number: u64, artifact: &str) {
        self.note(Happening::Input { number, artifact: artifact.to_owned() });
    }

    /// The run leaves an artifact. How many is bounded by whoever looks for them.
    pub(super) fn offer(&self, number: u64, path: &str) {
        self.note(Happening::Output { number, path: path.to_owned() });
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
        inner.happened.len() as u64 + u64::from(inner.end.is_some())
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
        let next = seq.checked_add(1)?;
        match inner.happened.get(at) {
            Some(happening) => {
                let event = on_the_wire(next, happening);
                inner.seen = inner.seen.max(at + 1);
                Some(event)
            }
            None if at == inner.happened.len() => {
                inner.end.clone().map(|end| RunEvent::End { seq: next, end })
            }
            None => None,
        }
    }
}

fn on_the_wire(seq: u64, happening: &Happening) -> RunEvent {
    match happening {
        Happening::Wrote(Stream::Stdout, bytes) => RunEvent::Stdout { seq, base64: STANDARD.encode(bytes) },
        Happening::Wrote(Stream::Stderr, bytes) => RunEvent::Stderr { seq, base64: STANDARD.encode(bytes) },
        Happening::Started => RunEvent::Started { seq },
        Happening::Begun => RunEvent::Begun { seq },
        Happening::Shown(result) => RunEvent::Shown { seq, result: result.clone() },
        Happening::Input { number, artifact } => {
            RunEvent::Input { seq, number: *number, artifact: artifact.clone() }
        }
        Happening::Output { number, path } => RunEvent::Output { seq, number: *number, path: path.clone() },
    }
}

/// The way of a run's words into a spool.
pub(super) struct Sink {
    spool: Arc<Spool>,
    desk: Arc<RunDesk>,
    /// The part of the run that is going on; the trace has it when it is dropped.
    #[allow(dead_code)] // held, not read
    part: Span,
    metrics: Arc<Metrics>,
    began: Instant,
    /// When its process ran.
    pub(super) started: Option<Instant>,
}

impl Sink {
    /// Made inside the span of the run.
    pub(super) fn new(spool: Arc<Spool>, desk: Arc<RunDesk>, metrics: Arc<Metrics>) -> Self {
        let part = info_span!(target: TRACE, "sandbox.start");
        Self { spool, desk, part, metrics, began: Instant::now(), started: None }
    }
}

#[async_trait]
impl OutputSink for Sink {
    fn started(&mut self) {
        self.part = info_span!(target: TRACE, "process");
        if self.started.is_none() {
            self.metrics.phase(Phase::SandboxStart, self.began.elapsed());
            self.started = Some(Instant::now());
        }
        self.spool.note(Happening::Started);
    }

    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        self.spool.push(stream, bytes);
    }

    /// What is kept is bounded, so nobody has to be waited for.
    async fn ready(&mut self) {}

    fn artifacts(&self) -> Option<Arc<dyn ArtifactDesk>> {
        Some(Arc::new(DeskOfRun(Arc::clone(&self.desk))))
    }
}

#[async_trait]
impl StepSink for Sink {
    async fn begun(&mut self) {
        self.spool.note(Happening::Begun);
    }

    fn show(&mut self, result: RichResult) {
        self.spool.show(result);
    }
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
