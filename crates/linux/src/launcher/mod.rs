//! The launcher: a process with one thread, no environment and no descriptors but its socket, that makes
//! sandboxes on request and cleans up after them.
//!
//! It is forked before the host process reads its configuration or starts a thread, so it holds no secret and
//! may clone. When its socket closes, it ends every sandbox, removes what they leave, and exits.

mod create;
mod elsewhere;
mod layers;
mod messages;
mod network;
mod rootless;
mod scrub;
mod staging;

use rootless::Ids;

pub use messages::{
    CreateRequest, LAUNCHER_EVENT_BYTES, LAUNCHER_MESSAGE_BYTES, LauncherEvent, LauncherRequest,
};

use crate::init::NamespaceIds;
use crate::slots;
use crate::stage::Stage;
use crate::sys::{self, Errno};
use crate::{ControlSet, caps, clone, disk, landlock, socket};
use cofferdam_core::Control;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How a launcher is started.
#[derive(Debug, Clone)]
pub struct LauncherOptions {
    /// Whether to make parts of further sandboxes ahead, too: worth it for a host that makes many.
    pub makes_spares: bool,
    /// For the attack suite: keep inherited descriptors and environment.
    pub leave_out: ControlSet,
}

/// Where the network namespace of the first sandbox comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The launcher makes it as soon as it runs.
    Made,
    /// The host sends one that it made meanwhile. Where none comes, the sandbox makes its own.
    Given,
}

/// The folder for locks and generated layers: root's, or the user's own.
pub fn default_runtime_folder() -> PathBuf {
    if sys::geteuid() == 0 {
        return PathBuf::from("/run/cofferdam");
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => Path::new(&folder).join("cofferdam"),
        None => PathBuf::from(format!("/tmp/cofferdam-{}", sys::geteuid())),
    }
}

/// Forks a launcher and returns the host's end of its socket. Call it first of all: the child is a copy of this
/// process, so it must not hold a secret yet, and a process that has threads already is refused.
pub fn fork(options: &LauncherOptions) -> sys::Result<OwnedFd> {
    // A folder has a link for itself, its entry in its parent, and each folder in it: here, each thread.
    if sys::stat_at(sys::CWD, c"/proc/self/task", 0)?.st_nlink != 3 {
        return Err(Errno(libc::EDEADLK));
    }
    // SAFETY: the process has one thread, as was just seen.
    unsafe { fork_alone(options, Network::Made) }
}

/// The same for one that knows to be alone.
///
/// # Safety
/// No other thread of the process runs anything but system calls.
pub unsafe fn fork_alone(options: &LauncherOptions, network: Network) -> sys::Result<OwnedFd> {
    let (host, launcher) = socket::pair()?;
    // SAFETY: promised by the caller.
    match unsafe { clone::fork_into(0, None) }? {
        clone::Forked::Parent { pid, .. } => {
            // A host that makes many sandboxes has time, and its launcher should go wherever processors are added.
            if !options.makes_spares {
                elsewhere::start(pid);
            }
            Ok(host)
        }
        clone::Forked::Child => {
            drop(host);
            run_failing(launcher, options, network, None)
        }
    }
}

/// A sandbox that the launcher looks after.
#[derive(Debug)]
struct Live {
    pid: i32,
    pidfd: OwnedFd,
    /// The number of its range of ids, and the lock on that.
    slot: u32,
    lock: OwnedFd,
    /// The folder at the top of its disk, where it has one.
    disk: Option<OwnedFd>,
    /// Its init watches the other end, and goes when this process does.
    _alive: OwnedFd,
    is_dead: bool,
    /// When its end was asked for.
    unwanted_since: Option<Instant>,
}

/// A process takes a moment to die, with much memory a second or two. One that takes this long hangs in the kernel
/// or was stopped from outside, and nobody knows for how long.
const DEATH_PATIENCE: Duration = Duration::from_secs(5);

/// How long nobody must have asked for anything before the launcher does what can wait.
const IDLE: Duration = Duration::from_millis(100);

