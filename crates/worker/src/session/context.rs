//! Contexts: queues of steps, one for each name and kind. What waits is served in the order in which it came.

use super::SessionError;
use super::spec::{StepSpec, StepWork};
use cofferdam_core::InvalidValue;
use cofferdam_kernels::{Kernel, KernelLanguage};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as Turns, MutexGuard, Notify};

/// Each may hold an interpreter; so many are enough for one session.
const MAX_CONTEXTS: usize = 32;

/// The contexts of one session.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    known: Mutex<HashMap<(String, String), Arc<Context>>>,
}

impl Contexts {
    /// A context of a language, if it was ever used.
    pub(super) fn find(&self, language: KernelLanguage, name: &str) -> Option<Arc<Context>> {
        let kind = match language {
            KernelLanguage::TypeScript => KernelLanguage::JavaScript,
            other => other,
        };
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(kind.as_str().to_owned(), name.to_owned())).cloned()
    }

    /// The context of a step, which may be new.
    pub(super) fn of(&self, step: &StepSpec) -> Result<Arc<Context>, SessionError> {
        let kind = match &step.work {
            StepWork::Command { .. } => "command",
            // The two share an interpreter.
            StepWork::Code { language: KernelLanguage::TypeScript, .. } => {
                KernelLanguage::JavaScript.as_str()
            }
            StepWork::Code { language, .. } => language.as_str(),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (kind.to_owned(), step.context.clone());
        if let Some(context) = known.get(&name) {
            return Ok(Arc::clone(context));
        }
        if known.len() >= MAX_CONTEXTS {
            let fix = format!("a session has at most {MAX_CONTEXTS} contexts; use one of those");
            return Err(InvalidValue::new("context", step.context.clone(), fix).into());
        }
        let context = Arc::new(Context::default());
        known.insert(name, Arc::clone(&context));
        Ok(context)
    }
}

/// One queue.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// Whoever has it, runs. Others get it in the order in which they asked.
    held: Turns<Held>,
    /// The interpreter is to be another one from now on.
    is_stale: AtomicBool,
    stop: Notify,
}

/// What the one whose turn it is has.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// The interpreter, once there is one; none after it has died.
    pub(super) kernel: Option<Kernel>,
    /// Whether there ever was one.
    pub(super) has_run: bool,
    /// How many steps the interpreter has run.
    pub(super) count: u64,
}

impl Held {
    /// Ends the interpreter; the next step has a new one.
    async fn renew(&mut self) {
        self.count = 0;
        if let Some(kernel) = self.kernel.take() {
            kernel.stop().await;
        }
    }
}

impl Context {
    pub(super) async fn turn(&self) -> MutexGuard<'_, Held> {
        self.held.lock().await
    }

    /// Does something in one's turn, unless the context is restarted meanwhile.
    pub(super) async fn unless_restarted<T>(
        &self,
        held: &mut Held,
        act: impl AsyncFnOnce(&mut Held) -> T,
    ) -> Option<T> {
        let stopped = self.stop.notified();
        tokio::pin!(stopped);
        // Heard from here on, so that no word falls between the look and the wait.
        stopped.as_mut().enable();
        if self.is_stale.swap(false, Ordering::SeqCst) {
            held.renew().await;
        }
        let done = tokio::select! {
            biased;
            done = act(held) => Some(done),
            () = stopped => None,
        };
        if done.is_none() {
            held.renew().await;
            self.is_stale.store(false, Ordering::SeqCst);
        }
        done
    }

    /// Ends the interpreter and the step that it runs. What waits has a new one.
    pub(super) async fn restart(&self) {
        self.is_stale.store(true, Ordering::SeqCst);
        self.stop.notify_waiters();
        if let Ok(mut held) = self.held.try_lock()
            && self.is_stale.swap(false, Ordering::SeqCst)
        {
            held.renew().await;
        }
    }
}
