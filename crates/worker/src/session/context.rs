//! Contexts: queues of steps, one for each name and kind. What waits is served in the order in which it came.

use super::SessionError;
use super::spec::{StepSpec, StepWork};
use cofferdam_core::InvalidValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as Turns, MutexGuard};

/// Each may hold an interpreter; so many are enough for one session.
const MAX_CONTEXTS: usize = 32;

/// The contexts of one session.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    known: Mutex<HashMap<(String, String), Arc<Context>>>,
}

impl Contexts {
    /// The context of a step, which may be new.
    pub(super) fn of(&self, step: &StepSpec) -> Result<Arc<Context>, SessionError> {
        let kind = match &step.work {
            StepWork::Command { .. } => "command",
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
}

/// What the one whose turn it is has.
#[derive(Debug, Default)]
pub(super) struct Held {}

impl Context {
    pub(super) async fn turn(&self) -> MutexGuard<'_, Held> {
        self.held.lock().await
    }
}
