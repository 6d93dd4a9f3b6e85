//! The processes of the sandbox: started by way of `launch`, reaped here, orphans included.

use super::channels::Channels;
use super::launch::{self, Launch, Launched, Said};
use super::spare::Spare;
use super::{Options, Out, stats};
use crate::protocol::{Answer, End, Event, Failure, Start, Step};
use nix::errno::Errno as NixErrno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitOptions, wait};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

#[derive(Debug)]
struct Process {
    pid: Pid,
    /// The request that is answered, and the socket that says how, until it executes its program.
    launching: Option<(u32, OwnedFd)>,
    terminal: Option<Rc<OwnedFd>>,
    looks: bool,
}

#[derive(Debug)]
pub(super) struct Processes {
    options: Options,
    oom_kills: Option<u64>,
    running: BTreeMap<u32, Process>,
    spare: Option<Spare>,
    /// What was asked for while the spare was looking at its walls, in that order.
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
enum Waiting {
    Look(u32),
    Start(u32, Box<Start>),
}

/// The numbers of processes that look at their walls; the host counts from 1.
const LOOKS_FROM: u32 = 1 << 31;

fn preparing(errno: Errno) -> Failure {
    Failure { step: Step::Prepare, errno: errno.raw_os_error() }
}

fn set_size(terminal: impl AsFd, rows: u16, columns: u16) -> Result<(), Errno> {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size)
}

/// Our side of its stdin, stdout and stderr, and then its own.
struct Streams {
    ours: [Option<OwnedFd>; 3],
    theirs: [OwnedFd; 3],
}

fn nonblocking(fd: &OwnedFd) -> Result<(), Errno> {
    rustix::fs::fcntl_setfl(fd, rustix::fs::fcntl_getfl(fd)? | OFlags::NONBLOCK)
}

fn pipes(has_stdin: bool) -> Result<Streams, Errno> {
    let (stdin, our_stdin) = if has_stdin {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        nonblocking(&writer)?;
        (reader, Some(writer))
    } else {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        (rustix::fs::open("/dev/null", flags, Mode::empty())?, None)
    };
    let [(our_stdout, stdout), (our_stderr, stderr)] =
        [pipe_with(PipeFlags::CLOEXEC)?, pipe_with(PipeFlags::CLOEXEC)?];
    nonblocking(&our_stdout)?;
    nonblocking(&our_stderr)?;
    Ok(Streams { ours: [our_stdin, Some(our_stdout), Some(our_stderr)], theirs: [stdin, stdout, stderr] })
}

fn terminal(rows: u16, columns: u16) -> Result<(OwnedFd, [OwnedFd; 3]), Errno> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let slave = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    set_size(&master, rows, columns)?;
    nonblocking(&master)?;
    let copies = [slave.try_clone(), slave.try_clone()];
    let [Ok(second), Ok(third)] = copies else { return Err(Errno::MFILE) };
    Ok((master, [slave, second, third]))
}

impl Processes {
    pub(super) fn new(options: Options) -> Self {
        let oom_kills = stats::oom_kills();
        Self { options, oom_kills, running: BTreeMap::new(), spare: None, waiting: Vec::new() }
    }

    /// Makes the first process ahead.
    pub(super) fn make_spare(&mut self) {
        self.spare = Spare::make();
    }

