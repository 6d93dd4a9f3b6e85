//! A fake process: a task that plays a program.

use super::files::FakeFiles;
use super::lock;
use super::sandbox::World;
use cofferdam_backend::{
    BackendError, ExitStatus, Process, ProcessId, ProcessSpec, Reader, Result, Stdio, Writer, async_trait,
};
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{mpsc, watch};

const SIGKILL: i32 = 9;

/// As much as a kernel's pipe.
const PIPE_BYTES: usize = 64 << 10;

pub(super) type Program =
    Arc<dyn Fn(Guest) -> Pin<Box<dyn Future<Output = ExitStatus> + Send>> + Send + Sync>;

/// A process from the inside.
pub struct Guest {
    pub spec: ProcessSpec,
    /// At its end from the start, unless stdin was asked for.
    pub stdin: DuplexStream,
    pub stdout: DuplexStream,
    pub stderr: DuplexStream,
    signals: mpsc::UnboundedReceiver<i32>,
    handled: Arc<AtomicBool>,
    world: Arc<World>,
}

impl Guest {
    /// From now on signals do not end the process; each comes out of [`Guest::signal`] instead.
    pub fn handle_signals(&self) {
        self.handled.store(true, Ordering::SeqCst);
    }

    pub async fn signal(&mut self) -> i32 {
        match self.signals.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }

    /// Writes to stdout; a closed one is not minded.
    pub async fn print(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stdout.write_all(bytes.as_ref()).await;
    }

    /// Leaves something running that only the end of the sandbox ends.
    pub fn leave_behind(&self, child: impl Future<Output = ()> + Send + 'static) {
        self.world.spawn(child);
    }

    /// From now on nobody can be asked for the sandbox's end, as if its launcher were gone.
    pub fn orphan_sandbox(&self) {
        self.world.is_orphan.store(true, Ordering::SeqCst);
    }

    pub fn change_files(&self, change: impl FnOnce(&mut FakeFiles)) {
        change(&mut lock(&self.world.files));
    }
}

#[derive(Clone)]
pub(super) struct FakeProcess(Arc<Outside>);

/// A process from the outside.
struct Outside {
    id: ProcessId,
    streams: Mutex<Streams>,
    status: watch::Receiver<Option<ExitStatus>>,
    signals: mpsc::UnboundedSender<i32>,
    kills: mpsc::UnboundedSender<i32>,
    handled: Arc<AtomicBool>,
    world: Arc<World>,
}

struct Streams {
    stdin: Option<DuplexStream>,
    stdout: Option<DuplexStream>,
    stderr: Option<DuplexStream>,
}

impl FakeProcess {
    pub(super) fn start(id: ProcessId, spec: ProcessSpec, program: Program, world: &Arc<World>) -> Self {
        let stdio = spec.stdio;
        let (stdin, guest_stdin) = duplex(PIPE_BYTES);
        let (stdout, guest_stdout) = duplex(PIPE_BYTES);
        let (stderr, guest_stderr) = duplex(PIPE_BYTES);
        let (signals, guest_signals) = mpsc::unbounded_channel();
        let (kills, mut killed) = mpsc::unbounded_channel();
        let (ended, status) = watch::channel(None);
        let handled = Arc::new(AtomicBool::new(false));
        let guest = Guest {
            spec,
            stdin: guest_stdin,
            stdout: guest_stdout,
            stderr: guest_stderr,
            signals: guest_signals,
            handled: Arc::clone(&handled),
            world: Arc::clone(world),
        };
        world.spawn(async move {
            let status = tokio::select! {
                status = program(guest) => status,
                Some(signal) = killed.recv() => ExitStatus::Signaled(signal),
            };
            ended.send_replace(Some(status));
        });
        let streams = Streams {
            stdin: (stdio != Stdio::Pipes { stdin: false }).then_some(stdin),
            stdout: Some(stdout),
            stderr: matches!(stdio, Stdio::Pipes { .. }).then_some(stderr),
        };
        let world = Arc::clone(world);
        Self(Arc::new(Outside { id, streams: Mutex::new(streams), status, signals, kills, handled, world }))
    }
}

#[async_trait]
impl Process for FakeProcess {
    fn id(&self) -> ProcessId {
        self.0.id
    }

    fn take_stdin(&self) -> Option<Writer> {
        lock(&self.0.streams).stdin.take().map(|stream| Box::new(stream) as Writer)
    }

    fn take_stdout(&self) -> Option<Reader> {
        lock(&self.0.streams).stdout.take().map(|stream| Box::new(stream) as Reader)
    }

    fn take_stderr(&self) -> Option<Reader> {
        lock(&self.0.streams).stderr.take().map(|stream| Box::new(stream) as Reader)
    }

    async fn resize(&self, rows: u16, columns: u16) -> Result<()> {
        lock(&self.0.world.resizes).push((rows, columns));
        Ok(())
    }

    async fn signal(&self, signal: i32) -> Result<()> {
        lock(&self.0.world.signals).push(signal);
        let handled = signal != SIGKILL && self.0.handled.load(Ordering::SeqCst);
        let sent = if handled { self.0.signals.send(signal) } else { self.0.kills.send(signal) };
        sent.map_err(|_| BackendError::Gone { cause: "the process ended".to_owned() })
    }

    async fn wait(&self) -> Result<ExitStatus> {
        let mut status = self.0.status.clone();
        // The sender goes without a word when the sandbox is destroyed.
        let ended = status.wait_for(Option::is_some).await;
        Ok(ended.ok().and_then(|status| *status).unwrap_or(ExitStatus::Lost))
    }
}

impl fmt::Debug for FakeProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FakeProcess({})", self.0.id.0)
    }
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest").field("spec", &self.spec).finish_non_exhaustive()
    }
}
