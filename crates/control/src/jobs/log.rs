//! The output of a running job on its way into the store.

use super::run::KeptStream;
use crate::running::Handle;
use crate::session_worker::StepSink;
use crate::worker::{OutputSink, Stream};
use crate::{Control, now_ms};
use async_trait::async_trait;
use cofferdam_api::RichResult;
use cofferdam_proof::Hasher;
use cofferdam_store::{OutputEvent, OutputKind, OutputTail};
use std::time::Duration;

/// Output is kept when there is so much of it, or after a while, whichever comes first.
const KEEP_BYTES: usize = 64 << 10;
const KEEP_AFTER: Duration = Duration::from_millis(100);

/// How much of each stream is kept where the request does not say. What comes after is dropped, and an event says so.
pub(crate) const MAX_BYTES: usize = cofferdam_core::OUTPUT_KEPT_BYTES;

/// What is shown takes no more than this in all, and no more than so many pieces.
const MAX_SHOWN_BYTES: usize = MAX_BYTES;
const MAX_SHOWN: usize = 256;

/// By what right output is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keeper {
    Job { fence: i64 },
    Step { generation: i64, is_queued: bool },
}

/// The output of a job, or of a step, on its way into the store.
pub(crate) struct Log {
    control: Control,
    id: String,
    keeper: Keeper,
    handle: Handle,
    next_seq: i64,
    waiting: Vec<OutputEvent>,
    waiting_bytes: usize,
    kept: [usize; 2],
    /// What comes once more of each stream, and is kept already.
    skip: [usize; 2],
    most: usize,
    is_cut: [bool; 2],
    shown: usize,
    shown_bytes: usize,
    is_shown_cut: bool,
    hashers: [Hasher; 2],
    since: tokio::time::Instant,
}

impl Log {
    pub(crate) fn new(control: Control, id: String, keeper: Keeper, handle: Handle, most: usize) -> Self {
        Self {
            control,
            id,
            keeper,
            handle,
            next_seq: 1,
            waiting: Vec::new(),
            waiting_bytes: 0,
            kept: [0; 2],
            skip: [0; 2],
            most,
            is_cut: [false; 2],
            shown: 0,
            shown_bytes: 0,
            is_shown_cut: false,
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
            && matches!(kind, OutputKind::Stdout | OutputKind::Stderr)
            && last.bytes.len() + bytes.len() <= KEEP_BYTES
        {
            last.bytes.extend_from_slice(bytes);
            return;
        }
        self.waiting.push(OutputEvent { seq: self.next_seq, kind, at_ms: now_ms(), bytes: bytes.to_vec() });
        self.next_seq += 1;
    }

    /// Whether something was dropped: of stdout, of stderr, of what was shown.
    pub(crate) fn cut(&self) -> (bool, bool, bool) {
        (self.is_cut[0], self.is_cut[1], self.is_shown_cut)
    }

    /// What the streams were, and what of them is not in the store yet.
    pub(crate) fn into_kept(self) -> ([KeptStream; 2], Vec<OutputEvent>) {
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
        let (store, id) = (&self.control.parts.store, self.id.clone());
        let kept = match self.keeper {
            Keeper::Job { fence } => store.append_output(id, fence, events).await,
            Keeper::Step { generation, .. } => store.append_step_output(id, generation, events).await,
        };
        if kept.is_ok() {
            self.waiting.clear();
            self.waiting_bytes = 0;
            self.handle.tell();
        }
        self.since = tokio::time::Instant::now();
    }
}

#[async_trait]
impl StepSink for Log {
    async fn begun(&mut self) {
        let Keeper::Step { generation, is_queued: true } = self.keeper else { return };
        // One that is not noted as running now is noted as ended later.
        let _ = self.control.parts.store.begin_step(self.id.clone(), generation, now_ms()).await;
        self.handle.tell();
    }

    fn show(&mut self, result: RichResult) {
        let Ok(bytes) = serde_json::to_vec(&result) else { return };
        if self.shown >= MAX_SHOWN || self.shown_bytes + bytes.len() > MAX_SHOWN_BYTES {
            self.is_shown_cut = true;
            return;
        }
        self.shown += 1;
        self.shown_bytes += bytes.len();
        self.add(OutputKind::Display, &bytes);
    }
}
