//! Interpreters from the shelves for who keeps them, and the sandbox: sessions.

use super::Pool;
use super::shelf::{Held, Shelf};
use super::waiting::Interpreter;
use crate::runtime::Runtime;
use crate::runtime::ahead;
use cofferdam_backend::{BackendError, Process, Result, Sandbox, SandboxSpec};
use cofferdam_core::SandboxId;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;

/// A sandbox, and the interpreter that waits in it, if one does.
#[derive(Debug)]
pub struct Taken {
    /// The sandbox's own id: one that waited was not made with the request's.
    pub id: SandboxId,
    pub sandbox: Box<dyn Sandbox>,
    pub interpreter: Option<WaitingInterpreter>,
    /// The kernel of interpreters in such sandboxes compiled, for one that is started later.
    pub kernel: Option<Arc<[u8]>>,
}

/// An interpreter that has started in the workspace and waits for what is wanted of it. Dropping it does not end it.
#[derive(Debug)]
pub struct WaitingInterpreter(Box<Interpreter>);

impl WaitingInterpreter {
    /// Makes it run `code` with these arguments and this environment, and stdin at its end. One that was given its
    /// program before goes on with that, and has no use for `code`.
    pub async fn give(
        self,
        code: &str,
        args: &[String],
        env: &[(String, String)],
    ) -> Result<Box<dyn Process>> {
        let gone = || BackendError::Gone { cause: "the interpreter that waited is gone".to_owned() };
        let mut stdin = self.0.take_stdin().ok_or_else(gone)?;
        let message = ahead::message(code, args, env, false);
        stdin.write_all(&message).await.map_err(|_| gone())?;
        stdin.shutdown().await.map_err(|_| gone())?;
        Ok(self.0)
    }

    /// The process, for who has no use for it and ends it.
    pub fn into_process(self) -> Box<dyn Process> {
        self.0
    }
}

impl Pool {
    /// A sandbox for a program of `runtime` with this environment, with an interpreter waiting in it where the pool
    /// has one and the environment allows it; otherwise without.
    pub async fn take_with_interpreter(
        &self,
        spec: SandboxSpec,
        runtime: &'static Runtime,
        env: &[(String, String)],
        held: Held,
    ) -> Result<Taken> {
        let fits = fits(runtime, &spec, env);
        let mut kind = self.kind(spec, Some(runtime), held);
        // Also for one that has to start with what it was asked for: its code is the same.
        let kernel = Shelf::kernel_of(&self.state().shelves, &kind);
        kind.runtime = kind.runtime.filter(|_| fits);
        match self.take_warm(&kind).await {
            Some(waiting) => {
                Shelf::of(&mut self.state().shelves, &kind).hold_for_session();
                let interpreter = waiting.interpreter.map(WaitingInterpreter);
                Ok(Taken { id: waiting.id, sandbox: waiting.sandbox, interpreter, kernel })
            }
            None => {
                let id = kind.spec.id.clone();
                Ok(Taken { id, sandbox: self.backend.create(kind.spec).await?, interpreter: None, kernel })
            }
        }
    }
}

fn fits(runtime: &Runtime, spec: &SandboxSpec, env: &[(String, String)]) -> bool {
    let Some(ahead) = runtime.ahead else { return false };
    // Under a limit that the interpreter nearly fills by itself, it is to start under that limit.
    spec.limits.memory_bytes >= 2 * ahead.idle_bytes && ahead.takes("", env)
}
