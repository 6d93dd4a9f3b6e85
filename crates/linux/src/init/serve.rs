//! Init's life after the set-up: requests from the host, and the dead to bury.

use super::payload::{self, Scratch};
use super::spare::Spare;
use super::{Failure, InitPlan, Kit, files, send, send_with};
use crate::ControlSet;
use crate::protocol::{
    Event, GroupKind, MAX_OPENED, MAX_START_BYTES, Names, Request, StartRequest, StdioRequest,
};
use crate::socket::{self, Fds, MAX_MESSAGE};
use crate::stage::Stage;
use crate::sys::{self, Errno};
use cofferdam_core::Control;
use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// How many processes the host may have running in one sandbox. What they fork is not counted here.
const MAX_PROCESSES: usize = 256;

/// Init's memory. It is in a static so that its pages do not exist until they are used.
struct Memory(UnsafeCell<(Scratch, [u8; MAX_MESSAGE])>);

// SAFETY: only init's one thread ever touches it.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new((Scratch::EMPTY, [0; MAX_MESSAGE])));

/// Room for a start request that came as a file; its pages, too, exist only once they are used.
struct Large(UnsafeCell<[u8; MAX_START_BYTES]>);

// SAFETY: only init's one thread ever touches it.
unsafe impl Sync for Large {}

static LARGE: Large = Large(UnsafeCell::new([0; MAX_START_BYTES]));

#[derive(Clone, Copy)]
struct Child {
    pid: i32,
    process: u32,
}

/// The limits that come with the group: without it nothing starts where they are required.
pub(super) const CONTROLS: ControlSet =
    ControlSet::of(&[Control::MemoryLimit, Control::SwapOff, Control::PidsLimit, Control::CpuLimit]);

/// The group that processes join.
#[derive(Debug, Default)]
pub(super) struct Group {
    fds: Fds,
    kind: Option<GroupKind>,
    /// Which of the descriptors is readable when the group ran out of memory.
    oom: Option<usize>,
}

impl Group {
    fn new(fds: Fds, kind: GroupKind, watches_oom: bool) -> Self {
        let oom = watches_oom.then(|| fds.count().saturating_sub(1));
        Self { fds, kind: Some(kind), oom }
    }

    /// The files to write to.
    pub(super) fn tasks(&self) -> impl Iterator<Item = RawFd> {
        let count =
            if self.kind == Some(GroupKind::Tasks) { self.oom.unwrap_or(self.fds.count()) } else { 0 };
        (0..count).filter_map(|i| self.fds.raw(i))
    }

    /// The folder to clone into.
    pub(super) fn folder(&self) -> Option<RawFd> {
        self.fds.raw(0).filter(|_| self.kind == Some(GroupKind::Folder))
    }

    fn oom(&self) -> RawFd {
        self.oom.and_then(|i| self.fds.raw(i)).unwrap_or(-1)
    }
}

struct Server<'l> {
    plan: &'l InitPlan<'l>,
    kit: &'l Kit,
    group: Group,
    /// What was proven and not said yet: it goes out with the first answer, or when there is nothing to do.
    unsaid: Option<ControlSet>,
    children: [Option<Child>; MAX_PROCESSES],
    spare: Option<Spare>,
    /// Whether one is still to be made: only before the first process, and once.
    wants_spare: bool,
}