struct Launcher {
    socket: RawFd,
    signals: RawFd,
    /// The folders that sandboxes' groups lie in, for removing them.
    groups: Vec<OwnedFd>,
    /// The group that inits are cloned into, where they need one.
    init_group: Option<OwnedFd>,
    /// A network namespace made ahead.
    spare_network: Option<OwnedFd>,
    /// The network namespace that this process lives in; unknown where it could not come back to it.
    home_network: Option<OwnedFd>,
    makes_spares: bool,
    /// Whether it has yet to let go of the host's mounts, when nobody waits for it.
    holds_host: bool,
    images: HashMap<u32, Vec<String>>,
    live: HashMap<u32, Live>,
    /// Those that could not be ended: what they hold stays theirs for as long as this process lives.
    set_aside: Vec<Live>,
    /// Its own. Looked at while the first init is busy with its mounts, which is nobody's time.
    namespaces: OnceCell<NamespaceIds>,
    keyring: usize,
    landlock_abi: u32,
    last_capability: u32,
    clean_environment: bool,
    ids: Ids,
}

/// Runs the launcher in this process, which must have one thread; never returns.
pub fn run(socket: OwnedFd, options: &LauncherOptions) -> ! {
    run_failing(socket, options, Network::Made, None)
}

fn run_failing(socket: OwnedFd, options: &LauncherOptions, network: Network, fail_at: Option<Stage>) -> ! {
    let raw = socket.as_raw_fd();
    match Launcher::start(socket.into_raw_fd(), options, network, fail_at) {
        Ok(mut launcher) => launcher.serve(),
        Err((stage, errno)) => {
            reply(raw, LauncherEvent::Unusable { stage, errno: errno.0 }, &[]);
            sys::exit(1)
        }
    }
}

fn reply(socket: RawFd, event: LauncherEvent, fds: &[RawFd]) {
    let mut buffer = [0; LAUNCHER_EVENT_BYTES];
    if let Ok(message) = event.encode(&mut buffer) {
        // An error means that the host is gone, which the next read shows as well.
        let _ = socket::send(socket, message, fds);
    }
}

impl Launcher {
    fn start(
        socket: RawFd,
        options: &LauncherOptions,
        network: Network,
        fail_at: Option<Stage>,
    ) -> Result<Self, (Stage, Errno)> {
        let at = |stage| move |errno| (stage, errno);
        let point = |stage| if fail_at == Some(stage) { Err((stage, Errno(libc::EIO))) } else { Ok(()) };
        sys::set_name(c"coffer-launch");
        sys::reset_signals();
        // Ctrl-C on the host's terminal must not end it before it has cleaned up.
        let _ = sys::setsid();
        let leave_out = if cfg!(feature = "leave-out") { options.leave_out } else { ControlSet::EMPTY };
        let clean_environment = scrub::environment(leave_out);
        scrub::descriptors(socket, leave_out).map_err(at(Stage::Fds))?;
        let keyring = sys::session_keyring().unwrap_or(0);
        let ids =
            if sys::geteuid() == 0 { Ids::Host } else { rootless::enter().map_err(at(Stage::IdMap))? };
        let bits = sys::prctl(libc::PR_SET_SECUREBITS, caps::NO_SETUID_FIXUP, 0);
        bits.map_err(at(Stage::Identity))?;
        staging::enter(ids).map_err(at(Stage::Propagation))?;
        if ids == Ids::Host && options.makes_spares {
            staging::leave_host().map_err(at(Stage::Propagation))?;
        }
        point(Stage::Propagation)?;
        let signals = sys::signal_fd(libc::SIGCHLD).map_err(at(Stage::Sync))?.into_raw_fd();
        let home_network = network::own();
        let namespaces = OnceCell::new();
        if home_network.is_none() {
            // It is about to leave one of them for that of the first sandbox.
            let _ = namespaces.set(staging::own_namespaces());
        }
        let spare_network = match network {
            // Without root this process stays in what it makes, which would be a wall of its own.
            Network::Made if leave_out.has(Control::NetNamespace) => None,
            Network::Made => network::make(home_network.as_ref()).ok(),
            Network::Given => None,
        };
        Ok(Self {
            socket,
            signals,
            groups: Vec::new(),
            init_group: None,
            // Made while the host is still reading its arguments. Without the right to it, each sandbox makes its own.
            spare_network,
            home_network,
            makes_spares: options.makes_spares,
            holds_host: ids == Ids::Host && !options.makes_spares,
            images: HashMap::new(),
            live: HashMap::new(),
            set_aside: Vec::new(),
            namespaces,
            keyring,
            landlock_abi: landlock::abi(),
            last_capability: caps::last(),
            clean_environment,
            ids,
        })
    }

