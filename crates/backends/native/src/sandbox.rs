//! One sandbox, as the host holds it: a socket to its init, and its group on the host.

use crate::launcher::Launcher;
use crate::ports::{self, V4, V6};
use crate::process::{NativeProcess, ProcessState};
use crate::report;
use crate::streams::{self, Packets, Terminal};
use cofferdam_backend::{
    BackendError, Entry, EntryKind, ExitStatus, Listener, OomScope, Process, ProcessId, ProcessSpec, Reader, Result,
    Sandbox, SandboxSpec, Stats, Stdio, Stream, async_trait,
};
use cofferdam_core::{Control, GuestPath, IsolationReport, Limits, ResourceUsage};
use cofferdam_linux::cgroup::{CgroupLimits, Layout};
use cofferdam_linux::protocol::{self, EVENT_BYTES, Event, MAX_START_BYTES, MAX_STRINGS, StdioRequest};
use cofferdam_linux::socket::{self, MAX_MESSAGE};
use cofferdam_linux::{ControlSet, Stage, slots, sys};
use std::collections::HashMap;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;

/// What init answers to a request: an error number, and a descriptor if there was none.
type Answer = (i32, Option<OwnedFd>);

/// How a start went: the host's ends of its stdio, or what failed.
type Started = std::result::Result<socket::Fds, (Stage, i32, ControlSet)>;

#[derive(Default)]
struct Waiting {
    ready: Option<oneshot::Sender<std::result::Result<ControlSet, (Stage, i32, ControlSet)>>>,
    starts: HashMap<u32, oneshot::Sender<Started>>,
    answers: HashMap<u32, oneshot::Sender<Answer>>,
    processes: HashMap<u32, Arc<ProcessState>>,
    proven: ControlSet,
    is_closed: bool,
}

/// The host's end of init's socket.
pub(crate) struct Connection {
    socket: Packets,
    waiting: Mutex<Waiting>,
    next: AtomicU32,
}

type ReadyReceiver = oneshot::Receiver<std::result::Result<ControlSet, (Stage, i32, ControlSet)>>;

