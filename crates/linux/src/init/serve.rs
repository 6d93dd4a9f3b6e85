//! Init's life after the set-up: requests from the host, and the dead to bury.

use super::payload::{self, Scratch};
use super::{Failure, InitPlan, Kit, files, send, send_with};
use crate::protocol::{Event, Request, StartRequest};
use crate::socket::{self, Fds, MAX_MESSAGE};
use crate::stage::Stage;
use crate::sys::{self, Errno};
use crate::{ControlSet, wire};
use std::cell::UnsafeCell;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// How many processes the host may have running in one sandbox. What they fork is not counted here.
const MAX_PROCESSES: usize = 256;

/// Init's memory. It is in a static so that its pages do not exist until they are used.
struct Memory(UnsafeCell<(Scratch, [u8; MAX_MESSAGE])>);

// SAFETY: only init's one thread ever touches it.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new((Scratch::EMPTY, [0; MAX_MESSAGE])));

#[derive(Clone, Copy)]
struct Child {
    pid: i32,
    process: u32,
}

struct Server<'l> {
    plan: &'l InitPlan<'l>,
    kit: &'l Kit,
    children: [Option<Child>; MAX_PROCESSES],
}

/// Serves until the host stops it or is gone. Everything in the sandbox ends with it.
pub(super) fn serve(plan: &InitPlan<'_>, kit: &Kit) -> ! {
    // SAFETY: this function runs once per process, in its only thread, and is the only user of the static.
    let (scratch, buffer) = unsafe { &mut *MEMORY.0.get() };
    let mut server = Server { plan, kit, children: [None; MAX_PROCESSES] };
    let watch = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    loop {
        let mut fds = [watch(plan.control), watch(kit.signals)];
        if sys::poll(&mut fds, -1).is_err() {
            continue;
        }
        if fds[1].revents != 0 {
            server.reap();
        }
        if fds[0].revents != 0 {
            match socket::receive(plan.control, buffer) {
                Ok((0, _)) => sys::exit(0),
                Ok((n, fds)) => server.handle(&buffer[..n], fds, scratch),
                Err(Errno(libc::EINTR | libc::EAGAIN | libc::EMSGSIZE)) => {}
                Err(_) => sys::exit(0),
            }
        }
    }
}

impl Server<'_> {
    fn reap(&mut self) {
        let mut drained = [0u8; 512];
        let _ = sys::read(self.kit.signals, &mut drained);
        while let Ok(Some((pid, status))) = sys::wait_any(false) {
            let mine = |slot: &&mut Option<Child>| slot.is_some_and(|child| child.pid == pid);
            if let Some(child) = self.children.iter_mut().find(mine).and_then(Option::take) {
                send(self.plan.control, Event::Exited { process: child.process, status });
            }
        }
    }

    fn handle(&mut self, message: &[u8], fds: Fds, scratch: &mut Scratch) {
        let control = self.plan.control;
        let reply = |request, result: sys::Result<Option<OwnedFd>>| match result {
            Ok(fd) => {
                let raw = fd.as_ref().map(AsRawFd::as_raw_fd);
                send_with(control, Event::Reply { request, errno: 0 }, raw.as_slice());
            }
            Err(errno) => send(control, Event::Reply { request, errno: errno.0 }),
        };
        match Request::decode(message) {
            Ok(Request::Start(request)) => self.start(request, fds, scratch),
            Ok(Request::Signal { process, signal }) => self.signal(process, signal),
            Ok(Request::Socket { request, family }) => {
                let made = match family {
                    libc::AF_INET | libc::AF_INET6 => sys::socket(family, libc::SOCK_STREAM, 0),
                    _ => Err(Errno(libc::EAFNOSUPPORT)),
                };
                reply(request, made.map(Some));
            }
            Ok(Request::Open { request, flags, mode, make_parents, path }) => {
                reply(request, files::open(self.plan, path, flags, mode, make_parents).map(Some));
            }
            Ok(Request::MakeFolder { request, path }) => {
                reply(request, files::make_folder(self.plan, path).map(|()| None));
            }
            Ok(Request::Stop) => sys::exit(0),
            // The host made it; dropping it would leave someone waiting, so the sandbox ends.
            Err(_) => sys::exit(2),
        }
    }

    fn start(&mut self, request: StartRequest<'_>, mut fds: Fds, scratch: &mut Scratch) {
        let control = self.plan.control;
        let process = request.process;
        let started = self.try_start(request, &mut fds, scratch);
        match started {
            Ok((controls, master)) => {
                let raw = master.as_ref().map(AsRawFd::as_raw_fd);
                send_with(control, Event::Started { process, controls }, raw.as_slice());
            }
            Err(Failure { stage, errno, missing }) => {
                send(control, Event::NotStarted { process, stage, errno: errno.0, missing });
            }
        }
    }

    fn try_start(
        &mut self,
        request: StartRequest<'_>,
        fds: &mut Fds,
        scratch: &mut Scratch,
    ) -> Result<(ControlSet, Option<OwnedFd>), Failure> {
        let fail = |errno| Failure { stage: Stage::Start, errno, missing: ControlSet::EMPTY };
        let free = self.children.iter().position(Option::is_none).ok_or(fail(Errno(libc::EAGAIN)))?;
        let process = request.process;
        let stdio = Stdio::open(self.plan, request.terminal, fds).map_err(fail)?;
        let (pid, controls) =
            payload::start(self.plan, self.kit.landlock, scratch, request, stdio.raw())?;
        self.children[free] = Some(Child { pid, process });
        Ok((controls, stdio.into_master()))
    }

    fn signal(&self, process: u32, signal: i32) {
        let child = self.children.iter().flatten().find(|child| child.process == process);
        if let Some(child) = child {
            // It leads its session and so its group, unless it has not come so far or a test left that out.
            if sys::kill(-child.pid, signal).is_err() {
                let _ = sys::kill(child.pid, signal);
            }
        }
    }
}

/// A process's end of its stdio.
enum Stdio {
    Pipes([OwnedFd; 3]),
    Terminal { master: OwnedFd, slave: OwnedFd },
}

impl Stdio {
    fn open(plan: &InitPlan<'_>, terminal: Option<(u16, u16)>, fds: &mut Fds) -> sys::Result<Self> {
        let id = plan.payload_id;
        let Some((rows, columns)) = terminal else {
            let mut next = |i| fds.take(i).ok_or(wire::MALFORMED);
            let pipes = [next(0)?, next(1)?, next(2)?];
            for pipe in &pipes {
                // Else a program could not open its own /dev/stdout.
                let _ = sys::fchown(pipe.as_raw_fd(), id, id);
            }
            return Ok(Self::Pipes(pipes));
        };
        let flags = libc::O_RDWR | libc::O_NOCTTY;
        let master = sys::open(sys::CWD, c"/dev/pts/ptmx", flags, 0)?;
        let slave = sys::pty_slave(master.as_raw_fd())?;
        sys::set_window_size(master.as_raw_fd(), rows, columns)?;
        let _ = sys::fchown(slave.as_raw_fd(), id, id);
        Ok(Self::Terminal { master, slave })
    }

    fn raw(&self) -> [RawFd; 3] {
        match self {
            Self::Pipes(pipes) => [0, 1, 2].map(|i| pipes[i].as_raw_fd()),
            Self::Terminal { slave, .. } => [slave.as_raw_fd(); 3],
        }
    }

    fn into_master(self) -> Option<OwnedFd> {
        match self {
            Self::Pipes(_) => None,
            Self::Terminal { master, .. } => Some(master),
        }
    }
}
