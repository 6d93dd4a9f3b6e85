//! The interpreter that was started with the sandbox, before there was a session for it: the first Python step has it.

use super::spec::SessionSpec;
use crate::pool::Interpreter;
use crate::runtime::{Runtime, ahead, by_name};
use cofferdam_backend::{BackendError, Process, Sandbox};
use cofferdam_kernels::{Kernel, KernelError, KernelLanguage, KernelOptions, Preparation};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::AsyncWriteExt;

const SIGKILL: i32 = 9;

/// The runtime whose interpreter may have started before this session was known.
pub(super) fn runtime(spec: &SessionSpec) -> Option<&'static Runtime> {
    let runtime = by_name("language", KernelLanguage::Python.as_str()).ok()?;
    let ahead = runtime.ahead?;
    // Under a limit that the interpreter nearly fills by itself, it is to start under that limit.
    let has_room = spec.limits.memory_bytes >= 2 * ahead.idle_bytes;
    (has_room && ahead.takes("", &spec.env)).then_some(runtime)
}

/// One that waits, until it is taken or ended.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    waiting: Mutex<Option<Interpreter>>,
}

impl Ahead {
    pub(super) fn new(interpreter: Option<Interpreter>) -> Self {
        Self { waiting: Mutex::new(interpreter) }
    }

    pub(super) fn take(&self) -> Option<Interpreter> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn is_there(&self) -> bool {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) async fn end(&self) {
        if let Some(interpreter) = self.take() {
            // One that cannot be told goes with the sandbox.
            let _ = interpreter.signal(SIGKILL).await;
        }
    }
}

/// Makes a kernel of an interpreter that waits for a program.
pub(super) async fn become_kernel(
    interpreter: Interpreter,
    sandbox: &Arc<dyn Sandbox>,
    options: KernelOptions,
) -> Result<Kernel, KernelError> {
    let gone = || BackendError::Gone { cause: "the interpreter ended before its first step".to_owned() };
    let env = options.env.clone();
    let preparation = Preparation::new(sandbox, KernelLanguage::Python, options).await?;
    let code = preparation.code().unwrap_or_default();
    let message = ahead::message(code, &preparation.arguments(), &env, false);
    let mut stdin = interpreter.take_stdin().ok_or_else(gone)?;
    stdin
        .write_all(&message)
        .await
        .map_err(|error| BackendError::failed("starting the interpreter", error))?;
    // What it reads from now on is at its end.
    let _ = stdin.shutdown().await;
    drop(stdin);
    preparation.finish(Box::new(interpreter)).await
}