/// Serves until the host stops it or is gone. Everything in the sandbox ends with it.
pub(super) fn serve(plan: &InitPlan<'_>, kit: &Kit, controls: ControlSet) -> ! {
    // SAFETY: this function runs once per process, in its only thread, and is the only user of the static.
    let (scratch, buffer) = unsafe { &mut *MEMORY.0.get() };
    let mut server = Server {
        plan,
        kit,
        group: Group::default(),
        unsaid: Some(controls),
        children: [None; MAX_PROCESSES],
        spare: None,
        // Making one closes init's memory besides, which a test that leaves that out would not see.
        wants_spare: !plan.leaves_out(Control::InitProtected),
    };
    let watch = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    loop {
        let launcher = if plan.leaves_out(Control::DiesWithHost) { -1 } else { plan.sync };
        let mut fds = [watch(plan.control), watch(kit.signals), watch(server.group.oom()), watch(launcher)];
        let has_to_do = server.unsaid.is_some() || server.can_make_spare();
        match sys::poll(&mut fds, if has_to_do { 0 } else { -1 }) {
            Ok(0) if server.unsaid.is_some() => server.say_ready(),
            Ok(0) => server.make_spare(scratch),
            Ok(_) => {}
            Err(_) => continue,
        }
        if fds[3].revents != 0 {
            // The launcher is gone, and with it whoever would clean up after this sandbox.
            sys::exit(0);
        }
        if fds[2].revents & libc::POLLIN != 0 {
            let _ = sys::read(server.group.oom(), &mut [0; 8]);
            // Half of a job is worth nothing: everything but init goes.
            let _ = sys::kill(-1, libc::SIGKILL);
            send(plan.control, Event::OutOfMemory);
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
    /// Tells that the sandbox stands. A host that has asked for a process already hears both at once, which saves
    /// it from waking up twice.
    fn say_ready(&mut self) {
        if let Some(controls) = self.unsaid.take() {
            send_with(self.plan.control, Event::Ready { controls }, &[self.kit.workspace]);
            sys::close(self.kit.workspace);
        }
    }

    fn reap(&mut self) {
        let mut drained = [0u8; 512];
        let _ = sys::read(self.kit.signals, &mut drained);
        while let Ok(Some((pid, status))) = sys::wait_any(false) {
            if self.spare.as_ref().is_some_and(|spare| spare.pid() == pid) {
                self.spare = None;
            }
            let mine = |slot: &&mut Option<Child>| slot.is_some_and(|child| child.pid == pid);
            if let Some(child) = self.children.iter_mut().find(mine).and_then(Option::take) {
                send(self.plan.control, Event::Exited { process: child.process, status });
            }
        }
    }

    fn handle(&mut self, message: &[u8], mut fds: Fds, scratch: &mut Scratch) {
        let control = self.plan.control;
        let answers_at_once = |request: &sys::Result<Request<'_>>| {
            !matches!(
                request,
                Ok(Request::Start(_) | Request::StartFrom | Request::Probe { .. } | Request::Group { .. })
            )
        };
        let decoded = Request::decode(message);
        if answers_at_once(&decoded) {
            self.say_ready();
        }
        let reply = |request, result: sys::Result<Option<OwnedFd>>| match result {
            Ok(fd) => {
                let raw = fd.as_ref().map(AsRawFd::as_raw_fd);
                send_with(control, Event::Reply { request, errno: 0 }, raw.as_slice());
            }
            Err(errno) => send(control, Event::Reply { request, errno: errno.0 }),
        };
        match decoded {
            Ok(Request::Start(request)) => self.start(request, scratch),
            Ok(Request::StartFrom) => match fds.take(0) {
                Some(file) => self.start_from(&file, scratch),
                None => sys::exit(2),
            },
            Ok(Request::Group { kind, watches_oom }) => {
                self.end_spare();
                self.group = Group::new(fds, kind, watches_oom);
            }
            Ok(Request::Probe { process }) => self.probe(process, scratch),
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
            Ok(Request::OpenEach { request, flags, folder, names }) => {
                self.open_each(request, flags, folder, names);
            }
            Ok(Request::MakeFolder { request, path }) => {
                reply(request, files::make_folder(self.plan, path).map(|()| None));
            }
            Ok(Request::Remove { request, is_folder, path }) => {
                reply(request, files::remove_as_user(self.plan, path, is_folder).map(|()| None));
            }
            Ok(Request::Rename { request, from, to }) => {
                reply(request, files::rename(self.plan, from, to).map(|()| None));
            }
            Ok(Request::SetMode { request, mode, path }) => {
                reply(request, files::set_mode(self.plan, path, mode).map(|()| None));
            }
            Ok(Request::Link { request, path, target }) => {
                reply(request, files::link(self.plan, path, target).map(|()| None));
            }
            Ok(Request::Watch { request }) => {
                reply(request, sys::inotify().map(Some));
            }
            Ok(Request::List { request, limit, is_close, path }) => {
                reply(request, files::list(self.plan, path, limit, is_close).map(Some));
            }
            Ok(Request::Stop) => sys::exit(0),
            // The host made it; dropping it would leave someone waiting, so the sandbox ends.
            Err(_) => sys::exit(2),
        }
    }

    fn open_each(&self, request: u32, flags: i32, folder: &CStr, names: Names<'_>) {
        let mut opened = [const { None }; MAX_OPENED];
        let (count, done) = files::open_each(self.plan, folder, flags, names, &mut opened);
        let raw = opened.each_ref().map(|fd| fd.as_ref().map_or(-1, OwnedFd::as_raw_fd));
        let errno = done.map_or_else(|errno| errno.0, |()| 0);
        send_with(self.plan.control, Event::Reply { request, errno }, &raw[..count]);
    }

    fn start(&mut self, request: StartRequest<'_>, scratch: &mut Scratch) {
        let process = request.process;
        let started = self.try_start(request, scratch);
        self.say_ready();
        let (controls, host) = match started {
            Ok(started) => started,
            Err(failure) => return self.not_started(process, failure),
        };
        let raw = host.each_ref().map(|fd| fd.as_ref().map_or(-1, AsRawFd::as_raw_fd));
        let count = raw.iter().take_while(|fd| **fd >= 0).count();
        send_with(self.plan.control, Event::Started { process, controls }, &raw[..count]);
    }

    fn not_started(&self, process: u32, Failure { stage, errno, missing }: Failure) {
        send(self.plan.control, Event::NotStarted { process, stage, errno: errno.0, missing });
    }

    fn try_start(
        &mut self,
        request: StartRequest<'_>,
        scratch: &mut Scratch,
    ) -> Result<(ControlSet, HostEnds), Failure> {
        self.check_group()?;
        self.wants_spare = false;
        let fail = |errno| Failure { stage: Stage::Start, errno, missing: ControlSet::EMPTY };
        let free = self.children.iter().position(Option::is_none).ok_or(fail(Errno(libc::EAGAIN)))?;
        let process = request.process;
        self.plan.at(Stage::Start, Ok(()))?;
        let fitting = self.spare.take_if(|spare| spare.fits(&request));
        let (pid, controls, stdio) = match fitting {
            Some(spare) => spare.start(request, scratch)?,
            None => {
                self.end_spare();
                let stdio = files::as_user(self.plan, || Stdio::open(request.stdio)).map_err(fail)?;
                let inside = stdio.inside();
                let (pid, controls) =
                    payload::start(self.plan, &self.group, self.kit, scratch, request, inside)?;
                (pid, controls, stdio)
            }
        };
        self.children[free] = Some(Child { pid, process });
        Ok((controls, stdio.into_host_ends()))
    }

    /// A process made ahead is worth it before the first, when the group that it has to be in is known.
    fn can_make_spare(&self) -> bool {
        self.wants_spare && self.group.kind.is_some()
    }

    fn make_spare(&mut self, scratch: &mut Scratch) {
        self.wants_spare = false;
        self.spare = Spare::make(self.plan, &self.group, self.kit, scratch);
    }

    fn end_spare(&mut self) {
        if let Some(spare) = self.spare.take() {
            spare.end();
        }
    }

    /// Nothing runs without its limits where they are required.
    fn check_group(&self) -> Result<(), Failure> {
        let missing = ControlSet(self.plan.required.0 & CONTROLS.0);
        if self.group.kind.is_some() || missing.is_empty() {
            return Ok(());
        }
        Err(Failure { stage: Stage::PayloadCgroup, errno: Errno(libc::EPERM), missing })
    }

    fn probe(&mut self, process: u32, scratch: &mut Scratch) {
        if self.can_make_spare() {
            self.make_spare(scratch);
        }
        let proven = match &self.spare {
            Some(spare) => Ok(spare.seen),
            None => self.prove(scratch),
        };
        self.say_ready();
        match proven {
            Ok(controls) => send(self.plan.control, Event::Started { process, controls }),
            Err(failure) => self.not_started(process, failure),
        }
    }

    fn prove(&self, scratch: &mut Scratch) -> Result<ControlSet, Failure> {
        self.check_group()?;
        payload::prove(self.plan, &self.group, self.kit, scratch).map(|(_, controls)| controls)
    }

    /// A start request that was too large for a message: it lies in a file.
    fn start_from(&mut self, file: &OwnedFd, scratch: &mut Scratch) {
        // SAFETY: init has one thread, this is called from its loop only, and the bytes are not used otherwise.
        let large = unsafe { &mut *LARGE.0.get() };
        let mut len = 0;
        while let Ok(n @ 1..) = sys::pread(file.as_raw_fd(), &mut large[len..], len as i64) {
            len += n;
        }
        match Request::decode(&large[..len]) {
            Ok(Request::Start(request)) => self.start(request, scratch),
            _ => sys::exit(2),
        }
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

/// What the host gets of a process's stdio: a terminal's master, or stdout, stderr and perhaps stdin.
type HostEnds = [Option<OwnedFd>; 3];

/// Both ends of a process's stdio. It is made here, as the sandbox user, so that the process can open its own
/// /dev/stdout, and so that the kernel charges the pipes to the sandbox.
pub(super) enum Stdio {
    Pipes { inside: [OwnedFd; 3], host: HostEnds },
    Terminal { master: OwnedFd, slave: OwnedFd },
}

impl Stdio {
    pub(super) fn open(request: StdioRequest) -> sys::Result<Self> {
        match request {
            StdioRequest::Pipes { stdin } => {
                let (out_host, out) = sys::pipe()?;
                let (error_host, error) = sys::pipe()?;
                let (input, input_host) = if stdin {
                    let (input, host) = sys::pipe()?;
                    (input, Some(host))
                } else {
                    (sys::open(sys::CWD, c"/dev/null", libc::O_RDONLY, 0)?, None)
                };
                let host = [Some(out_host), Some(error_host), input_host];
                Ok(Self::Pipes { inside: [input, out, error], host })
            }
            StdioRequest::Terminal { rows, columns } => {
                let flags = libc::O_RDWR | libc::O_NOCTTY;
                let master = sys::open(sys::CWD, c"/dev/pts/ptmx", flags, 0)?;
                let slave = sys::pty_slave(master.as_raw_fd())?;
                sys::set_window_size(master.as_raw_fd(), rows, columns)?;
                Ok(Self::Terminal { master, slave })
            }
        }
    }

    pub(super) fn inside(&self) -> [RawFd; 3] {
        match self {
            Self::Pipes { inside, .. } => [0, 1, 2].map(|i| inside[i].as_raw_fd()),
            Self::Terminal { slave, .. } => [slave.as_raw_fd(); 3],
        }
    }

    /// Lets go of the host's end of a stdin that nobody asked for.
    pub(super) fn without_unused_input(mut self, is_used: bool) -> Self {
        if let (Self::Pipes { host, .. }, false) = (&mut self, is_used) {
            host[2] = None;
        }
        self
    }

    fn into_host_ends(self) -> HostEnds {
        match self {
            Self::Pipes { host, .. } => host,
            Self::Terminal { master, .. } => [Some(master), None, None],
        }
    }
}
