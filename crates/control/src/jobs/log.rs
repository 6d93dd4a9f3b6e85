//! The output of a running job on its way into the store.

use super::run::KeptStream;
use crate::running::Handle;
use crate::worker::{OutputSink, Stream};
use crate::{Control, now_ms};
use async_trait::async_trait;
use cofferdam_proof::Hasher;
use cofferdam_store::{OutputEvent, OutputKind, OutputTail};
use std::time::Duration;

/// Output is kept when there is so much of it, or after a while, whichever comes first.
const KEEP_BYTES: usize = 64 << 10;
const KEEP_AFTER: Duration = Duration::from_millis(100);

/// How much of each stream is kept where the request does not say. What comes after is dropped, and an event says so.
pub(super) const MAX_BYTES: usize = cofferdam_core::OUTPUT_KEPT_BYTES;

/// A job's output on its way into the store.
pub(super) struct Log {
    control: Control,
    id: String,
    fence: i64,
    handle: Handle,
    next_seq: i64,
    waiting: Vec<OutputEvent>,
    waiting_bytes: usize,
    kept: [usize; 2],
    /// What comes once more of each stream, and is kept already.
    skip: [usize; 2],
    most: usize,
    is_cut: [bool; 2],
    hashers: [Hasher; 2],
    since: tokio::time::Instant,
}

impl Log {
    pub(super) fn new(control: Control, id: String, fence: i64, handle: Handle, most: usize) -> Self {
        Self {
            control,
            id,
            fence,
            handle,
            next_seq: 1,
            waiting: Vec::new(),
            waiting_bytes: 0,
            kept: [0; 2],
            skip: [0; 2],
            most,
            is_cut: [false; 2],
            hashers: Default::default(),
            since: tokio::time::Instant::now(),
        }
    }

    /// Goes on after what another attempt, or another owner of this one, has kept.
    pub(super) fn go_on(&mut self, tail: OutputTail, is_same_attempt: bool) {
        self.next_seq = tail.last_seq + 1;
        if is_same_attempt {
            self.skip = [tail.stdout_bytes as usize, tail.stderr_bytes as usize];
            self.kept = self.skip;
            // Whoever kept all that may be kept has said so.
            self.is_cut = self.kept.map(|kept| kept >= self.most);
        }
    }

    fn add(&mut self, kind: OutputKind, bytes: &[u8]) {
        self.waiting_bytes += bytes.len();
        // What comes in many small pieces is one event for as long as nobody has seen it.
        if let Some(last) = self.waiting.last_mut()
            && last.kind == kind
            && kind != OutputKind::Truncated
            && last.bytes.len() + bytes.len() <= KEEP_BYTES
        {
            last.bytes.extend_from_slice(bytes);
            return;
        }
        self.waiting.push(OutputEvent { seq: self.next_seq, kind, at_ms: now_ms(), bytes: bytes.to_vec() });
        self.next_seq += 1;
    }

    /// What the streams were, and what of them is not in the store yet.
    pub(super) fn into_kept(self) -> ([KeptStream; 2], Vec<OutputEvent>) {
        let [out, err] = self.hashers;
        let [out_bytes, err_bytes] = self.kept;
        let kept = |hasher: Hasher, size_bytes| KeptStream { sha256: hasher.finish(), size_bytes };
        ([kept(out, out_bytes), kept(err, err_bytes)], self.waiting)
    }
}

#[async_trait]
impl OutputSink for Log {
    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let (at, kind, name) = match stream {
            Stream::Stdout => (0, OutputKind::Stdout, "stdout"),
            Stream::Stderr => (1, OutputKind::Stderr, "stderr"),
        };
        let known = self.skip[at].min(bytes.len());
        self.skip[at] -= known;
        // What is kept already is a part of the whole, too.
        self.hashers[at].update(&bytes[..known]);
        let bytes = &bytes[known..];
        let room = self.most.saturating_sub(self.kept[at]);
        let taken = room.min(bytes.len());
        if taken > 0 {
            self.add(kind, &bytes[..taken]);
            self.hashers[at].update(&bytes[..taken]);
            self.kept[at] += taken;
        }
        if taken < bytes.len() && !self.is_cut[at] {
            // Once for each stream: from here on nothing of it is kept.
            self.is_cut[at] = true;
            self.add(OutputKind::Truncated, name.as_bytes());
        }
    }

    async fn ready(&mut self) {
        let is_due = self.waiting_bytes >= KEEP_BYTES || self.since.elapsed() >= KEEP_AFTER;
        if self.waiting.is_empty() || !is_due {
            return;
        }
        let events = self.waiting.clone();
        // What could not be kept now goes with the next, or with the end.
        if self.control.parts.store.append_output(self.id.clone(), self.fence, events).await.is_ok() {
            self.waiting.clear();
            self.waiting_bytes = 0;
            self.handle.tell();
        }
        self.since = tokio::time::Instant::now();
    }
}
