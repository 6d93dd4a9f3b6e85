//! The run of a job that this process has claimed, from the claim to its end in the store.

use crate::artifacts::{ArtifactDesk, Keeper};
use crate::dispatch::Room;
use crate::running::Handle;
use crate::worker::{OutputSink, RunEnd, Stream};
use crate::{Control, Phase, now_ms};
use async_trait::async_trait;
use cofferdam_api::JobRequest;
use cofferdam_core::{CutCharacter, JobId, JobState, Outcome, TaskId};
use cofferdam_proof::{Digest, Hasher};
use cofferdam_store::{AuditEvent, Finish, OutputEvent, OutputKind, StoreError};
use cofferdam_telemetry::TRACE;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{Instrument, Span, info_span};

/// Output is kept when there is so much of it, or after a while, whichever comes first.
const KEEP_BYTES: usize = 64 << 10;
const KEEP_AFTER: Duration = Duration::from_millis(100);

/// How much of each stream is kept where the request does not say. What comes after is dropped, and an event says so.
const MAX_BYTES: usize = cofferdam_core::OUTPUT_KEPT_BYTES;

/// How long the end of a job is tried to be written. A store that is away for longer is away.
const END_PATIENCE: Duration = Duration::from_secs(60);

impl Control {
    #[allow(clippy::too_many_arguments)] // they are one job's, and go nowhere else
    pub(crate) fn spawn_run(
        &self,
        id: String,
        tenant: String,
        task_id: String,
        fence: i64,
        request: Option<JobRequest>,
        handle: Handle,
        room: Room,
    ) {
        let control = self.clone();
        // A part of the trace of whoever asked, who may have gone by the time that it ends.
        let span = info_span!(target: TRACE, "job.run", job.id = id);
        let has_webhook = request.as_ref().is_some_and(|request| request.webhook.is_some());
        let task = async move {
            let asked = request.as_ref().and_then(|request| request.limits.output_bytes);
            let most = asked.map_or(MAX_BYTES, |bytes| MAX_BYTES.min(bytes as usize));
            let mut log = Log::new(control.clone(), id.clone(), tenant.clone(), fence, handle.clone(), most);
            let mut end = control.run(&id, &task_id, request, &handle, &mut log).await;
            // The room is free when the sandbox is gone, whatever the store says.
            drop(room);
            if matches!(&end, RunEnd::Errored { code: "sandbox_failed", .. }) {
                control.parts.trouble.notify_one();
            }
            if let (Some(keeper), RunEnd::Result(result)) = (&log.keeper, &mut end) {
                keeper.settle(result).await;
            }
            let span = info_span!(target: TRACE, "store.finish");
            let (kept, rest) = log.into_kept();
            control.finish(&id, tenant, fence, end, kept, rest).instrument(span).await;
            control.parts.running.remove(&id);
            control.parts.feeds.tell_end(&id);
            if has_webhook {
                control.parts.deliveries.wake();
            }
        };
        tokio::spawn(task.instrument(span));
    }

    async fn run(
        &self,
        id: &str,
        task_id: &str,
        request: Option<JobRequest>,
        handle: &Handle,
        log: &mut Log,
    ) -> RunEnd {
        let unreadable = |message: String| RunEnd::Errored { code: "unreadable", message };
        let Some(request) = request else {
            return unreadable("the request that was kept cannot be read".into());
        };
        let (job, task) = match (JobId::parse("id", id), TaskId::parse("task_id", task_id)) {
            (Ok(job), Ok(task)) => (job, task),
            (Err(error), _) | (_, Err(error)) => return unreadable(error.to_string()),
        };
        self.parts.worker.run(job, task, request, log, handle.cancel.subscribe()).await
    }

