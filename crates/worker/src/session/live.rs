//! One session that is here: its sandbox, and its contexts.

use super::ahead::{self, Ahead};
use super::context::{Contexts, Held};
use super::process::Processes;
use super::spec::{SessionSpec, StepEnd, StepOutput, StepSpec, StepWork};
use super::watch::Watches;
use super::{SessionError, code, command};
use crate::artifacts::{ArtifactStore, Collected, Known, collect_new};
use crate::job::{ArtifactsWanted, Cancellation, FileIn, Request};
use crate::pool::Taken;
use crate::task_env::{STEP_VARIABLE, TaskEnv, WORKSPACE_DIR, contract, session_env};
use cofferdam_backend::{BackendError, Sandbox, Stats};
use cofferdam_core::{InvalidValue, Outcome, SandboxId};
use cofferdam_kernels::{Kernel, KernelError, KernelLanguage, KernelOptions};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

/// For so long an interpreter that was started before the session waits for the first step.
const AHEAD_MAX: Duration = Duration::from_secs(10);

/// For so long the end of a sandbox is waited for where something has failed.
const GONE_WITHIN: Duration = Duration::from_millis(50);

/// A session and its sandbox.
#[derive(Debug)]
pub(super) struct Live {
    sandbox_id: SandboxId,
    pub(super) sandbox: Arc<dyn Sandbox>,
    contexts: Contexts,
    pub(super) processes: Processes,
    pub(super) watches: Watches,
    /// Those that are some step's already.
    known_artifacts: tokio::sync::Mutex<Known>,
    ahead: Ahead,
    /// The kernel of a Python that is started later, if one like it has told it compiled.
    compiled: Option<Arc<[u8]>>,
    /// How often it was frozen and not thawed.
    pub(super) frozen: tokio::sync::Mutex<u32>,
    /// Why its sandbox is gone, once it is without having been ended.
    gone: watch::Sender<Option<String>>,
    /// Whoever looks out for that, for as long as it is here.
    watcher: OnceLock<AbortHandle>,
    /// Last, as what it holds must not go before the sandbox does.
    spec: SessionSpec,
}

impl Live {
    pub(super) fn check_secrets(&self) -> Result<(), BackendError> {
        self.spec.place.as_ref().map_or(Ok(()), |place| super::check_secrets(&**place.pool.backend()))
    }

    pub(super) fn new(spec: SessionSpec, taken: Taken) -> Self {
        let Taken { id: sandbox_id, sandbox, interpreter, kernel: compiled } = taken;
        let (contexts, processes) = (Contexts::default(), Processes::default());
        let (sandbox, ahead) = (Arc::from(sandbox), Ahead::new(interpreter));
        let (watches, known_artifacts) = (Watches::default(), tokio::sync::Mutex::default());
        let frozen = tokio::sync::Mutex::new(0);
        let (gone, watcher) = (watch::Sender::new(None), OnceLock::new());
        Self {
            sandbox_id,
            sandbox,
            contexts,
            processes,
            watches,
            known_artifacts,
            ahead,
            compiled,
            frozen,
            gone,
            watcher,
            spec,
        }
    }

    /// An interpreter that nobody wants does not wait for as long as the session lives.
    pub(super) fn not_for_long(self: &Arc<Self>) {
        if self.ahead.is_there() {
            let live = Arc::downgrade(self);
            tokio::spawn(async move {
                tokio::time::sleep(AHEAD_MAX).await;
                if let Some(live) = live.upgrade() {
                    live.ahead.end().await;
                }
            });
        }
    }

    /// Has it noticed when the sandbox goes.
    pub(super) fn watch_over(&self) {
        let (sandbox, gone) = (Arc::clone(&self.sandbox), self.gone.clone());
        let watching = tokio::spawn(async move {
            let cause = sandbox.gone().await;
            gone.send_replace(Some(cause));
        });
        let _ = self.watcher.set(watching.abort_handle());
    }

    fn stop_watching(&self) {
        if let Some(watcher) = self.watcher.get() {
            watcher.abort();
        }
    }

    /// Why its sandbox is gone, if it is.
    pub(super) fn gone(&self) -> Option<String> {
        self.gone.borrow().clone()
    }

    /// The same, for who has just seen something fail: the news may be on its way.
    pub(super) async fn gone_soon(&self) -> Option<String> {
        let mut gone = self.gone.subscribe();
        let told = timeout(GONE_WITHIN, gone.wait_for(Option::is_some)).await;
        told.ok()?.ok()?.clone()
    }

