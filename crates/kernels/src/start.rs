//! From nothing to an interpreter that waits for its first cell.

use crate::cell::KernelOptions;
use crate::error::KernelError;
use crate::frame::{Frame, Frames};
use crate::interrupt::Interrupter;
use crate::kernel::{Kernel, SIGKILL};
use crate::language::KernelLanguage;
use crate::output::Output;
use crate::programs::Start;
use crate::{random, request};
use cofferdam_backend::{
    BackendError, ExitStatus, Listener, Process, ProcessSpec, Sandbox, Stdio, Stream, Writer,
};
use cofferdam_core::{GuestPath, Outcome};
use std::iter;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// An interpreter that is not ready by then is broken, or the machine is.
const START_MAX: Duration = Duration::from_secs(30);

/// Above the ports that Linux gives to outgoing connections, and where servers seldom are.
const PORTS: std::ops::Range<u16> = 61_000..65_000;

/// So many taken ports in a row are no accident.
const PORTS_TRIED_MAX: usize = 16;

/// Others in the sandbox may connect first; so many times is no accident either.
const STRANGERS_MAX: usize = 16;

/// Whoever connects says its word at once.
const WORD_MAX: Duration = Duration::from_secs(5);

/// What of an interpreter's complaint is told.
const SAID_MAX_BYTES: usize = 2000;
const SAID_MAX: Duration = Duration::from_millis(200);

/// A place for an interpreter to connect to, before it is started.
///
/// [`Kernel::start`] does all of it. On its own it is for an interpreter that was started ahead and waits for a
/// program: give it [`Preparation::code`] with [`Preparation::arguments`], and hand its process to
/// [`Preparation::finish`]. One that waits as [`crate::PYTHON_WAITING`] does has the code already.
pub struct Preparation {
    sandbox: Arc<dyn Sandbox>,
    language: KernelLanguage,
    options: KernelOptions,
    listener: Box<dyn Listener>,
    port: u16,
    token: String,
}

impl std::fmt::Debug for Preparation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Preparation").field("language", &self.language).finish_non_exhaustive()
    }
}

impl Preparation {
    pub async fn new(
        sandbox: &Arc<dyn Sandbox>,
        language: KernelLanguage,
        options: KernelOptions,
    ) -> Result<Self, KernelError> {
        let (listener, port) = listen(&**sandbox).await?;
        let token = random::token()?;
        Ok(Self { sandbox: Arc::clone(sandbox), language, options, listener, port, token })
    }

    /// The program that becomes the kernel, for an interpreter that waits for one; none for a shell.
    pub fn code(&self) -> Option<&'static str> {
        match self.language.program().start {
            Start::Argument { boot, .. } => Some(boot),
            Start::Lines { .. } => None,
        }
    }

    pub fn arguments(&self) -> [String; 2] {
        [self.port.to_string(), self.token.clone()]
    }

    fn process_spec(&self) -> Result<ProcessSpec, KernelError> {
        let program = self.language.program();
        let mut argv = vec![program.name.to_owned()];
        let mut env = self.options.env.clone();
        let reads_lines = match &program.start {
            Start::Argument { flag, boot } => {
                argv.extend([*flag, *boot].map(str::to_owned));
                argv.extend(self.arguments());
                false
            }
            Start::Lines { words, .. } => {
                argv.extend(words.iter().map(|word| (*word).to_owned()));
                let [port, token] = self.arguments();
                env.push(("_cofferdam_port".to_owned(), port));
                env.push(("_cofferdam_token".to_owned(), token));
                true
            }
        };
        Ok(ProcessSpec {
            argv,
            env,
            cwd: GuestPath::parse("workdir", &self.options.workdir)?,
            make_cwd: true,
            stdio: Stdio::Pipes { stdin: reads_lines },
        })
    }

    /// Makes a kernel of a process that was given the code, and waits until it is ready.
    pub async fn finish(self, process: Box<dyn Process>) -> Result<Kernel, KernelError> {
        let program = self.language.program();
        let ready = tokio::time::timeout(START_MAX, self.connect(&*process));
        let (channel, frames, version, lines) = match ready.await {
            Ok(Ok(ready)) => ready,
            Ok(Err(error)) => {
                let _ = process.signal(SIGKILL).await;
                return Err(error);
            }
            Err(_elapsed) => {
                let _ = process.signal(SIGKILL).await;
                return Err(KernelError::TooSlow { program: program.name, seconds: START_MAX.as_secs() });
            }
        };
        let (answers, requests) = tokio::io::split(channel);
        let oom_kills = self.sandbox.stats().await.ok().and_then(|stats| stats.oom_kills).unwrap_or(0);
        Ok(Kernel {
            language: self.language,
            version,
            stdout: Output::new(process.take_stdout()),
            stderr: Output::new(process.take_stderr()),
            process,
            answers,
            requests,
            frames,
            lines,
            interrupter: Interrupter::default(),
            grace: self.options.grace,
            count: 0,
            is_sound: true,
            sandbox: Arc::downgrade(&self.sandbox),
            oom_kills,
        })
    }

    async fn connect(
        &self,
        process: &dyn Process,
    ) -> Result<(Box<dyn Stream>, Frames, String, Option<Writer>), KernelError> {
        let program = self.language.program();
        let lines = match program.start {
            Start::Lines { .. } => {
                let mut lines = process.take_stdin();
                if let Some(stdin) = &mut lines {
                    // Where it has ended meanwhile, that is what is told.
                    let _ = stdin.write_all(program.source.as_bytes()).await;
                }
                lines
            }
            Start::Argument { .. } => None,
        };
        let ready = async {
            let mut channel = self.accept().await?;
            if matches!(program.start, Start::Argument { .. }) {
                let compiled = self.options.compiled.as_deref();
                let parts: Vec<&[u8]> = iter::once(program.source.as_bytes()).chain(compiled).collect();
                channel.write_all(&request::message(&parts)).await.map_err(lost)?;
            }
            let mut frames = Frames::default();
            match receive(&mut channel, &mut frames).await? {
                Frame::Ready { version } => Ok((channel, frames, version)),
                other => Err(KernelError::Protocol(format!("it began with {other:?}"))),
            }
        };
        tokio::select! {
            ready = ready => ready.map(|(channel, frames, version)| (channel, frames, version, lines)),
            status = process.wait() => Err(not_started(program.name, status?, process).await),
        }
    }

    /// The first connection that knows the word.
    async fn accept(&self) -> Result<Box<dyn Stream>, KernelError> {
        for _ in 0..STRANGERS_MAX {
            let mut stream = self.listener.accept().await?;
            let mut word = vec![0; self.token.len()];
            let read = tokio::time::timeout(WORD_MAX, stream.read_exact(&mut word)).await;
            if matches!(read, Ok(Ok(_))) && word == self.token.as_bytes() {
                return Ok(stream);
            }
        }
        Err(KernelError::Protocol("others connected in its place".to_owned()))
    }
}