    fn serve(&mut self) -> ! {
        let watch = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut buffer = [0; LAUNCHER_MESSAGE_BYTES];
        loop {
            let mut fds = [watch(self.socket), watch(self.signals)];
            let Ok(ready) = sys::poll(&mut fds, self.patience_ms()) else { continue };
            if ready == 0 && self.holds_host {
                // Where that fails, they stay in use until this process ends.
                let _ = staging::leave_host();
                self.holds_host = false;
            }
            if fds[1].revents != 0 {
                self.reap();
            }
            self.give_up_on_the_undying();
            if fds[0].revents != 0 {
                match socket::receive(self.socket, &mut buffer) {
                    Ok((0, _)) => self.shut_down(),
                    Ok((n, fds)) => self.handle(&buffer[..n], fds),
                    Err(Errno(libc::EINTR | libc::EAGAIN)) => {}
                    Err(_) => self.shut_down(),
                }
            }
        }
    }

    fn handle(&mut self, message: &[u8], mut fds: socket::Fds) {
        match LauncherRequest::decode(message) {
            Ok(LauncherRequest::AddImage { image, names, paths }) => {
                let open = |(i, name): (usize, &String)| match paths.get(i) {
                    Some(path) => Ok((name.clone(), staging::open_layer(path)?)),
                    None => Ok((name.clone(), fds.take(i).ok_or(Errno(libc::EBADMSG))?)),
                };
                let layers: sys::Result<Vec<_>> = names.iter().enumerate().map(open).collect();
                let added = layers.and_then(|layers| staging::add_image(image, &layers));
                // A failure shows when the image is used: creating a sandbox of it then fails.
                if added.is_ok() {
                    self.images.insert(image, names);
                }
            }
            Ok(LauncherRequest::Groups { has_init }) => {
                self.groups = (0..socket::MAX_FDS).map_while(|i| fds.take(i)).collect();
                self.init_group = if has_init { self.groups.pop() } else { None };
            }
            Ok(LauncherRequest::Network) => self.spare_network = fds.take(0),
            Ok(LauncherRequest::Create(request)) => {
                if let Err((stage, errno)) = self.create(&request, &mut fds) {
                    let sandbox = request.sandbox;
                    reply(self.socket, LauncherEvent::NotCreated { sandbox, stage, errno: errno.0 }, &[]);
                }
                if self.makes_spares && self.spare_network.is_none() {
                    self.spare_network = network::make(self.home_network.as_ref()).ok();
                }
            }
            Ok(LauncherRequest::Destroy { sandbox }) => self.destroy(sandbox),
            // Only a host of another version could send it; it must not go on.
            Err(_) => self.shut_down(),
        }
    }

    /// Kills a sandbox's init, and with it everything in its pid namespace; the rest happens when it is reaped.
    fn destroy(&mut self, sandbox: u32) {
        let Some(live) = self.live.get_mut(&sandbox) else {
            reply(self.socket, LauncherEvent::Destroyed { sandbox, errno: 0 }, &[]);
            return;
        };
        live.unwanted_since.get_or_insert_with(Instant::now);
        if !live.is_dead {
            let _ = sys::pidfd_kill(live.pidfd.as_raw_fd(), libc::SIGKILL);
        }
        // What is killed and frozen dies as soon as it is not: it does nothing in between.
        thaw(&self.groups, live.slot);
        if live.is_dead {
            self.bury(sandbox);
        }
    }

    fn reap(&mut self) {
        let mut drained = [0u8; 512];
        let _ = sys::read(self.signals, &mut drained);
        while let Ok(Some((pid, _))) = sys::wait_any(false) {
            self.mark_dead(pid);
        }
    }

    fn mark_dead(&mut self, pid: i32) {
        let found = self.live.iter_mut().find(|(_, live)| live.pid == pid && !live.is_dead);
        let Some((sandbox, live)) = found else { return };
        live.is_dead = true;
        // Until the host asks for its end, its cgroup stays, for what it can tell.
        if live.unwanted_since.is_some() {
            let sandbox = *sandbox;
            self.bury(sandbox);
        }
    }

    fn bury(&mut self, sandbox: u32) {
        let Some(live) = self.live.remove(&sandbox) else { return };
        let removed = self.remove_group(&slots::slot_name(live.slot));
        if let Some(disk) = &live.disk {
            // Where that fails, the unmount takes longer, and nothing else is different.
            let _ = disk::give_up(disk.as_raw_fd());
        }
        match removed {
            Ok(()) => reply(self.socket, LauncherEvent::Destroyed { sandbox, errno: 0 }, &[]),
            Err(errno) => self.set_aside(sandbox, live, errno, "its cgroup could not be removed"),
        }
    }

