//! Asks the kernel what it can do, by doing it: a version number says nothing about what a distribution left
//! out, a boot option switched off or a container around this process forbids.
//!
//! Each probe runs in a child of its own that ends afterwards, so nothing of this process changes and nothing
//! is left behind. The child only makes system calls, so that a process with threads may ask as well.

use crate::clone::{self, Forked};
use crate::sys::{self, Errno, Result};
use crate::{seccomp, slots};
use std::ffi::CStr;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Something that sandboxes are made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    Clone3,
    CloneIntoCgroup,
    Pidfd,
    CloseRange,
    Openat2,
    Seccomp,
    Keyring,
    UserNamespace,
    PidNamespace,
    MountNamespace,
    NetNamespace,
    IpcNamespace,
    UtsNamespace,
    CgroupNamespace,
    /// A filesystem mounted by the root of a user namespace; where the namespace is empty of rights, it fails.
    UserMount,
    UserOverlay,
    OpenTree,
    MountSetattr,
    MoveMount,
    /// A new /proc, the way that a sandbox gets its own.
    UserProc,
}

/// A probe takes about a millisecond. One that takes this long never comes back.
const PATIENCE_MS: i32 = 1000;

/// What a probe is answered with whose child was killed for it.
pub const KILLED: Errno = Errno(libc::ECANCELED);

impl Feature {
    /// Uses the feature once.
    pub fn probe(self) -> Result<()> {
        in_child(match self {
            Self::Clone3 => clone3,
            Self::CloneIntoCgroup => clone_into_cgroup,
            Self::Pidfd => pidfd,
            Self::CloseRange => || sys::close_range(u32::MAX, u32::MAX),
            Self::Openat2 => openat2,
            Self::Seccomp => install_filter,
            Self::Keyring => sys::new_session_keyring,
            Self::UserNamespace => || in_user_namespace(0, nothing),
            Self::PidNamespace => || in_user_namespace(libc::CLONE_NEWPID, nothing),
            Self::MountNamespace => || in_user_namespace(libc::CLONE_NEWNS, nothing),
            Self::NetNamespace => || in_user_namespace(libc::CLONE_NEWNET, nothing),
            Self::IpcNamespace => || in_user_namespace(libc::CLONE_NEWIPC, nothing),
            Self::UtsNamespace => || in_user_namespace(libc::CLONE_NEWUTS, nothing),
            Self::CgroupNamespace => || in_user_namespace(libc::CLONE_NEWCGROUP, nothing),
            Self::UserMount => || in_user_namespace(libc::CLONE_NEWNS, scratch),
            Self::UserOverlay => || in_user_namespace(libc::CLONE_NEWNS, overlay),
            Self::OpenTree => || in_user_namespace(libc::CLONE_NEWNS, || detached_mount().map(drop)),
            Self::MountSetattr => || in_user_namespace(libc::CLONE_NEWNS, mount_setattr),
            Self::MoveMount => || in_user_namespace(libc::CLONE_NEWNS, move_mount),
            Self::UserProc => user_proc,
        })
    }
}

/// The version of Landlock's ABI, or why there is none.
pub fn landlock() -> Result<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel reads no attributes and answers its version.
    let ret = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION) };
    u32::try_from(ret).map_err(|_| Errno::last())
}

/// Whether somebody listens on a Unix socket; never waits.
pub fn unix_socket_answers(path: &CStr) -> Result<()> {
    // SAFETY: all-zero bytes are a valid address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.to_bytes_with_nul();
    let room = address.sun_path.get_mut(..bytes.len()).ok_or(Errno(libc::ENAMETOOLONG))?;
    for (to, from) in room.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    let socket = sys::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0)?;
    let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the address lives across the call and the size is its own.
    let ret = unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size) };
    if ret < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// Runs a probe in a child and waits for its answer: one byte with the error number.
fn in_child(probe: fn() -> Result<()>) -> Result<()> {
    let (answer, answers) = sys::pipe()?;
    // SAFETY: the child makes system calls only, whatever other threads held when it was forked.
    let pid = match unsafe { libc::fork() } {
        -1 => return Err(Errno::last()),
        0 => {
            sys::reset_signals();
            let _ = sys::write(answers.as_raw_fd(), &[code(probe())]);
            sys::exit(0)
        }
        pid => pid,
    };
    drop(answers);
    let result = receive(answer.as_raw_fd());
    if result.is_err() {
        // Most have ended by now; the number is theirs until they are reaped.
        let _ = sys::kill(pid, libc::SIGKILL);
    }
    let _ = sys::wait_pid(pid);
    result
}