impl Connection {
    /// Wraps the socket and starts to listen to it.
    pub(crate) fn new(socket: OwnedFd) -> io::Result<(Arc<Self>, ReadyReceiver)> {
        let socket = Packets::new(socket)?;
        let (sender, receiver) = oneshot::channel();
        let waiting = Waiting { ready: Some(sender), ..Waiting::default() };
        let connection = Arc::new(Self { socket, waiting: Mutex::new(waiting), next: AtomicU32::new(1) });
        tokio::spawn(read_events(Arc::clone(&connection)));
        Ok((connection, receiver))
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn send(&self, message: &[u8], fds: &[RawFd]) -> Result<()> {
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

    pub(crate) fn signal(&self, process: u32, signal: i32) -> Result<()> {
        let mut buffer = [0; 64];
        let message = protocol::encode_signal(&mut buffer, process, signal).map_err(too_large)?;
        self.send(message, &[])
    }

    /// Sends a request that is answered once, and waits for the answer.
    async fn ask(&self, request: u32, message: &[u8]) -> Result<Answer> {
        let (sender, receiver) = oneshot::channel();
        self.waiting().answers.insert(request, sender);
        self.send(message, &[])?;
        receiver.await.map_err(|_| gone())
    }

    /// Init's end is closed: everyone who waits hears of it, and what ran is lost.
    fn close(&self) {
        let mut waiting = self.waiting();
        waiting.is_closed = true;
        waiting.ready = None;
        waiting.starts.clear();
        waiting.answers.clear();
        for process in waiting.processes.values() {
            process.ended(ExitStatus::Lost);
        }
    }

    fn dispatch(&self, event: Event, mut fds: socket::Fds) {
        let mut waiting = self.waiting();
        match event {
            Event::Ready { controls } => {
                waiting.proven = waiting.proven.union(controls);
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
                if let Some(sender) = waiting.starts.remove(&process) {
                    let _ = sender.send(Ok(fds));
                }
            }
            Event::NotStarted { process, stage, errno, missing } => {
                if let Some(sender) = waiting.starts.remove(&process) {
                    let _ = sender.send(Err((stage, errno, missing)));
                }
            }
            Event::Exited { process, status } => {
                if let Some(process) = waiting.processes.get(&process) {
                    process.ended(exit_status(status));
                }
            }
            Event::Reply { request, errno } => {
                if let Some(sender) = waiting.answers.remove(&request) {
                    let _ = sender.send((errno, fds.take(0)));
                }
            }
        }
    }
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

fn gone() -> BackendError {
    BackendError::Gone { cause: "its init ended".to_owned() }
}

fn too_large(_: sys::Errno) -> BackendError {
    let fix = format!("arguments and environment must fit in {} MiB together, without NUL bytes", MAX_START_BYTES >> 20);
    BackendError::Invalid(cofferdam_core::InvalidValue::new("command", "…", fix))
}

/// A sandbox of this machine.
pub(crate) struct NativeSandbox {
    pub(crate) spec: SandboxSpec,
    pub(crate) number: u32,
    pub(crate) slot: u32,
    pub(crate) connection: Arc<Connection>,
    pub(crate) launcher: Launcher,
    pub(crate) layout: Arc<Layout>,
    /// What the launcher proved; init adds to it.
    pub(crate) proven: ControlSet,
    pub(crate) is_destroyed: tokio::sync::Mutex<bool>,
    pub(crate) is_paused: AtomicBool,
    /// Closed when init is gone: whoever holds it knows.
    pub(crate) pidfd: Option<OwnedFd>,
}

impl std::fmt::Debug for NativeSandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeSandbox").field("id", &self.spec.id).field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl Drop for NativeSandbox {
    fn drop(&mut self) {
        if !*self.is_destroyed.get_mut() {
            self.launcher.destroy_quietly(self.number);
        }
    }
}

/// Flags of a file that is opened for the host.
const READ: i32 = libc::O_RDONLY;
const WRITE: i32 = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
const FOLDER: i32 = libc::O_RDONLY | libc::O_DIRECTORY;

impl NativeSandbox {
    fn group(&self) -> String {
        slots::slot_name(self.slot)
    }

    async fn open(&self, path: &GuestPath, flags: i32, mode: u32, make_parents: bool) -> Result<OwnedFd> {
        let request = self.connection.next();
        let mut buffer = vec![0; path.as_str().len() + 64];
        let message = protocol::encode_open(&mut buffer, request, flags, mode, make_parents, path.relative());
        let (errno, fd) = self.connection.ask(request, message.map_err(too_large)?).await?;
        fd.filter(|_| errno == 0).ok_or_else(|| report::file_error(path, errno))
    }

    /// Opens a path and refuses anything but a plain file: what waits behind a FIFO or a device is the guest's.
    async fn open_plain(&self, path: &GuestPath, flags: i32, mode: u32, make_parents: bool) -> Result<std::fs::File> {
        let file = std::fs::File::from(self.open(path, flags, mode, make_parents).await?);
        let is_plain = file.metadata().is_ok_and(|metadata| metadata.is_file());
        if is_plain { Ok(file) } else { Err(report::not_plain(path)) }
    }

    async fn socket(&self, family: i32) -> Result<OwnedFd> {
        let request = self.connection.next();
        let mut buffer = [0; 64];
        let message = protocol::encode_socket(&mut buffer, request, family).map_err(too_large)?;
        let (errno, fd) = self.connection.ask(request, message).await?;
        fd.filter(|_| errno == 0)
            .ok_or_else(|| BackendError::failed("making a socket", io::Error::from_raw_os_error(errno)))
    }

    fn send_start(&self, id: u32, spec: &ProcessSpec) -> Result<()> {
        let stdio = match spec.stdio {
            Stdio::Terminal { rows, columns } => StdioRequest::Terminal { rows, columns },
            Stdio::Pipes { stdin } => StdioRequest::Pipes { stdin },
        };
        let strings = spec.argv.iter().map(String::len).chain(spec.env.iter().map(|(k, v)| k.len() + v.len() + 1));
        let room = strings.map(|len| len + 5).sum::<usize>() + spec.cwd.as_str().len() + 64;
        if room > MAX_START_BYTES || spec.argv.len() + spec.env.len() > MAX_STRINGS {
            return Err(too_large(sys::Errno(libc::E2BIG)));
        }
        let mut buffer = vec![0; room];
        let cwd = spec.cwd.as_str();
        let message = protocol::encode_start(&mut buffer, id, stdio, spec.make_cwd, cwd, &spec.argv, &spec.env);
        let message = message.map_err(too_large)?;
        if message.len() <= MAX_MESSAGE {
            return self.connection.send(message, &[]);
        }
        let failed = |e: sys::Errno| BackendError::failed("passing a long command", e.into());
        let file = sys::memory_file().map_err(failed)?;
        let mut file = std::fs::File::from(file);
        file.write_all(message).map_err(|e| BackendError::failed("passing a long command", e))?;
        let mut buffer = [0; 16];
        let message = protocol::encode_start_from(&mut buffer).map_err(failed)?;
        self.connection.send(message, &[file.as_raw_fd()])
    }

    /// Waits until a start or a probe is answered; the process is forgotten where it failed.
    async fn started(
        &self,
        id: u32,
        send: impl FnOnce() -> Result<()>,
        explain: impl FnOnce(Stage, i32, ControlSet) -> BackendError,
    ) -> Result<socket::Fds> {
        let (sender, receiver) = oneshot::channel();
        self.connection.waiting().starts.insert(id, sender);
        let forget = || {
            let mut waiting = self.connection.waiting();
            waiting.starts.remove(&id);
            waiting.processes.remove(&id);
        };
        send().inspect_err(|_| forget())?;
        let started = receiver.await.map_err(|_| gone())?;
        started.map_err(|(stage, errno, missing)| {
            forget();
            explain(stage, errno, missing)
        })
    }
}

/// The host's ends of a process's stdio, as streams.
fn connect(mut fds: socket::Fds, stdio: Stdio) -> io::Result<crate::process::Streams> {
    let mut next = |i| fds.take(i).ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof));
    if let Stdio::Terminal { .. } = stdio {
        let Terminal { reader, writer, control } = Terminal::new(next(0)?)?;
        return Ok(crate::process::Streams {
            stdin: Some(writer),
            stdout: Some(reader),
            stderr: None,
            terminal: Some(control),
        });
    }
    Ok(crate::process::Streams {
        stdout: Some(streams::pipe_reader(next(0)?)?),
        stderr: Some(streams::pipe_reader(next(1)?)?),
        stdin: next(2).ok().map(streams::pipe_writer).transpose()?,
        terminal: None,
    })
}

