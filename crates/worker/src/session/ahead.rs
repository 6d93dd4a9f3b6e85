//! The interpreter that was started with the sandbox, before there was a session for it: the first Python step has it.

use crate::pool::WaitingInterpreter;
use cofferdam_backend::Sandbox;
use cofferdam_kernels::{Kernel, KernelError, KernelLanguage, KernelOptions, Preparation};
use std::sync::{Arc, Mutex, PoisonError};

const SIGKILL: i32 = 9;

/// One that waits, until it is taken or ended.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    waiting: Mutex<Option<WaitingInterpreter>>,
}

impl Ahead {
    pub(super) fn new(interpreter: Option<WaitingInterpreter>) -> Self {
        Self { waiting: Mutex::new(interpreter) }
    }

    pub(super) fn take(&self) -> Option<WaitingInterpreter> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn is_there(&self) -> bool {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) async fn end(&self) {
        if let Some(interpreter) = self.take() {
            // One that cannot be told goes with the sandbox.
            let _ = interpreter.into_process().signal(SIGKILL).await;
        }
    }
}

/// Makes a kernel of an interpreter that waits to become one, and has read it.
pub(super) async fn become_kernel(
    interpreter: WaitingInterpreter,
    sandbox: &Arc<dyn Sandbox>,
    options: KernelOptions,
) -> Result<Kernel, KernelError> {
    let env = options.env.clone();
    let options = KernelOptions { compiled: None, ..options };
    let preparation = Preparation::new(sandbox, KernelLanguage::Python, options).await?;
    let process = interpreter.give("", &preparation.arguments(), &env).await?;
    preparation.finish(process).await
}
