//! Between the helper and a program: a process of our own that puts up what is left to put up, gets its streams and
//! its request over a socket, and executes the program. Before that it looks at its walls, if it is asked to. It says
//! what it saw, and what failed, on the same socket, which closes by itself when the program begins.
//!
//! It waits behind every wall, so that one that was made ahead (`spare`) and one that is made when it is asked for are
//! the same.

use super::LockDown;
use crate::facts::{self, Facts};
use crate::protocol::{Failure, Step};
use nix::sys::signal::SigSet;
use nix::unistd::Pid;
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, ResolveFlags, memfd_create, openat2};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, recvmsg, send, sendmsg, shutdown,
    socketpair,
};
use rustix::process::{DumpableBehavior, fchdir, ioctl_tiocsctty, set_dumpable_behavior, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stdin};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, ExitCode, Stdio};

/// The second word of the command line.
pub(super) const WORD: &str = "launch";

/// What is to be executed, and how.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Launch {
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: String,
    pub(super) make_cwd: bool,
    pub(super) terminal: bool,
}

/// The request, and its stdin, stdout and stderr.
const PASSED: usize = 4;

/// The byte that asks for a look, and the one that comes with a request.
const LOOK: u8 = b'?';
const EXECUTE: u8 = b'!';

/// What the process answers, each on a line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Said {
    Seen(Box<Facts>),
    Failed(Failure),
}

/// A process that waits for what it is to do.
#[derive(Debug)]
pub(super) struct Launched {
    pub(super) pid: Pid,
    pub(super) socket: OwnedFd,
}

/// Starts the process.
pub(super) fn begin() -> Result<Launched, Errno> {
    let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let mut command = Command::new("/proc/self/exe");
    // In the helper's own folder: with another one the library would copy the helper before it executes it again.
    command.args([crate::WORD, WORD]).env_clear();
    command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command
        .spawn()
        .map_err(|error| error.raw_os_error().map_or(Errno::AGAIN, Errno::from_raw_os_error))?;
    Ok(Launched { pid: Pid::from_raw(child.id() as i32), socket })
}

impl Launched {
    /// Has it execute a program; its socket will say how that went.
    pub(super) fn execute(&self, launch: &Launch, streams: &[OwnedFd; 3]) -> Result<(), Errno> {
        let request = File::from(memfd_create("request", MemfdFlags::CLOEXEC)?);
        let json = serde_json::to_vec(launch).map_err(|_| Errno::INVAL)?;
        (&request).write_all(&json).map_err(|_| Errno::NOSPC)?;
        let [first, second, third] = streams;
        let passed = [request.as_fd(), first.as_fd(), second.as_fd(), third.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PASSED))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&passed));
        // One byte into an empty socket: it does not wait.
        sendmsg(&self.socket, &[IoSlice::new(&[EXECUTE])], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Has it look at its walls. It goes on to wait, unless it hears that there is nothing more.
    pub(super) fn look(&self) -> Result<(), Errno> {
        send(&self.socket, &[LOOK], SendFlags::NOSIGNAL).map(drop)
    }

    pub(super) fn end_of_requests(&self) -> Result<(), Errno> {
        shutdown(&self.socket, Shutdown::Write)
    }
}

/// What it said on a line.
pub(super) fn said(line: &[u8]) -> Option<Said> {
    serde_json::from_slice(line).ok()
}

/// All that it said, or nothing: then the socket closed because the program began.
pub(super) fn last_word(socket: &OwnedFd) -> Option<Said> {
    said(&received(socket))
}

/// Everything up to the end of the socket. Whoever holds the other end is our own code, about to end.
fn received(socket: &OwnedFd) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(copy) = socket.try_clone() {
        let _ = File::from(copy).read_to_end(&mut bytes);
    }
    bytes
}

/// The process itself.
pub(super) fn run(lock_down: LockDown) -> ExitCode {
    // Chosen first when memory runs out: the helper stays and tells of it.
    let is_victim = std::fs::write("/proc/self/oom_score_adj", "1000").is_ok();
    // Until it is the caller's own program it is nobody else's.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let Ok(socket) = fcntl_dupfd_cloexec(stdin(), 3) else { return ExitCode::FAILURE };
    let locked = prepare(lock_down);
    loop {
        let Ok(Some((byte, passed))) = receive(&socket) else { return ExitCode::FAILURE };
        let said = match (&locked, byte) {
            (Err(failure), _) => Said::Failed(*failure),
            (Ok(()), LOOK) => Said::Seen(Box::new(facts::look(is_victim))),
            (Ok(()), _) => match launch(passed) {
                Ok(never) => match never {},
                Err(failure) => Said::Failed(failure),
            },
        };
        let is_as_before = matches!(&said, Said::Seen(facts) if !facts.changed_it());
        if say(&socket, &said).is_err() || !is_as_before {
            return ExitCode::FAILURE;
        }
    }
}