#[async_trait]
impl Sandbox for NativeSandbox {
    async fn start(&self, spec: ProcessSpec) -> Result<Box<dyn Process>> {
        let is_terminal = matches!(spec.stdio, Stdio::Terminal { .. });
        if is_terminal && !self.spec.terminal {
            return Err(BackendError::Unsupported { backend: "native", what: "add a terminal to a sandbox made without" });
        }
        if spec.argv.is_empty() || spec.argv[0].is_empty() {
            let fix = "name a program to run";
            return Err(cofferdam_core::InvalidValue::new("command", "", fix).into());
        }
        let id = self.connection.next();
        let state = Arc::new(ProcessState::new(id));
        self.connection.waiting().processes.insert(id, Arc::clone(&state));
        let send = || self.send_start(id, &spec);
        let fds = self.started(id, send, |stage, errno, missing| report::start_error(&spec, stage, errno, missing));
        let streams = connect(fds.await?, spec.stdio);
        *state.streams() = streams.map_err(|e| BackendError::failed("connecting stdio", e))?;
        Ok(Box::new(NativeProcess { state, connection: Arc::clone(&self.connection) }))
    }

    fn attach(&self, id: ProcessId) -> Result<Box<dyn Process>> {
        let waiting = self.connection.waiting();
        if waiting.is_closed {
            return Err(gone());
        }
        match waiting.processes.get(&id.0).cloned() {
            Some(state) => Ok(Box::new(NativeProcess { state, connection: Arc::clone(&self.connection) })),
            None => Err(BackendError::NotFound { path: format!("process {}", id.0) }),
        }
    }

    async fn read_file(&self, path: &GuestPath) -> Result<Reader> {
        let file = self.open_plain(path, READ, 0, false).await?;
        Ok(Box::new(tokio::fs::File::from_std(file)))
    }

    async fn write_file(&self, path: &GuestPath, mode: u32, mut content: Reader) -> Result<u64> {
        let file = self.open_plain(path, WRITE, mode & 0o777, true).await?;
        let mut file = tokio::fs::File::from_std(file);
        let failed = |e| BackendError::failed(format!("writing {path}"), e);
        let written = tokio::io::copy(&mut content, &mut file).await.map_err(failed)?;
        file.flush().await.map_err(failed)?;
        Ok(written)
    }

    async fn make_folder(&self, path: &GuestPath) -> Result<()> {
        let request = self.connection.next();
        let mut buffer = vec![0; path.as_str().len() + 64];
        let message = protocol::encode_make_folder(&mut buffer, request, path.relative()).map_err(too_large)?;
        match self.connection.ask(request, message).await? {
            (0, _) => Ok(()),
            (errno, _) => Err(report::file_error(path, errno)),
        }
    }

    async fn list_files(&self, path: &GuestPath, limit: usize) -> Result<Vec<Entry>> {
        let folder = self.open(path, FOLDER, 0, false).await?;
        let path = path.clone();
        let listed = tokio::task::spawn_blocking(move || list(&folder, limit)).await;
        match listed {
            Ok(entries) => entries.map_err(|e| BackendError::failed(format!("listing {path}"), e)),
            Err(error) => Err(BackendError::failed(format!("listing {path}"), io::Error::other(error))),
        }
    }

