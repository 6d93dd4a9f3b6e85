//! What waits on a shelf: a sandbox, alone or with an interpreter that has started in it.

use super::shelf::Kind;
use crate::runtime::Runtime;
use crate::runtime::ahead::{Ahead, COMPILED_MAX_BYTES, READY, message};
use crate::task_env::{default_env, workspace};
use cofferdam_backend::{
    Backend, BackendError, ExitStatus, Process, ProcessId, ProcessSpec, Reader, Result, Sandbox, Stdio,
    Writer, async_trait,
};
use cofferdam_core::SandboxId;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// An interpreter that takes longer to start than this is not worth waiting for: its image is broken, or lies.
const START_MAX: Duration = Duration::from_secs(5);

/// One that waits.
pub(crate) struct Waiting {
    pub(crate) id: SandboxId,
    pub(crate) sandbox: Box<dyn Sandbox>,
    pub(crate) interpreter: Option<Box<Interpreter>>,
    /// For the next one of its kind.
    pub(super) told: Told,
}

/// Code that an interpreter was given as a text, compiled, as it told it. Reading that takes a fraction of the time, and
/// none of the memory that stays when a compiler is done.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    /// What it waits with.
    boot: Option<Arc<[u8]>>,
    /// What it was given then.
    pub(super) kernel: Option<Arc<[u8]>>,
}

impl Told {
    /// One that was given it compiled tells nothing, and the earlier holds.
    pub(super) fn or(self, earlier: Self) -> Self {
        Self { boot: self.boot.or(earlier.boot), kernel: self.kernel.or(earlier.kernel) }
    }
}

impl Waiting {
    pub(super) async fn make(backend: &dyn Backend, kind: &Kind) -> Result<Self> {
        let (id, spec) = (kind.spec.id.clone(), kind.spec.clone());
        let Some((runtime, ahead)) = kind.runtime.and_then(|runtime| Some((runtime, runtime.ahead?))) else {
            let (sandbox, told) = (backend.create(spec).await?, Told::default());
            return Ok(Self { id, sandbox, interpreter: None, told });
        };
        let (argv, sent) = ahead.start(runtime, kind.told.boot.as_deref());
        let (sandbox, process) = backend.create_and_start(spec, process(argv)).await?;
        let process = match process {
            // An image need not have it; the sandbox is as good as any.
            Err(BackendError::NotFound { .. }) => {
                return Ok(Self { id, sandbox, interpreter: None, told: Told::default() });
            }
            process => process?,
        };
        let interpreter =
            tokio::time::timeout(START_MAX, Interpreter::ready(process, ahead, sent, &kind.told)).await;
        let (mut interpreter, told) = interpreter.unwrap_or_else(|_| Err(not_ready(runtime)))?;
        // Its start was nobody's job, and will not be counted as one's.
        interpreter.cpu_time_ms = sandbox.stats().await?.usage.cpu_time_ms;
        Ok(Self { id, sandbox, interpreter: Some(Box::new(interpreter)), told })
    }

    /// Whether it can still serve; an interpreter may have been ended by whatever ends processes.
    pub(super) fn is_alive(&self) -> bool {
        self.interpreter.as_ref().is_none_or(|interpreter| !interpreter.has_ended())
    }
}

fn process(argv: Vec<String>) -> ProcessSpec {
    ProcessSpec {
        argv,
        env: default_env(),
        cwd: workspace(),
        make_cwd: false,
        stdio: Stdio::Pipes { stdin: true },
    }
}

fn not_ready(runtime: &Runtime) -> BackendError {
    let seconds = START_MAX.as_secs();
    BackendError::Gone { cause: format!("{} was not ready after {seconds} seconds", runtime.program) }
}

/// A process that waits for its program. Its streams are those that the program will have.
pub(crate) struct Interpreter {
    process: Box<dyn Process>,
    /// What its start has used.
    pub(super) cpu_time_ms: Option<u64>,
    stdin: Mutex<Option<Writer>>,
    stdout: Mutex<Option<Reader>>,
}

impl Interpreter {
    /// Waits until it has started, and for what it tells of its code. `sent` is what it begins with, `known` what others
    /// have told.
    async fn ready(
        process: Box<dyn Process>,
        ahead: &Ahead,
        sent: &[u8],
        known: &Told,
    ) -> Result<(Self, Told)> {
        let gone = || BackendError::Gone { cause: "the interpreter ended before it was ready".to_owned() };
        let mut stdin = process.take_stdin().ok_or_else(gone)?;
        let mut stdout = process.take_stdout().ok_or_else(gone)?;
        stdin.write_all(sent).await.map_err(|_| gone())?;
        let mut told = Told { boot: read_ready(&mut stdout).await.map_err(|_| gone())?, kernel: None };
        if let Some(then) = ahead.then {
            let mut words = message(then.code, &[], &default_env(), true);
            for part in [then.kernel.as_bytes(), known.kernel.as_deref().unwrap_or_default()] {
                words.extend((part.len() as u32).to_le_bytes());
                words.extend(part);
            }
            stdin.write_all(&words).await.map_err(|_| gone())?;
            told.kernel = read_ready(&mut stdout).await.map_err(|_| gone())?;
        }
        let (stdin, stdout) = (Mutex::new(Some(stdin)), Mutex::new(Some(stdout)));
        Ok((Self { process, cpu_time_ms: None, stdin, stdout }, told))
    }

    fn has_ended(&self) -> bool {
        let wait = pin!(self.process.wait());
        matches!(wait.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
    }
}

async fn read_ready(stdout: &mut Reader) -> io::Result<Option<Arc<[u8]>>> {
    let is_ready = stdout.read_u8().await? == READY;
    let len = stdout.read_u32_le().await? as usize;
    if !is_ready || len > COMPILED_MAX_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut compiled = vec![0; len];
    stdout.read_exact(&mut compiled).await?;
    Ok(Some(compiled.into()).filter(|_| len > 0))
}

impl fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Interpreter").field(&self.process).finish()
    }
}

#[async_trait]
impl Process for Interpreter {
    fn id(&self) -> ProcessId {
        self.process.id()
    }

    fn take_stdin(&self) -> Option<Writer> {
        self.stdin.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn take_stdout(&self) -> Option<Reader> {
        self.stdout.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn take_stderr(&self) -> Option<Reader> {
        self.process.take_stderr()
    }

    async fn resize(&self, rows: u16, columns: u16) -> Result<()> {
        self.process.resize(rows, columns).await
    }

    async fn signal(&self, signal: i32) -> Result<()> {
        self.process.signal(signal).await
    }

    async fn wait(&self) -> Result<ExitStatus> {
        self.process.wait().await
    }
}