fn say(socket: &OwnedFd, said: &Said) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(said)?;
    line.push(b'\n');
    File::from(socket.try_clone()?).write_all(&line)
}

fn at(step: Step) -> impl Fn(Errno) -> Failure {
    move |errno| Failure { step, errno: errno.raw_os_error() }
}

/// A session of its own, and its signals as they are by default; then the last wall.
fn prepare(lock_down: LockDown) -> Result<(), Failure> {
    let _ = SigSet::empty().thread_set_mask();
    setsid().map_err(at(Step::Prepare))?;
    lock_down().map_err(|errno| Failure { step: Step::Prepare, errno })
}

/// The next byte and what came with it; nothing at the end.
fn receive(socket: &OwnedFd) -> Result<Option<(u8, Vec<OwnedFd>)>, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PASSED))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    // Whoever was stopped while it waited may be told so (gVisor's kernel does), and waits on.
    let received = loop {
        let mut bytes = [IoSliceMut::new(&mut byte)];
        match recvmsg(socket, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received?.bytes,
        }
    };
    let passed = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
        _ => Vec::new(),
    });
    Ok((received > 0).then(|| (byte[0], passed.collect())))
}

fn launch(passed: Vec<OwnedFd>) -> Result<std::convert::Infallible, Failure> {
    let prepare = at(Step::Prepare);
    let [request, streams @ ..]: [OwnedFd; PASSED] = passed.try_into().map_err(|_| prepare(Errno::BADF))?;
    let mut json = Vec::new();
    let mut request = File::from(request);
    let read = request.seek(SeekFrom::Start(0)).and_then(|_| request.read_to_end(&mut json));
    let launch: Option<Launch> = read.ok().and_then(|_| serde_json::from_slice(&json).ok());
    let launch = launch.ok_or(prepare(Errno::IO))?;
    connect(&launch, streams).map_err(prepare)?;
    execute(&launch)
}

fn connect(launch: &Launch, [input, output, errors]: [OwnedFd; 3]) -> Result<(), Errno> {
    dup2_stdin(&input)?;
    dup2_stdout(&output)?;
    dup2_stderr(&errors)?;
    if launch.terminal { ioctl_tiocsctty(stdin()) } else { Ok(()) }
}

fn execute(launch: &Launch) -> Result<std::convert::Infallible, Failure> {
    enter(launch).map_err(at(Step::Workdir))?;
    become_it(launch).map_err(at(Step::Execute))
}

/// By the kernel's own call: the library's would sort the environment, and hand what the kernel does not take to a shell.
fn become_it(launch: &Launch) -> Result<std::convert::Infallible, Errno> {
    let text = |text: String| CString::new(text).map_err(|_| Errno::INVAL);
    let program = text(find(launch)?)?;
    let argv: Vec<_> = launch.argv.iter().cloned().map(text).collect::<Result<_, _>>()?;
    let variable = |(name, value): &(String, String)| text(format!("{name}={value}"));
    let env: Vec<_> = launch.env.iter().map(variable).collect::<Result<_, _>>()?;
    nix::unistd::execve(&program, &argv, &env).map_err(|errno| Errno::from_raw_os_error(errno as i32))
}

/// Links to folders are fine, links to descriptors are not; where the kernel cannot tell them apart, none of
/// ours is a folder.
fn enter(launch: &Launch) -> Result<(), Errno> {
    if launch.make_cwd && !std::path::Path::new(&launch.cwd).is_dir() {
        super::files::make_folder(&launch.cwd)?;
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat2(CWD, &*launch.cwd, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::NOSYS) => rustix::process::chdir(&*launch.cwd),
        opened => fchdir(opened?),
    }
}

/// The program by its path, or by its name in the `PATH` that it will have.
fn find(launch: &Launch) -> Result<String, Errno> {
    let name = launch.argv.first().filter(|name| !name.is_empty()).ok_or(Errno::NOENT)?;
    if name.contains('/') {
        return Ok(name.clone());
    }
    let path = launch.env.iter().find(|(key, _)| key == "PATH").map_or("", |(_, value)| value);
    let mut denied = false;
    for folder in path.split(':').filter(|folder| !folder.is_empty()) {
        let candidate = format!("{folder}/{name}");
        match rustix::fs::access(&*candidate, rustix::fs::Access::EXEC_OK) {
            Ok(()) if std::path::Path::new(&candidate).is_file() => return Ok(candidate),
            Err(Errno::ACCESS) => denied = true,
            _ => {}
        }
    }
    Err(if denied { Errno::ACCESS } else { Errno::NOENT })
}
