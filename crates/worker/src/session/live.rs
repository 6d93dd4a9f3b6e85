//! One session that is here: its sandbox, and its contexts.

use super::context::Contexts;
use super::spec::{SessionSpec, StepEnd, StepOutput, StepSpec, StepWork};
use super::{SessionError, command};
use crate::job::{Cancellation, Request};
use crate::task_env::{TaskEnv, session_env};
use cofferdam_backend::{Sandbox, Stats};
use cofferdam_core::{InvalidValue, Outcome, SandboxId};
use std::sync::Arc;
use std::time::Duration;

/// A session and its sandbox.
#[derive(Debug)]
pub(super) struct Live {
    spec: SessionSpec,
    sandbox_id: SandboxId,
    pub(super) sandbox: Arc<dyn Sandbox>,
    contexts: Contexts,
}

impl Live {
    pub(super) fn new(spec: SessionSpec, sandbox_id: SandboxId, sandbox: Box<dyn Sandbox>) -> Self {
        Self { spec, sandbox_id, sandbox: Arc::from(sandbox), contexts: Contexts::default() }
    }

    pub(super) fn generation(&self) -> i64 {
        self.spec.generation
    }

    pub(super) fn sandbox_id(&self) -> &SandboxId {
        &self.sandbox_id
    }

    pub(super) fn grace(&self) -> Duration {
        self.spec.limits.grace
    }

    /// Waits for the step's turn, and runs it.
    pub(super) async fn step(
        &self,
        step: StepSpec,
        output: &mut dyn StepOutput,
        mut cancel: Cancellation,
    ) -> Result<StepEnd, SessionError> {
        let TaskEnv { variables, warnings } = self.env(&step)?;
        let context = self.contexts.of(&step)?;
        let mut turn = tokio::select! {
            biased;
            turn = context.turn() => turn,
            Request { by, .. } = cancel.requested() => {
                return Ok(StepEnd::of(Outcome::Cancelled { by }, Duration::ZERO));
            }
        };
        output.begun().await;
        let mut end = match step.work {
            StepWork::Command { argv, stdin, workdir } => {
                let program = command::Program { argv, stdin, workdir, env: variables, timeout: step.timeout };
                command::run(self, program, output, cancel).await?
            }
            StepWork::Code { language, .. } => {
                let _ = &mut turn;
                return Err(InvalidValue::new("language", language, "there are no interpreters yet").into());
            }
        };
        end.warnings.extend(warnings);
        Ok(end)
    }

    fn env(&self, step: &StepSpec) -> Result<TaskEnv, InvalidValue> {
        let own: Vec<_> = self.spec.env.iter().chain(&step.env).cloned().collect();
        session_env(&own, &self.spec.id, &self.spec.task_id, step.number)
    }

    /// How many processes were killed for want of memory so far.
    pub(super) async fn oom_kills(&self) -> u64 {
        self.stats().await.oom_kills.unwrap_or(0)
    }

    async fn stats(&self) -> Stats {
        self.sandbox.stats().await.unwrap_or_default()
    }

    /// Ends everything in it.
    pub(super) async fn end(&self) {
        // One that cannot be ended in order goes when nobody holds it any more.
        let _ = self.sandbox.destroy().await;
    }
}