    /// Something of a sandbox is left: nobody else may have its ids, this host or another, now or later.
    fn set_aside(&mut self, sandbox: u32, live: Live, errno: Errno, reason: &str) {
        // Where it cannot be written down, the lock still holds while this process lives.
        let _ = slots::set_aside(live.lock.as_raw_fd(), reason);
        self.set_aside.push(live);
        reply(self.socket, LauncherEvent::Destroyed { sandbox, errno: errno.0 }, &[]);
    }

    /// How long until the next sandbox that is to die should be dead, or this process counts as idle.
    fn patience_ms(&self) -> i32 {
        let waited =
            self.live.values().filter_map(|live| live.unwanted_since).map(|since| since.elapsed()).max();
        match waited {
            Some(waited) => DEATH_PATIENCE.saturating_sub(waited).as_millis() as i32 + 1,
            None if self.holds_host => IDLE.as_millis() as i32,
            None => -1,
        }
    }

    fn give_up_on_the_undying(&mut self) {
        let is_late = |live: &Live| live.unwanted_since.is_some_and(|since| since.elapsed() > DEATH_PATIENCE);
        let late: Vec<u32> = self.live.iter().filter(|(_, live)| is_late(live)).map(|(id, _)| *id).collect();
        for sandbox in late {
            if let Some(live) = self.live.remove(&sandbox) {
                self.set_aside(sandbox, live, Errno(libc::ETIMEDOUT), "its init does not die");
            }
        }
    }

    fn remove_group(&self, name: &str) -> sys::Result<()> {
        let name = CString::new(name).map_err(|_| Errno(libc::EINVAL))?;
        self.groups.iter().try_for_each(|folder| remove_folder(folder, &name))
    }

    /// The host is gone, or done: ends everything, removes it, and exits.
    fn shut_down(&mut self) -> ! {
        for live in self.live.values_mut() {
            live.unwanted_since.get_or_insert_with(Instant::now);
            let _ = sys::pidfd_kill(live.pidfd.as_raw_fd(), libc::SIGKILL);
            thaw(&self.groups, live.slot);
        }
        // Those that were dead already have nobody left who would ask for their end.
        let dead: Vec<u32> = self.live.iter().filter(|(_, live)| live.is_dead).map(|(id, _)| *id).collect();
        for sandbox in dead {
            self.bury(sandbox);
        }
        while !self.live.is_empty() {
            let signals = libc::pollfd { fd: self.signals, events: libc::POLLIN, revents: 0 };
            let mut fds = [signals];
            let _ = sys::poll(&mut fds, self.patience_ms());
            if fds[0].revents != 0 {
                self.reap();
            }
            self.give_up_on_the_undying();
        }
        sys::exit(0)
    }
}

/// Lets the processes of a group die that were frozen: those of version 1 do not before.
fn thaw(groups: &[OwnedFd], slot: u32) {
    let Ok(state) = CString::new(format!("{}/freezer.state", slots::slot_name(slot))) else { return };
    for folder in groups {
        // Only one of the folders has it, and only for a sandbox that can be paused.
        let _ = sys::write_file(folder.as_raw_fd(), &state, b"THAWED");
    }
}

/// The kernel may still count a task for a moment after it is gone.
fn remove_folder(parent: &OwnedFd, name: &CStr) -> sys::Result<()> {
    for _ in 0..100 {
        match sys::rmdir(parent.as_raw_fd(), name) {
            Err(Errno(libc::EBUSY)) => drop(sys::poll(&mut [], 10)),
            Ok(()) | Err(Errno(libc::ENOENT)) => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno(libc::EBUSY))
}

/// Runs the launcher on the socket that this process was started with as its stdin; never returns.
///
/// For a host that cannot fork because it has threads: it executes a program that calls this first of all.
pub fn run_on_stdin(options: &LauncherOptions) -> ! {
    run_on_stdin_failing(options, None)
}

/// The same with a failpoint in the launcher's own set-up; for the attack suite, and without effect elsewhere.
pub fn run_on_stdin_failing(options: &LauncherOptions, fail_at: Option<Stage>) -> ! {
    let fail_at = fail_at.filter(|_| cfg!(feature = "leave-out"));
    match sys::dup_above(0, 3) {
        // SAFETY: the number is new and nobody else's.
        Ok(fd) => run_failing(unsafe { OwnedFd::from_raw_fd(fd) }, options, Network::Made, fail_at),
        Err(_) => sys::exit(1),
    }
}