    /// The socket of a spare that is looking at its walls.
    pub(super) fn spare(&self) -> Option<BorrowedFd<'_>> {
        self.spare.as_ref()?.looking()
    }

    /// The spare has something to say. What waited for that goes on.
    pub(super) fn listen_to_spare(&mut self, channels: &mut Channels, out: &mut Out) {
        if let Some(mut spare) = self.spare.take() {
            match spare.listen() {
                true => self.spare = Some(spare),
                false => spare.end(),
            }
        }
        self.go_on(channels, out);
    }

    fn go_on(&mut self, channels: &mut Channels, out: &mut Out) {
        if self.spare().is_some() {
            return;
        }
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting {
                Waiting::Look(number) => self.look(number, out),
                Waiting::Start(number, start) => self.start(number, *start, channels, out),
            }
        }
    }

    pub(super) fn launching(&self) -> impl Iterator<Item = (u32, BorrowedFd<'_>)> {
        // One that looks is asked when it is over, so that whoever waits for it finds nothing left of it.
        let starting = self.running.iter().filter(|(_, process)| !process.looks);
        starting.filter_map(|(id, process)| Some((*id, process.launching.as_ref()?.1.as_fd())))
    }

    pub(super) fn start(&mut self, number: u32, start: Start, channels: &mut Channels, out: &mut Out) {
        if self.spare().is_some() {
            self.waiting.push(Waiting::Start(number, Box::new(start)));
        } else if let Err(errno) = self.try_start(number, start, channels) {
            out.reply(number, Err(preparing(errno)));
        }
    }

    fn try_start(&mut self, number: u32, start: Start, channels: &mut Channels) -> Result<(), Errno> {
        let Start { process, argv, env, cwd, make_cwd, stdin, stdout, stderr, terminal: size } = start;
        let launch = Launch { argv, env, cwd, make_cwd, terminal: size.is_some() };
        let mut kept = None;
        let (ours, theirs) = match size {
            Some((rows, columns)) => {
                let (master, theirs) = terminal(rows, columns)?;
                let master = Rc::new(master);
                kept = Some(Rc::clone(&master));
                ([Some(Rc::clone(&master)), Some(master), None], theirs)
            }
            None => {
                let Streams { ours, theirs } = pipes(stdin.is_some())?;
                (ours.map(|fd| fd.map(Rc::new)), theirs)
            }
        };
        let Launched { pid, socket } = self.launch(&launch, &theirs)?;
        let launching = Some((number, socket));
        self.running.insert(process, Process { pid, launching, terminal: kept, looks: false });
        let [our_stdin, our_stdout, our_stderr] = ours;
        if let (Some(channel), Some(fd)) = (stdin, our_stdin) {
            channels.add_sink(channel, fd, size.is_some());
        }
        if let Some(fd) = our_stdout {
            channels.add_source(stdout, fd);
        }
        if let (Some(channel), Some(fd)) = (stderr, our_stderr) {
            channels.add_source(channel, fd);
        }
        Ok(())
    }

    /// By the spare, if it is there, or by a new one.
    fn launch(&mut self, launch: &Launch, streams: &[OwnedFd; 3]) -> Result<Launched, Errno> {
        if let Some(launched) = self.spare.take().and_then(|spare| spare.execute(launch, streams)) {
            return Ok(launched);
        }
        let launched = launch::begin()?;
        launched.execute(launch, streams)?;
        Ok(launched)
    }

    /// What a process saw that looked at its walls is the answer: the spare, or one that is made for it.
    pub(super) fn look(&mut self, number: u32, out: &mut Out) {
        if let Some(seen) = self.spare.as_ref().and_then(Spare::seen) {
            out.reply(number, Ok(Answer::Seen(Box::new(seen.clone()))));
        } else if self.spare.is_some() {
            self.waiting.push(Waiting::Look(number));
        } else if let Err(errno) = self.try_look(number) {
            out.reply(number, Err(preparing(errno)));
        }
    }

    fn try_look(&mut self, number: u32) -> Result<(), Errno> {
        let launched = launch::begin()?;
        launched.look()?;
        launched.end_of_requests()?;
        let Launched { pid, socket } = launched;
        let process = Process { pid, launching: Some((number, socket)), terminal: None, looks: true };
        self.running.insert(LOOKS_FROM + number % LOOKS_FROM, process);
        Ok(())
    }

    /// The socket of a process that was being started has something to say: an error, what was seen, or its end,
    /// which is the beginning of its program.
    pub(super) fn launched(&mut self, id: u32, out: &mut Out) {
        let Some(process) = self.running.get_mut(&id) else { return };
        let Some((number, socket)) = process.launching.take() else { return };
        match (launch::last_word(&socket), process.looks) {
            (Some(Said::Seen(seen)), true) => out.reply(number, Ok(Answer::Seen(seen))),
            (None, true) => out.reply(number, Err(preparing(Errno::IO))),
            (Some(Said::Failed(failure)), _) => {
                out.reply(number, Err(failure));
                // It ends by itself; nobody was told of it.
                process.looks = true;
            }
            (_, false) => out.reply(number, Ok(Answer::Done)),
        }
    }

    pub(super) fn reap(&mut self, channels: &mut Channels, out: &mut Out) {
        self.reap_all(out);
        self.go_on(channels, out);
    }

    fn reap_all(&mut self, out: &mut Out) {
        loop {
            let (pid, status) = match wait(WaitOptions::NOHANG) {
                Ok(Some(reaped)) => reaped,
                Ok(None) | Err(Errno::CHILD) => return,
                Err(_) => continue,
            };
            let pid = Pid::from_raw(pid.as_raw_nonzero().get());
            let end = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => End::Exited(code),
                (None, Some(signal)) => End::Signaled(signal),
                (None, None) => continue,
            };
            self.spare.take_if(|spare| spare.pid() == pid);
            let found = self.running.iter().find(|(_, process)| process.pid == pid).map(|(id, _)| *id);
            let Some(id) = found else { continue };
            // What it said before its end comes first.
            self.launched(id, out);
            if let Some(Process { looks: false, .. }) = self.running.remove(&id) {
                out.event(&Event::Ended { process: id, end });
            }
        }
    }

    /// Whether an out-of-memory kill is to end everything, and can be seen from here.
    pub(super) fn watches_memory(&self) -> bool {
        self.options.oom_ends_all && self.oom_kills.is_some()
    }

    /// Where one out-of-memory kill is to end everything, the rest goes, too.
    pub(super) fn look_at_memory(&mut self) {
        if !self.watches_memory() {
            return;
        }
        let now = stats::oom_kills();
        if now > self.oom_kills {
            self.oom_kills = now;
            self.end_all();
        }
    }

    pub(super) fn end_all(&self) {
        // From process 1 this reaches all the others of its pid namespace.
        let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    }

    pub(super) fn signal(&self, process: u32, signal: i32) -> Result<(), Failure> {
        // One that ended is not there to be signalled.
        let Some(process) = self.running.get(&process) else { return Ok(()) };
        let failed = |errno: NixErrno| Failure { step: Step::Prepare, errno: errno as i32 };
        let signal = Signal::try_from(signal).map_err(failed)?;
        // Until it leads a group of its own, it is alone.
        match kill(Pid::from_raw(-process.pid.as_raw()), signal).or_else(|_| kill(process.pid, signal)) {
            Ok(()) | Err(NixErrno::ESRCH) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }

    pub(super) fn resize(&self, process: u32, rows: u16, columns: u16) -> Result<(), Failure> {
        let Some(process) = self.running.get(&process) else { return Ok(()) };
        let failed = |errno: Errno| Failure { step: Step::Prepare, errno: errno.raw_os_error() };
        let terminal = process.terminal.as_ref().ok_or_else(|| failed(Errno::NOTTY))?;
        set_size(&**terminal, rows, columns).map_err(failed)?;
        // Linux tells the programs on it by itself, gVisor does not. Twice is as good as once.
        let _ = kill(Pid::from_raw(-process.pid.as_raw()), Signal::SIGWINCH);
        Ok(())
    }
}
