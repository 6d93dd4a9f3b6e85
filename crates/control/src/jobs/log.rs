//! What a running job tells: its output on its way into the store, when it begins, and where its artifacts go.

use crate::artifacts::{ArtifactDesk, Keeper, Owner};
use crate::output_log::{KeptStream, OutputLog, Right};
use crate::worker::{OutputSink, Stream};
use crate::{Control, Phase};
use async_trait::async_trait;
use cofferdam_store::{OutputEvent, OutputTail};
use cofferdam_telemetry::TRACE;
use cofferdam_turns::Handle;
use std::sync::Arc;
use std::time::Instant;
use tracing::{Span, info_span};

/// A job's output on its way into the store.
pub(super) struct Log {
    output: OutputLog,
    pub(super) keeper: Option<Arc<Keeper>>,
    phase: PhaseSpan,
    is_elsewhere: bool,
}

/// The part of a run that is being timed.
struct PhaseSpan {
    phase: Phase,
    began: Instant,
    /// Held while it lasts; the trace has it when it is dropped.
    _span: Span,
}

impl PhaseSpan {
    /// A worker elsewhere has spans of its own for what it does.
    fn begin(phase: Phase, is_elsewhere: bool) -> Self {
        let span = match phase {
            _ if is_elsewhere => Span::none(),
            Phase::Run => info_span!(target: TRACE, "process"),
            _ => info_span!(target: TRACE, "sandbox.start"),
        };
        Self { phase, began: Instant::now(), _span: span }
    }
}

impl Log {
    pub(super) fn new(
        control: Control,
        id: String,
        tenant: String,
        fence: i64,
        handle: Handle,
        most: usize,
        is_elsewhere: bool,
    ) -> Self {
        let owner = Owner::Job { id: id.clone(), fence };
        let keeper = control.artifacts().is_ok().then(|| Keeper::new(control.clone(), tenant, owner));
        Self {
            keeper: keeper.map(Arc::new),
            output: OutputLog::new(control, id, Right::Job { fence }, handle, most),
            phase: PhaseSpan::begin(Phase::SandboxStart, is_elsewhere),
            is_elsewhere,
        }
    }

    /// Goes on after what another attempt, or another owner of this one, has kept.
    pub(super) fn go_on(&mut self, tail: OutputTail, is_same_attempt: bool) {
        self.output.go_on(tail, is_same_attempt);
    }

    /// What the streams were, and what of them is not in the store yet.
    pub(super) fn into_kept(self) -> ([KeptStream; 2], Vec<OutputEvent>) {
        self.output.control.parts.metrics.phase(self.phase.phase, self.phase.began.elapsed());
        self.output.into_kept()
    }
}

#[async_trait]
impl OutputSink for Log {
    fn started(&mut self) {
        if self.phase.phase == Phase::SandboxStart {
            let metrics = &self.output.control.parts.metrics;
            metrics.phase(Phase::SandboxStart, self.phase.began.elapsed());
            self.phase = PhaseSpan::begin(Phase::Run, self.is_elsewhere);
        }
    }

    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        self.output.push(stream, bytes);
    }

    async fn ready(&mut self) {
        self.output.ready().await;
    }

    fn artifacts(&self) -> Option<Arc<dyn ArtifactDesk>> {
        self.keeper.clone().map(|keeper| keeper as _)
    }
}
