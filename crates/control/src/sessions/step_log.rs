//! What a running step tells: its output and what it shows, on their way into the store, and when its turn has come.

use super::step_seal::StepSeal;
use crate::artifacts::{ArtifactDesk, Keeper, Owner};
use crate::output_log::{KeptStream, MAX_BYTES, OutputLog, Right};
use crate::session_worker::StepSink;
use crate::worker::{OutputSink, Stream};
use crate::{Control, now_ms};
use async_trait::async_trait;
use cofferdam_api::RichResult;
use cofferdam_core::JobState;
use cofferdam_store::{OutputEvent, OutputKind, StepRecord};
use cofferdam_turns::Handle;
use std::sync::Arc;

/// What is shown takes no more than this in all, and no more than so many pieces.
const MAX_SHOWN_BYTES: usize = MAX_BYTES;
const MAX_SHOWN: usize = 256;

pub(super) struct StepLog {
    output: OutputLog,
    pub(super) keeper: Option<Arc<Keeper>>,
    generation: i64,
    is_queued: bool,
    shown: usize,
    shown_bytes: usize,
    is_shown_cut: bool,
}

impl StepLog {
    pub(super) fn new(
        control: Control,
        step: &StepRecord,
        tenant: &str,
        handle: Handle,
        most: usize,
        seal: Option<StepSeal>,
    ) -> Self {
        let owner = Owner::Session { id: step.session.clone(), step: Some(step.id.clone()) };
        let keeper = control.artifacts().is_ok();
        let keeper = keeper.then(|| Arc::new(Keeper::new(control.clone(), tenant.to_owned(), owner)));
        let right = Right::Step { generation: step.generation, seal };
        Self {
            output: OutputLog::new(control, step.id.clone(), right, handle, most),
            keeper,
            generation: step.generation,
            is_queued: step.state == JobState::Queued,
            shown: 0,
            shown_bytes: 0,
            is_shown_cut: false,
        }
    }

    /// Whether something was dropped: of stdout, of stderr, of what was shown.
    pub(super) fn cut(&self) -> (bool, bool, bool) {
        let [out, err] = self.output.is_full();
        (out, err, self.is_shown_cut)
    }

    pub(super) fn into_kept(self) -> ([KeptStream; 2], Vec<OutputEvent>) {
        self.output.into_kept()
    }
}

#[async_trait]
impl OutputSink for StepLog {
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

#[async_trait]
impl StepSink for StepLog {
    async fn begun(&mut self) {
        if !self.is_queued {
            return;
        }
        let (store, id) = (&self.output.control.parts.store, self.output.id.clone());
        // One that is not noted as running now is noted as ended later.
        let _ = store.begin_step(id, self.generation, now_ms()).await;
        self.output.handle.tell();
    }

    fn show(&mut self, result: RichResult) {
        let Ok(bytes) = serde_json::to_vec(&result) else { return };
        if self.shown >= MAX_SHOWN || self.shown_bytes + bytes.len() > MAX_SHOWN_BYTES {
            self.is_shown_cut = true;
            return;
        }
        self.shown += 1;
        self.shown_bytes += bytes.len();
        self.output.add(OutputKind::Display, &bytes);
    }
}
