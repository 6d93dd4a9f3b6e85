//! The host's end of init's socket: requests go out, and whoever waits for an answer hears of it.

use crate::process::{NativeProcess, ProcessState, Streams};
use crate::report;
use crate::streams::{self, Packets, Terminal};
use cofferdam_backend::{BackendError, ExitStatus, ProcessSpec, Result, Stdio};
use cofferdam_linux::protocol::{self, EVENT_BYTES, Event, MAX_START_BYTES, MAX_STRINGS, StdioRequest};
use cofferdam_linux::socket::{self, MAX_MESSAGE};
use cofferdam_linux::{ControlSet, Stage, sys};
use std::collections::HashMap;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, oneshot, watch};

/// What init answers to a request: an error number, and what it opened.
type Answer = (i32, socket::Fds);

/// How the set-up went: what it proved, or what failed.
pub(crate) type Ready = std::result::Result<ControlSet, (Stage, i32, ControlSet)>;

/// How a start went: the host's ends of its stdio, or what failed.
type Started = std::result::Result<socket::Fds, (Stage, i32, ControlSet)>;

/// A start that init has not answered yet. Nothing is frozen while there is one: between joining its group and its
/// first program the new process has init wait for it, and frozen there, both would.
struct Starting {
    told: oneshot::Sender<Started>,
    _turn: StartTurn,
}

/// Held by each start until init has answered it, whoever waits for that.
pub(crate) type StartTurn = OwnedRwLockReadGuard<()>;

/// Held while nothing may be started.
pub(crate) type NoStarts = OwnedRwLockWriteGuard<()>;

#[derive(Default)]
pub(crate) struct Waiting {
    ready: Option<oneshot::Sender<Ready>>,
    starts: HashMap<u32, Starting>,
    /// Whether init has started anything: before that it makes a process ahead, when it likes.
    has_started: bool,
    answers: HashMap<u32, oneshot::Sender<Answer>>,
    pub(crate) processes: HashMap<u32, Arc<ProcessState>>,
    pub(crate) proven: ControlSet,
    /// How often init ended everything because the group was out of memory.
    pub(crate) out_of_memory: u64,
    pub(crate) is_closed: bool,
}

/// The host's end of init's socket.
pub(crate) struct Connection {
    socket: Packets,
    waiting: Mutex<Waiting>,
    next: AtomicU32,
    /// A folder of the sandbox's files, for their filesystem's figures.
    workspace: Mutex<Option<OwnedFd>>,
    turns: Arc<RwLock<()>>,
    /// Whether init's end is closed, for who waits for that.
    closed: watch::Sender<bool>,
}

pub(crate) type ReadyReceiver = oneshot::Receiver<Ready>;

impl Connection {
    /// Wraps the socket and starts to listen to it.
    pub(crate) fn new(socket: OwnedFd) -> io::Result<(Arc<Self>, ReadyReceiver)> {
        let socket = Packets::new(socket)?;
        let (sender, receiver) = oneshot::channel();
        let waiting = Waiting { ready: Some(sender), ..Waiting::default() };
        let connection = Arc::new(Self {
            socket,
            waiting: Mutex::new(waiting),
            next: AtomicU32::new(1),
            workspace: Mutex::default(),
            turns: Arc::default(),
            closed: watch::Sender::new(false),
        });
        tokio::spawn(read_events(Arc::clone(&connection)));
        Ok((connection, receiver))
    }