fn receive(answer: RawFd) -> Result<()> {
    let mut fds = [libc::pollfd { fd: answer, events: libc::POLLIN, revents: 0 }];
    let readable = loop {
        match sys::poll(&mut fds, PATIENCE_MS) {
            Err(Errno(libc::EINTR)) => {}
            other => break other?,
        }
    };
    if readable == 0 {
        return Err(Errno(libc::ETIMEDOUT));
    }
    let mut byte = [0];
    match sys::read(answer, &mut byte)? {
        0 => Err(KILLED),
        _ => decoded(byte[0].into()),
    }
}

/// A result as an exit code; error numbers end at 133.
fn code(result: Result<()>) -> u8 {
    result.map_or_else(|Errno(number)| u8::try_from(number).unwrap_or(u8::MAX), |()| 0)
}

fn decoded(code: i32) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Errno(code)) }
}

fn reap(pid: i32) -> Result<()> {
    let status = sys::wait_pid(pid)?;
    if libc::WIFEXITED(status) { decoded(libc::WEXITSTATUS(status)) } else { Err(KILLED) }
}

fn nothing() -> Result<()> {
    Ok(())
}

/// Forks with clone3. Only for probes: the process that they run in has one thread.
fn fork(flags: i32, cgroup: Option<RawFd>) -> Result<Forked> {
    // SAFETY: probes run in a forked child, which has one thread.
    unsafe { clone::fork_into(flags as u64, cgroup) }
}

fn clone3() -> Result<()> {
    match fork(0, None)? {
        Forked::Child => sys::exit(0),
        Forked::Parent { pid, .. } => reap(pid),
    }
}

/// Names a descriptor that is no cgroup. A kernel that has looked at it says so; others do not know the flag.
fn clone_into_cgroup() -> Result<()> {
    let null = sys::open(sys::CWD, c"/dev/null", libc::O_RDONLY, 0)?;
    match fork(0, Some(null.as_raw_fd())) {
        Err(Errno(libc::EBADF)) => Ok(()),
        Err(errno) => Err(errno),
        Ok(Forked::Child) => sys::exit(0),
        Ok(Forked::Parent { pid, .. }) => reap(pid).and(Err(Errno(libc::EOPNOTSUPP))),
    }
}

/// Ends a child through its descriptor and sees it end there.
fn pidfd() -> Result<()> {
    match fork(0, None)? {
        Forked::Child => loop {
            let _ = sys::poll(&mut [], -1);
        },
        Forked::Parent { pid, pidfd } => {
            let killed = sys::pidfd_kill(pidfd.as_raw_fd(), libc::SIGKILL);
            if killed.is_err() {
                let _ = sys::kill(pid, libc::SIGKILL);
            }
            let mut fds = [libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
            let seen = sys::poll(&mut fds, PATIENCE_MS / 2);
            let _ = sys::wait_pid(pid);
            killed?;
            if seen? == 1 { Ok(()) } else { Err(Errno(libc::ETIMEDOUT)) }
        }
    }
}

fn openat2() -> Result<()> {
    let root = sys::open(sys::CWD, c"/", libc::O_PATH | libc::O_DIRECTORY, 0)?;
    let resolve = sys::RESOLVE_BENEATH | sys::RESOLVE_NO_SYMLINKS | sys::RESOLVE_NO_MAGICLINKS;
    sys::openat2(root.as_raw_fd(), c".", libc::O_PATH | libc::O_DIRECTORY, 0, resolve).map(drop)
}

/// Installs the filter that init has; what follows, an answer and an exit, passes it.
fn install_filter() -> Result<()> {
    sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0)?;
    seccomp::install(seccomp::init()).map_err(Errno)
}