    /// Writes how a job ended. A store that fails is tried again for a while: the run itself cannot be repeated.
    async fn finish(
        &self,
        id: &str,
        tenant: String,
        fence: i64,
        end: RunEnd,
        kept: [KeptStream; 2],
        rest: Vec<OutputEvent>,
    ) {
        let began = Instant::now();
        let (state, reason, message, result) = self.describe(end, &kept);
        // A message may quote what the guest said, and no database keeps a NUL in a text.
        let message = message.map(|text| text.replace('\0', "\u{fffd}"));
        let event = AuditEvent {
            at_ms: now_ms(),
            kind: "job.finished",
            actor: "system".to_owned(),
            resource: id.to_owned(),
            details: details(state, reason.as_deref(), &self.parts.instance, result.as_ref()),
        };
        let finish = Finish {
            id: id.to_owned(),
            tenant,
            fence,
            state,
            reason,
            message,
            result: result.map(|result| result.to_string()),
            at_ms: event.at_ms,
        };
        // While the store is known to be away nothing new begins, so what waits here is what ran: no more than that.
        while began.elapsed() < END_PATIENCE || self.parts.gates.is_store_shut() {
            match self.parts.store.finish(finish.clone(), rest.clone(), event.clone()).await {
                Err(StoreError::Failed(_)) => tokio::time::sleep(KEEP_AFTER).await,
                _ => break,
            }
        }
        self.parts.metrics.phase(Phase::Finish, began.elapsed());
    }

    fn describe(&self, end: RunEnd, kept: &[KeptStream; 2]) -> Described {
        if let RunEnd::Result(result) = &end {
            self.parts.metrics.outcome(&result.outcome);
        }
        let described = describe(end, kept);
        if described.0 == JobState::Errored {
            let failed = Outcome::Failed { code: String::new(), message: String::new() };
            self.parts.metrics.outcome(&failed);
        }
        described
    }
}

/// What the audit says of an end: how and where, and what was kept of the output, but nothing that was written in it.
fn details(
    state: JobState,
    reason: Option<&str>,
    worker: &str,
    result: Option<&serde_json::Value>,
) -> serde_json::Value {
    let field = |name: &str| result.and_then(|result| result.get(name)).cloned().unwrap_or_default();
    let mut outcome = field("outcome");
    if let Some(object) = outcome.as_object_mut() {
        object.remove("message");
    }
    json!({
        "state": state, "reason": reason, "outcome": outcome, "exit_code": field("exit_code"),
        "worker": worker, "sandbox_id": field("sandbox_id"),
        "stdout_sha256": field("stdout_sha256"), "stderr_sha256": field("stderr_sha256"),
    })
}

type Described = (JobState, Option<String>, Option<String>, Option<serde_json::Value>);

/// The state, its reason, a message, and the result without the output, which is kept apart.
fn describe(end: RunEnd, kept: &[KeptStream; 2]) -> Described {
    let (state, reason, message, mut result) = match end {
        RunEnd::Errored { code, message } => {
            let outcome = Outcome::Failed { code: code.to_owned(), message: message.clone() };
            let result = json!({"exit_code": null, "outcome": outcome, "stdout": "", "stderr": ""});
            (JobState::Errored, Some(code.to_owned()), Some(message), result)
        }
        RunEnd::Result(result) => {
            let state = JobState::of(&result.outcome);
            let outcome = serde_json::to_value(&result.outcome).unwrap_or_default();
            let reason = outcome.get("kind").and_then(|kind| kind.as_str()).map(str::to_owned);
            let mut value = serde_json::to_value(&*result).unwrap_or_default();
            if let Some(object) = value.as_object_mut() {
                object.remove("stdout");
                object.remove("stderr");
            }
            (state, reason, message(&result.outcome), value)
        }
    };
    for (name, kept) in ["stdout", "stderr"].into_iter().zip(kept) {
        result[format!("{name}_sha256")] = json!(kept.sha256);
        result[format!("{name}_size_bytes")] = json!(kept.size_bytes);
    }
    (state, reason, message, Some(result))
}

/// What was kept of a stream. The bytes go earlier than the job, so this stays with it.
struct KeptStream {
    sha256: Digest,
    size_bytes: usize,
}

/// What happened, for people.
fn message(outcome: &Outcome) -> Option<String> {
    Some(match outcome {
        Outcome::Exited { code: 0 } => return None,
        Outcome::Exited { code } => format!("it exited with code {code}"),
        Outcome::Signaled { signal } => format!("it was ended by signal {signal}"),
        Outcome::TimedOut => "it ran out of time".to_owned(),
        Outcome::OomKilled => "it ran out of memory".to_owned(),
        Outcome::Cancelled { by } => format!("{by} cancelled it"),
        Outcome::Denied { rule } => format!("the rule {rule} stopped it"),
        Outcome::Expired => "its time was over before it began".to_owned(),
        Outcome::Lost => "nobody knows how it ended".to_owned(),
        Outcome::Failed { message, .. } => message.clone(),
    })
}