    pub(crate) fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn next(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn send(&self, message: &[u8], fds: &[RawFd]) -> Result<()> {
        if self.waiting().is_closed {
            return Err(gone());
        }
        // The socket holds several of the largest messages, and init reads whenever it is not starting one.
        match self.socket.send(message, fds) {
            Ok(()) => Ok(()),
            Err(sys::Errno(libc::EPIPE | libc::ECONNRESET)) => Err(gone()),
            Err(errno) => Err(BackendError::failed("asking the sandbox's init", errno.into())),
        }
    }

    /// What the filesystem of the sandbox's files has left.
    pub(crate) fn files(&self) -> Option<sys::StatFs> {
        let workspace = self.workspace.lock().unwrap_or_else(PoisonError::into_inner);
        workspace.as_ref().and_then(|folder| sys::fstatfs(folder.as_raw_fd()).ok())
    }

    /// Lets go of the sandbox's files, which would keep their filesystem mounted.
    pub(crate) fn release_files(&self) {
        *self.workspace.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn signal(&self, process: u32, signal: i32) -> Result<()> {
        let mut buffer = [0; 64];
        let message = protocol::encode_signal(&mut buffer, process, signal).map_err(too_large)?;
        self.send(message, &[])
    }

    /// Sends a request that is answered once, and waits for the answer: an error number, and a descriptor if there was
    /// none.
    pub(crate) async fn ask(&self, request: u32, message: &[u8]) -> Result<(i32, Option<OwnedFd>)> {
        let (errno, mut fds) = self.ask_each(request, message).await?;
        Ok((errno, fds.take(0)))
    }

    /// The same, where the answer may have several descriptors.
    pub(crate) async fn ask_each(&self, request: u32, message: &[u8]) -> Result<Answer> {
        let (sender, receiver) = oneshot::channel();
        self.waiting().answers.insert(request, sender);
        self.send(message, &[])?;
        receiver.await.map_err(|_| gone())
    }

    /// Init's end is closed: everyone who waits hears of it, and what ran is lost.
    pub(crate) fn close(&self) {
        self.release_files();
        let mut waiting = self.waiting();
        waiting.is_closed = true;
        waiting.ready = None;
        waiting.starts.clear();
        waiting.answers.clear();
        for process in waiting.processes.values() {
            process.ended(ExitStatus::Lost);
        }
        self.closed.send_replace(true);
    }

    /// Waits until init's end is closed.
    pub(crate) async fn is_over(&self) {
        // The sender is this connection's own.
        let _ = self.closed.subscribe().wait_for(|is_closed| *is_closed).await;
    }

    fn dispatch(&self, event: Event, mut fds: socket::Fds) {
        let mut waiting = self.waiting();
        match event {
            Event::Ready { controls } => {
                waiting.proven = waiting.proven.union(controls);
                if let Some(folder) = fds.take(0) {
                    *self.workspace.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
                }
                if let Some(sender) = waiting.ready.take() {
                    let _ = sender.send(Ok(controls));
                }
            }
            Event::Failed { stage, errno, missing } => {
                if let Some(sender) = waiting.ready.take() {
                    let _ = sender.send(Err((stage, errno, missing)));
                }
            }
            Event::Started { process, controls } => {
                waiting.proven = waiting.proven.union(controls);
                waiting.has_started = true;
                if let Some(start) = waiting.starts.remove(&process) {
                    let _ = start.told.send(Ok(fds));
                }
            }
            Event::NotStarted { process, stage, errno, missing } => {
                if let Some(start) = waiting.starts.remove(&process) {
                    let _ = start.told.send(Err((stage, errno, missing)));
                }
            }
            Event::Exited { process, status } => {
                if let Some(process) = waiting.processes.get(&process) {
                    process.ended(exit_status(status));
                }
            }
            Event::OutOfMemory => waiting.out_of_memory += 1,
            Event::Reply { request, errno } => {
                if let Some(sender) = waiting.answers.remove(&request) {
                    let _ = sender.send((errno, fds));
                }
            }
        }
    }
}

impl Connection {
    /// Waits until something may be started.
    pub(crate) async fn start_turn(&self) -> StartTurn {
        Arc::clone(&self.turns).read_owned().await
    }

    /// The turn of a sandbox that is being made: nobody can have paused it.
    pub(crate) fn first_turn(&self) -> Result<StartTurn> {
        Arc::clone(&self.turns).try_read_owned().map_err(|_| gone())
    }

    /// Waits until init has answered every start, and is not about to make a process of its own accord.
    pub(crate) async fn no_starts(&self) -> Result<NoStarts> {
        let mut turn = Arc::clone(&self.turns).write_owned().await;
        if !self.waiting().has_started {
            self.probe(turn.downgrade()).await?;
            turn = Arc::clone(&self.turns).write_owned().await;
        }
        Ok(turn)
    }

    /// Sends a start request; init may get to it later. What comes of it is for `finish`.
    pub(crate) fn begin_start(
        connection: &Arc<Self>,
        turn: StartTurn,
        spec: ProcessSpec,
    ) -> Result<PendingStart> {
        let id = connection.next();
        let state = Arc::new(ProcessState::new(id));
        let (told, receiver) = oneshot::channel();
        {
            let mut waiting = connection.waiting();
            waiting.starts.insert(id, Starting { told, _turn: turn });
            waiting.processes.insert(id, Arc::clone(&state));
        }
        let pending = PendingStart { connection: Arc::clone(connection), state, spec, receiver };
        match connection.send_start(id, &pending.spec) {
            Ok(()) => Ok(pending),
            Err(error) => {
                connection.forget(id);
                Err(error)
            }
        }
    }

    fn forget(&self, process: u32) {
        let mut waiting = self.waiting();
        waiting.starts.remove(&process);
        waiting.processes.remove(&process);
    }

    fn send_start(&self, id: u32, spec: &ProcessSpec) -> Result<()> {
        let stdio = match spec.stdio {
            Stdio::Terminal { rows, columns } => StdioRequest::Terminal { rows, columns },
            Stdio::Pipes { stdin } => StdioRequest::Pipes { stdin },
        };
        let strings =
            spec.argv.iter().map(String::len).chain(spec.env.iter().map(|(k, v)| k.len() + v.len() + 1));
        let room = strings.map(|len| len + 5).sum::<usize>() + spec.cwd.as_str().len() + 64;
        if room > MAX_START_BYTES || spec.argv.len() + spec.env.len() > MAX_STRINGS {
            return Err(too_large(sys::Errno(libc::E2BIG)));
        }
        let mut buffer = vec![0; room];
        let cwd = spec.cwd.as_str();
        let message =
            protocol::encode_start(&mut buffer, id, stdio, spec.make_cwd, cwd, &spec.argv, &spec.env);
        let message = message.map_err(too_large)?;
        if message.len() <= MAX_MESSAGE { self.send(message, &[]) } else { self.send_start_as_file(message) }
    }

    fn send_start_as_file(&self, message: &[u8]) -> Result<()> {
        let failed = |e: io::Error| BackendError::failed("passing a long command", e);
        let mut file = std::fs::File::from(sys::memory_file().map_err(|e| failed(e.into()))?);
        file.write_all(message).map_err(failed)?;
        let mut buffer = [0; 16];
        let message = protocol::encode_start_from(&mut buffer).map_err(|e| failed(e.into()))?;
        self.send(message, &[file.as_raw_fd()])
    }

    /// Has a process prove its walls; what it proved is in `waiting` afterwards.
    pub(crate) async fn probe(&self, turn: StartTurn) -> Result<()> {
        let id = self.next();
        let mut buffer = [0; 16];
        let message = protocol::encode_probe(&mut buffer, id).map_err(too_large)?;
        let (told, receiver) = oneshot::channel();
        self.waiting().starts.insert(id, Starting { told, _turn: turn });
        if let Err(error) = self.send(message, &[]) {
            self.forget(id);
            return Err(error);
        }
        match receiver.await.map_err(|_| gone())? {
            Ok(_) => Ok(()),
            Err((stage, errno, missing)) => Err(report::probe_error(stage, errno, missing)),
        }
    }
}

/// A start that init was asked for.
pub(crate) struct PendingStart {
    connection: Arc<Connection>,
    state: Arc<ProcessState>,
    spec: ProcessSpec,
    receiver: oneshot::Receiver<Started>,
}

impl PendingStart {
    pub(crate) async fn finish(self) -> Result<NativeProcess> {
        let Self { connection, state, spec, receiver } = self;
        let started = receiver.await.map_err(|_| gone())?;
        let fds = started.map_err(|(stage, errno, missing)| {
            connection.forget(state.id);
            report::start_error(&spec, stage, errno, missing)
        })?;
        let streams = connect(fds, spec.stdio).map_err(|e| BackendError::failed("connecting stdio", e))?;
        *state.streams() = streams;
        Ok(NativeProcess { state, connection })
    }
}

/// The host's ends of a process's stdio, as streams.
fn connect(mut fds: socket::Fds, stdio: Stdio) -> io::Result<Streams> {
    let mut next = |i| fds.take(i).ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof));
    if let Stdio::Terminal { .. } = stdio {
        let Terminal { reader, writer, control } = Terminal::new(next(0)?)?;
        return Ok(Streams {
            stdin: Some(writer),
            stdout: Some(reader),
            stderr: None,
            terminal: Some(control),
        });
    }
    Ok(Streams {
        stdout: Some(streams::pipe_reader(next(0)?)?),
        stderr: Some(streams::pipe_reader(next(1)?)?),
        stdin: next(2).ok().map(streams::pipe_writer).transpose()?,
        terminal: None,
    })
}

async fn read_events(connection: Arc<Connection>) {
    let mut buffer = [0; EVENT_BYTES];
    while let Ok((n, fds)) = connection.socket.receive(&mut buffer).await {
        // A length of 0 is init's end, and bytes that say nothing are no better.
        match Event::decode(&buffer[..n]) {
            Ok(event) => connection.dispatch(event, fds),
            Err(_) => break,
        }
    }
    connection.close();
}

fn exit_status(status: i32) -> ExitStatus {
    if libc::WIFSIGNALED(status) {
        ExitStatus::Signaled(libc::WTERMSIG(status))
    } else {
        ExitStatus::Exited(libc::WEXITSTATUS(status))
    }
}

pub(crate) fn gone() -> BackendError {
    BackendError::Gone { cause: "its init ended".to_owned() }
}

pub(crate) fn too_large(_: sys::Errno) -> BackendError {
    let fix = format!(
        "arguments and environment must fit in {} MiB together, without NUL bytes",
        MAX_START_BYTES >> 20
    );
    BackendError::Invalid(cofferdam_core::InvalidValue::new("command", "…", fix))
}