    pub(super) fn generation(&self) -> i64 {
        self.spec.generation
    }

    pub(super) fn spec(&self) -> &SessionSpec {
        &self.spec
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
        self.put_files(output.files()).await?;
        let mut end = match step.work {
            StepWork::Command { argv, stdin, workdir } => {
                let program =
                    command::Program { argv, stdin, workdir, env: variables, timeout: step.timeout };
                command::run(self, program, output, cancel).await?
            }
            StepWork::Code { language, code } => {
                // What code has changed itself stays: only what is new with this step is set.
                let is_new =
                    |name: &str| name == STEP_VARIABLE || step.env.iter().any(|(own, _)| own == name);
                let own = variables.iter().filter(|(name, _)| is_new(name)).cloned().collect();
                let code =
                    code::Code { language, code, whole_env: variables, env: own, timeout: step.timeout };
                let began = Instant::now();
                let run = async |held: &mut Held| code::run(self, held, code, output, cancel).await;
                match context.unless_restarted(&mut turn, run).await {
                    Some(end) => end?,
                    None => {
                        let by = "a restart of its context".to_owned();
                        let end = StepEnd::of(Outcome::Cancelled { by }, began.elapsed());
                        StepEnd { state_kept: Some(false), ..end }
                    }
                }
            }
        };
        end.warnings.extend(warnings);
        if let Some(store) = output.artifacts() {
            self.take_artifacts(store, &mut end).await;
        }
        Ok(end)
    }

    async fn put_files(&self, files: Vec<FileIn>) -> Result<(), SessionError> {
        for FileIn { path, mode, content } in files {
            self.sandbox.write_file(&path, mode, content).await.map_err(SessionError::File)?;
        }
        Ok(())
    }

    /// Keeps what is new in the artifacts folder. One step at a time: what two left at once is the first one's.
    async fn take_artifacts(&self, store: Box<dyn ArtifactStore>, end: &mut StepEnd) {
        let mut known = self.known_artifacts.lock().await;
        let wanted = ArtifactsWanted::Stored(store);
        let most = self.spec.limits.disk.bytes();
        let Collected { taken, skipped } = collect_new(&*self.sandbox, wanted, most, &mut known).await;
        (end.artifacts, end.artifacts_skipped) = (taken, skipped);
    }

    /// Ends the interpreter of a context, whatever it does; the next step has a new one.
    pub(super) async fn restart(&self, language: KernelLanguage, context: &str) -> Result<(), SessionError> {
        let found = self.contexts.find(language, context).ok_or(SessionError::NoContext)?;
        found.restart().await;
        Ok(())
    }

    /// Starts an interpreter.
    pub(super) async fn start_kernel(
        &self,
        language: KernelLanguage,
        env: &[(String, String)],
    ) -> Result<Kernel, KernelError> {
        let options = self.kernel_options(language, env);
        if language == KernelLanguage::Python
            && let Some(interpreter) = self.ahead.take()
        {
            return ahead::become_kernel(interpreter, &self.sandbox, options).await;
        }
        Kernel::start(&self.sandbox, language, options).await
    }

    /// What a Python that is started later reads its kernel from.
    pub(super) fn compiled(&self) -> Option<Arc<[u8]>> {
        self.compiled.clone()
    }

    pub(super) fn kernel_options(&self, language: KernelLanguage, env: &[(String, String)]) -> KernelOptions {
        let compiled = self.compiled.clone().filter(|_| language == KernelLanguage::Python);
        let (env, workdir) = (env.to_vec(), WORKSPACE_DIR.to_owned());
        KernelOptions { env, workdir, grace: self.grace(), compiled }
    }

    /// The environment of a process that belongs to no step.
    pub(super) fn process_env(
        &self,
        own: &[(String, String)],
        is_terminal: bool,
    ) -> Result<Vec<(String, String)>, InvalidValue> {
        let all: Vec<_> = self.spec.env.iter().chain(own).cloned().collect();
        Ok(contract(&all, self.spec.id.as_str(), &self.spec.task_id, is_terminal)?.variables)
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
        self.stop_watching();
        self.watches.end();
        // One that cannot be ended in order goes when nobody holds it any more.
        let _ = self.sandbox.destroy().await;
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // It holds the sandbox, which is to go with this.
        self.stop_watching();
    }
}