/// A job's output on its way into the store.
struct Log {
    control: Control,
    id: String,
    fence: i64,
    handle: Handle,
    keeper: Option<Arc<Keeper>>,
    next_seq: i64,
    waiting: Vec<OutputEvent>,
    waiting_bytes: usize,
    /// So many of those were tried to be kept, and may have been: they must not change any more.
    tried: usize,
    kept: [usize; 2],
    most: usize,
    /// Whether something of a stream was dropped; then nothing more of it is kept.
    is_full: [bool; 2],
    /// The beginning of a character whose end has not come yet.
    cut: [CutCharacter; 2],
    hashers: [Hasher; 2],
    since: tokio::time::Instant,
    phase: PhaseSpan,
}

/// The part of a run that is being timed.
struct PhaseSpan {
    phase: Phase,
    began: Instant,
    /// Held while it lasts; the trace has it when it is dropped.
    _span: Span,
}

impl PhaseSpan {
    fn begin(phase: Phase) -> Self {
        let span = match phase {
            Phase::Run => info_span!(target: TRACE, "process"),
            _ => info_span!(target: TRACE, "sandbox.start"),
        };
        Self { phase, began: Instant::now(), _span: span }
    }
}

impl Log {
    fn new(control: Control, id: String, tenant: String, fence: i64, handle: Handle, most: usize) -> Self {
        let keeper =
            control.artifacts().is_ok().then(|| Keeper::new(control.clone(), tenant, id.clone(), fence));
        Self {
            keeper: keeper.map(Arc::new),
            control,
            id,
            fence,
            handle,
            next_seq: 1,
            waiting: Vec::new(),
            waiting_bytes: 0,
            tried: 0,
            kept: [0; 2],
            most,
            is_full: [false; 2],
            cut: Default::default(),
            hashers: Default::default(),
            since: tokio::time::Instant::now(),
            phase: PhaseSpan::begin(Phase::SandboxStart),
        }
    }

    fn add(&mut self, kind: OutputKind, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.waiting_bytes += bytes.len();
        let is_open = self.waiting.len() > self.tried;
        // What comes in many small pieces is one event for as long as nobody has seen it.
        if let Some(last) = self.waiting.last_mut()
            && is_open
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
    fn into_kept(mut self) -> ([KeptStream; 2], Vec<OutputEvent>) {
        self.control.parts.metrics.phase(self.phase.phase, self.phase.began.elapsed());
        for (at, kind) in [OutputKind::Stdout, OutputKind::Stderr].into_iter().enumerate() {
            let rest = self.cut[at].end();
            self.add(kind, &rest);
        }
        let [out, err] = self.hashers;
        let [out_bytes, err_bytes] = self.kept;
        let kept = |hasher: Hasher, size_bytes| KeptStream { sha256: hasher.finish(), size_bytes };
        ([kept(out, out_bytes), kept(err, err_bytes)], self.waiting)
    }
}

#[async_trait]
impl OutputSink for Log {
    fn started(&mut self) {
        if self.phase.phase == Phase::SandboxStart {
            self.control.parts.metrics.phase(Phase::SandboxStart, self.phase.began.elapsed());
            self.phase = PhaseSpan::begin(Phase::Run);
        }
    }

    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let (at, kind, name) = match stream {
            Stream::Stdout => (0, OutputKind::Stdout, "stdout"),
            Stream::Stderr => (1, OutputKind::Stderr, "stderr"),
        };
        let room = self.most - self.kept[at];
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

    async fn ready(&mut self) {
        let is_due = self.waiting_bytes >= KEEP_BYTES || self.since.elapsed() >= KEEP_AFTER;
        if self.waiting.is_empty() || !is_due {
            return;
        }
        let events = self.waiting.clone();
        self.tried = events.len();
        // What could not be kept now goes with the next, or with the end.
        if self.control.parts.store.append_output(self.id.clone(), self.fence, events).await.is_ok() {
            self.control.parts.feeds.tell_output(&self.id, &self.waiting);
            self.waiting.clear();
            self.tried = 0;
            self.waiting_bytes = 0;
            self.handle.tell();
        }
        self.since = tokio::time::Instant::now();
    }

    fn artifacts(&self) -> Option<Arc<dyn ArtifactDesk>> {
        self.keeper.clone().map(|keeper| keeper as _)
    }
}