    async fn connect(&self, port: u16) -> Result<Box<dyn Stream>> {
        match ports::connect(self.socket(ports::family(V4)).await?, V4, port).await {
            Ok(stream) => Ok(stream),
            Err(first) => {
                let socket = self.socket(ports::family(V6)).await?;
                ports::connect(socket, V6, port).await.map_err(|_| first)
            }
        }
    }

    async fn listen(&self, port: u16) -> Result<Box<dyn Listener>> {
        ports::listen(self.socket(ports::family(V4)).await?, port)
    }

    async fn stats(&self) -> Result<Stats> {
        let usage = self.layout.usage(&self.group());
        let files = self.open(&report::workspace(), FOLDER, 0, false).await;
        let files = files.ok().and_then(|fd| sys::statfs(fd.as_raw_fd()).ok());
        Ok(Stats {
            usage: ResourceUsage {
                cpu_percent: None,
                cpu_time_ms: usage.cpu_time_us.map(|us| us / 1000),
                memory_bytes: usage.memory_bytes,
                memory_peak_bytes: usage.memory_peak_bytes,
                pids_peak: usage.pids_peak,
                io_bytes: usage.io_bytes,
            },
            oom_kills: usage.oom_kills,
            memory_limit_hits: usage.memory_limit_hits,
            pids_limit_hits: usage.pids_limit_hits,
            cpu_throttled: usage.cpu_throttled,
            disk_free_bytes: files.map(|f| f.blocks_available * f.block_bytes as u64),
            disk_free_inodes: files.map(|f| f.inodes_free),
        })
    }

    async fn isolation(&self) -> Result<IsolationReport> {
        let id = self.connection.next();
        if !self.connection.waiting().proven.has(Control::NoNewPrivs) {
            // No process has proven its walls yet, so one is made for that.
            let send = || {
                let mut buffer = [0; 16];
                let message = protocol::encode_probe(&mut buffer, id).map_err(too_large)?;
                self.connection.send(message, &[])
            };
            self.started(id, send, |stage, errno, missing| report::probe_error(stage, errno, missing)).await?;
        }
        let proven = self.proven.union(self.connection.waiting().proven);
        Ok(report::isolation(&self.spec, proven, &self.layout))
    }

    async fn change_limits(&self, limits: &Limits) -> Result<()> {
        limits.validate()?;
        let limits = CgroupLimits {
            memory_bytes: limits.memory_bytes,
            pids: limits.pids,
            cpu_millis: limits.cpus.millis(),
            oom_group: self.spec.oom_scope == OomScope::Sandbox,
            leave_out: ControlSet::EMPTY,
        };
        let changed = self.layout.change_limits(&self.group(), &limits);
        changed.map_err(|e| BackendError::failed("changing the limits", e))
    }

    async fn pause(&self) -> Result<()> {
        self.freeze(true).await
    }

    async fn resume(&self) -> Result<()> {
        self.freeze(false).await
    }

    async fn destroy(&self) -> Result<()> {
        let mut is_destroyed = self.is_destroyed.lock().await;
        if *is_destroyed {
            return Ok(());
        }
        if self.is_paused.load(Ordering::Relaxed) {
            let _ = self.layout.thaw_for_kill(&self.group());
        }
        let answer = self.launcher.destroy(self.number)?;
        let errno = answer.await.map_err(|_| self.launcher.gone())?;
        *is_destroyed = true;
        self.connection.close();
        match errno {
            0 => Ok(()),
            _ => Err(BackendError::failed("cleaning up", io::Error::from_raw_os_error(errno))),
        }
    }
}

impl NativeSandbox {
    async fn freeze(&self, frozen: bool) -> Result<()> {
        if self.connection.waiting().is_closed {
            return Err(gone());
        }
        let (layout, group) = (Arc::clone(&self.layout), self.group());
        let step = if frozen { "pausing" } else { "resuming" };
        if frozen {
            self.is_paused.store(true, Ordering::Relaxed);
        }
        match tokio::task::spawn_blocking(move || layout.freeze(&group, frozen)).await {
            Ok(done) => done.map_err(|e| BackendError::failed(step, e)),
            Err(error) => Err(BackendError::failed(step, io::Error::other(error))),
        }
    }
}

/// Lists a folder that is open. Names come through the descriptor, and no link is followed for their kinds.
fn list(folder: &OwnedFd, limit: usize) -> io::Result<Vec<Entry>> {
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path)?.take(limit) {
        let entry = entry?;
        let Ok(metadata) = entry.metadata() else { continue };
        let kind = match metadata.file_type() {
            kind if kind.is_file() => EntryKind::File,
            kind if kind.is_dir() => EntryKind::Folder,
            kind if kind.is_symlink() => EntryKind::Link,
            _ => EntryKind::Other,
        };
        let name = entry.file_name().into_encoded_bytes();
        entries.push(Entry { name, kind, size_bytes: metadata.len() });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}
