//! The output of something that runs on its way into the store: in pieces that are worth a write, up to a limit, and
//! never cut inside a character.

use crate::sessions::StepSeal;
use crate::worker::Stream;
use crate::{Control, ControlError, now_ms};
use cofferdam_core::CutCharacter;
use cofferdam_proof::{Digest, Hasher};
use cofferdam_store::{OutputEvent, OutputKind, OutputTail};
use cofferdam_turns::Handle;
use std::time::Duration;

/// Output is kept when there is so much of it, or after a while, whichever comes first.
const KEEP_BYTES: usize = 64 << 10;
const KEEP_AFTER: Duration = Duration::from_millis(100);

/// How much of each stream is kept where the request does not say. What comes after is dropped, and an event says so.
pub(crate) const MAX_BYTES: usize = cofferdam_core::OUTPUT_KEPT_BYTES;

/// By what right output is kept.
#[derive(Debug)]
pub(crate) enum Right {
    /// The fence of a claim on a job.
    Job { fence: i64 },
    /// The generation of a session's placement, and by what its output is sealed.
    Step { generation: i64, seal: Option<StepSeal> },
}

/// What was kept of a stream. The bytes go earlier than what wrote them, so this stays with it.
pub(crate) struct KeptStream {
    pub(crate) sha256: Digest,
    pub(crate) size_bytes: usize,
}

pub(crate) struct OutputLog {
    pub(crate) control: Control,
    pub(crate) id: String,
    pub(crate) handle: Handle,
    right: Right,
    next_seq: i64,
    waiting: Vec<OutputEvent>,
    waiting_bytes: usize,
    /// So many of those were tried to be kept, and may have been: they must not change any more.
    tried: usize,
    kept: [usize; 2],
    /// What comes once more of each stream, and is kept already.
    skip: [usize; 2],
    most: usize,
    /// Whether something of a stream was dropped; then nothing more of it is kept.
    is_full: [bool; 2],
    /// The beginning of a character whose end has not come yet.
    cut: [CutCharacter; 2],
    hashers: [Hasher; 2],
    since: tokio::time::Instant,
}

impl OutputLog {
    pub(crate) fn new(control: Control, id: String, right: Right, handle: Handle, most: usize) -> Self {
        Self {
            control,
            id,
            right,
            handle,
            next_seq: 1,
            waiting: Vec::new(),
            waiting_bytes: 0,
            tried: 0,
            kept: [0; 2],
            skip: [0; 2],
            most,
            is_full: [false; 2],
            cut: Default::default(),
            hashers: Default::default(),
            since: tokio::time::Instant::now(),
        }
    }

    /// Goes on after what another attempt, or another owner of this one, has kept.
    pub(crate) fn go_on(&mut self, tail: OutputTail, is_same_attempt: bool) {
        self.next_seq = tail.last_seq + 1;
        if is_same_attempt {
            self.skip = [tail.stdout_bytes as usize, tail.stderr_bytes as usize];
            self.kept = self.skip;
            // Whoever kept all that may be kept has said so.
            self.is_full = self.kept.map(|kept| kept >= self.most);
        }
    }

    pub(crate) fn add(&mut self, kind: OutputKind, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.waiting_bytes += bytes.len();
        let is_open = self.waiting.len() > self.tried;
        // What comes in many small pieces is one event for as long as nobody has seen it.
        if let Some(last) = self.waiting.last_mut()
            && is_open
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

    /// Whether something of stdout, and of stderr, was dropped.
    pub(crate) fn is_full(&self) -> [bool; 2] {
        self.is_full
    }

    /// What the streams were, and what of them is not in the store yet.
    pub(crate) fn into_kept(mut self) -> ([KeptStream; 2], Vec<OutputEvent>) {
        for (at, kind) in [OutputKind::Stdout, OutputKind::Stderr].into_iter().enumerate() {
            let rest = self.cut[at].end();
            self.add(kind, &rest);
        }
        let [out, err] = self.hashers;
        let [out_bytes, err_bytes] = self.kept;
        let kept = |hasher: Hasher, size_bytes| KeptStream { sha256: hasher.finish(), size_bytes };
        ([kept(out, out_bytes), kept(err, err_bytes)], self.waiting)
    }

    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) {
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
            // No event ends inside a character.
            let whole = self.cut[at].push(&bytes[..taken]);
            self.add(kind, &whole);
            self.hashers[at].update(&bytes[..taken]);
            self.kept[at] += taken;
        }
        if taken < bytes.len() && !self.is_full[at] {
            // Once for each stream: from here on nothing of it is kept.
            self.is_full[at] = true;
            let rest = self.cut[at].end();
            self.add(kind, &rest);
            self.add(OutputKind::Truncated, name.as_bytes());
        }
    }

    pub(crate) async fn ready(&mut self) {
        let is_due = self.waiting_bytes >= KEEP_BYTES || self.since.elapsed() >= KEEP_AFTER;
        if self.waiting.is_empty() || !is_due {
            return;
        }
        let events = self.waiting.clone();
        self.tried = events.len();
        let (store, id) = (&self.control.parts.store, self.id.clone());
        let kept = match &self.right {
            Right::Job { fence } => store.append_output(id, *fence, events).await.map_err(ControlError::from),
            Right::Step { generation, seal } => {
                let events = seal.as_ref().map_or(Ok(events.clone()), |seal| seal.output(&id, events));
                match events {
                    Ok(events) => {
                        store.append_step_output(id, *generation, events).await.map_err(ControlError::from)
                    }
                    Err(error) => Err(error),
                }
            }
        };
        // What could not be kept now goes with the next, or with the end.
        if kept.is_ok() {
            if matches!(self.right, Right::Job { .. }) {
                self.control.parts.feeds.tell_output(&self.id, &self.waiting);
            }
            self.waiting.clear();
            self.tried = 0;
            self.waiting_bytes = 0;
            self.handle.tell();
        }
        self.since = tokio::time::Instant::now();
    }
}