impl Kernel {
    /// Starts an interpreter and waits until it can run its first cell.
    pub async fn start(
        sandbox: &Arc<dyn Sandbox>,
        language: KernelLanguage,
        options: KernelOptions,
    ) -> Result<Self, KernelError> {
        let preparation = Preparation::new(sandbox, language, options).await?;
        let process = sandbox.start(preparation.process_spec()?).await?;
        preparation.finish(process).await
    }
}

/// A port that nobody has, and who listens on it.
async fn listen(sandbox: &dyn Sandbox) -> Result<(Box<dyn Listener>, u16), BackendError> {
    let mut last = None;
    for _ in 0..PORTS_TRIED_MAX {
        let port = PORTS.start + u16::from_le_bytes(random::bytes()?) % (PORTS.end - PORTS.start);
        match sandbox.listen(port).await {
            Ok(listener) => return Ok((listener, port)),
            Err(error @ BackendError::Failed { .. }) => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or(BackendError::Unsupported { backend: "sandbox's", what: "listen" }))
}

fn lost(error: std::io::Error) -> KernelError {
    BackendError::failed("talking to the kernel", error).into()
}

async fn receive(channel: &mut Box<dyn Stream>, frames: &mut Frames) -> Result<Frame, KernelError> {
    let mut buffer = [0; 4096];
    loop {
        if let Some(frame) = frames.next_frame().map_err(|error| KernelError::Protocol(error.to_string()))? {
            return Ok(frame);
        }
        match channel.read(&mut buffer).await.map_err(lost)? {
            // Its process ends as well, which is told better.
            0 => std::future::pending().await,
            n => frames.push(&buffer[..n]),
        }
    }
}

async fn not_started(program: &'static str, status: ExitStatus, process: &dyn Process) -> KernelError {
    let cause = match status {
        ExitStatus::Exited(code) => Outcome::Exited { code },
        ExitStatus::Signaled(signal) => Outcome::Signaled { signal },
        ExitStatus::Lost => Outcome::Lost,
    };
    let mut said = Vec::new();
    if let Some(stderr) = process.take_stderr() {
        let mut stderr = stderr.take(SAID_MAX_BYTES as u64);
        let _ = tokio::time::timeout(SAID_MAX, stderr.read_to_end(&mut said)).await;
    }
    let said = String::from_utf8_lossy(&said);
    let said = if said.trim().is_empty() { String::new() } else { format!(": {}", said.trim()) };
    KernelError::NotStarted { program, cause, said }
}