/// Runs a probe as the root of a new user namespace, with other new namespaces. As root its ids are those of a
/// sandbox; anybody else, and the root of a container that has no others, can only map his own.
fn in_user_namespace(flags: i32, probe: fn() -> Result<()>) -> Result<()> {
    let (ready, go) = sys::pipe()?;
    match fork(libc::CLONE_NEWUSER | flags, None)? {
        Forked::Child => {
            drop(go);
            sys::exit(code(become_root(ready.as_raw_fd()).and_then(|()| probe())).into())
        }
        Forked::Parent { pid, .. } => {
            let mapped = map_ids(pid).and_then(|()| sys::write(go.as_raw_fd(), b"g").map(drop));
            // Without a byte the child sees the end of the pipe and ends.
            drop(go);
            let ended = reap(pid);
            mapped.and(ended)
        }
    }
}

fn become_root(ready: RawFd) -> Result<()> {
    if sys::read(ready, &mut [0])? != 1 {
        return Err(Errno(libc::EPIPE));
    }
    sys::setgid_all(0)?;
    sys::setuid_all(0)?;
    // A child that hangs goes with the probe, which is killed after a while.
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as usize, 0).map(drop)
}

fn map_ids(pid: i32) -> Result<()> {
    let id = slots::FIRST_ID;
    if sys::geteuid() == 0 && write_maps(pid, id, id).is_ok() {
        return Ok(());
    }
    // SAFETY: cannot fail.
    let gid = unsafe { libc::syscall(libc::SYS_getegid) as u32 };
    // Without privileges groups must be given up first.
    write_about(pid, "setgroups", format_args!("deny"))?;
    write_maps(pid, sys::geteuid(), gid)
}

fn write_maps(pid: i32, uid: u32, gid: u32) -> Result<()> {
    write_about(pid, "uid_map", format_args!("0 {uid} 1\n"))?;
    write_about(pid, "gid_map", format_args!("0 {gid} 1\n"))
}

/// Writes a file of /proc/PID, without allocating.
fn write_about(pid: i32, file: &str, value: std::fmt::Arguments<'_>) -> Result<()> {
    fn written(buffer: &mut [u8; 64], text: std::fmt::Arguments<'_>) -> usize {
        let mut rest = &mut buffer[..];
        let _ = rest.write_fmt(text);
        64 - rest.len()
    }
    let (mut path, mut text) = ([0; 64], [0; 64]);
    written(&mut path, format_args!("/proc/{pid}/{file}\0"));
    let len = written(&mut text, value);
    let path = CStr::from_bytes_until_nul(&path).map_err(|_| Errno(libc::ENAMETOOLONG))?;
    sys::write_file(sys::CWD, path, &text[..len])
}

/// A filesystem in memory on /tmp, which only this process sees.
fn scratch() -> Result<()> {
    sys::mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    sys::mount(Some(c"scratch"), c"/tmp", Some(c"tmpfs"), flags, Some(c"size=64k"))?;
    sys::chdir(c"/tmp")?;
    [c"a", c"b", c"c"].into_iter().try_for_each(|folder| sys::mkdir(sys::CWD, folder, 0o755))
}

fn overlay() -> Result<()> {
    scratch()?;
    let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV;
    sys::mount(Some(c"overlay"), c"c", Some(c"overlay"), flags, Some(c"lowerdir=a:b"))
}

fn detached_mount() -> Result<OwnedFd> {
    scratch()?;
    sys::clone_mount(sys::CWD, c".")
}

fn mount_setattr() -> Result<()> {
    let mount = detached_mount()?;
    let set = sys::MOUNT_ATTR_RDONLY | sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NODEV;
    sys::mount_setattr(mount.as_raw_fd(), set, -1)
}

fn move_mount() -> Result<()> {
    sys::attach_mount(detached_mount()?.as_raw_fd(), c"c")
}

const PROC_FLAGS: u64 = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// The kernel shows a new /proc to a user namespace only where one is in full view already. As root the launcher
/// mounts that one itself.
fn user_proc() -> Result<()> {
    if sys::geteuid() == 0 && sys::unshare(libc::CLONE_NEWNS).is_ok() {
        // Where that is not allowed, the /proc that is there has to do.
        let _ = sys::mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)
            .and_then(|()| sys::mount(Some(c"proc"), c"/proc", Some(c"proc"), PROC_FLAGS, None));
    }
    in_user_namespace(libc::CLONE_NEWNS | libc::CLONE_NEWPID, || {
        scratch()?;
        let flags = PROC_FLAGS | libc::MS_RDONLY;
        sys::mount(Some(c"proc"), c"a", Some(c"proc"), flags, Some(c"hidepid=2"))
    })
}
