//! System calls, one thin wrapper each.
//!
//! Everything here may be called between clone and exec: nothing allocates, nothing locks, and an error is a
//! plain number. Pointers handed to the kernel come from references that live across the call.

mod attributes;
mod loops;
mod mounts;

pub use attributes::*;
pub use loops::*;
pub use mounts::*;

use libc::{c_int, c_long, c_void};
use std::ffi::CStr;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// An error number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    pub(crate) fn last() -> Self {
        // SAFETY: the location is thread-local and always valid; glibc hands it out without locking.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}

pub type Result<T> = std::result::Result<T, Errno>;

fn check(ret: c_long) -> Result<usize> {
    if ret < 0 { Err(Errno::last()) } else { Ok(ret as usize) }
}

fn owned(ret: c_long) -> Result<OwnedFd> {
    // SAFETY: the kernel has just made this descriptor for us, so nobody else owns it.
    check(ret).map(|fd| unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

fn ptr(text: &CStr) -> *const c_void {
    text.as_ptr().cast()
}

fn opt_ptr(text: Option<&CStr>) -> *const c_void {
    text.map_or(std::ptr::null(), ptr)
}

/// The current directory, for calls that take one.
pub const CWD: RawFd = libc::AT_FDCWD;

pub fn open(dir: RawFd, path: &CStr, flags: c_int, mode: u32) -> Result<OwnedFd> {
    // SAFETY: the path is NUL-terminated and lives across the call.
    owned(unsafe { libc::syscall(libc::SYS_openat, dir, ptr(path), flags | libc::O_CLOEXEC, mode) })
}

/// `open_how` of openat2(2).
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

pub const RESOLVE_NO_MAGICLINKS: u64 = 0x02;
pub const RESOLVE_NO_SYMLINKS: u64 = 0x04;
pub const RESOLVE_BENEATH: u64 = 0x08;

pub fn openat2(dir: RawFd, path: &CStr, flags: c_int, mode: u32, resolve: u64) -> Result<OwnedFd> {
    let how = OpenHow { flags: (flags | libc::O_CLOEXEC) as u64, mode: u64::from(mode), resolve };
    // SAFETY: path and how live across the call, and the size is that of how.
    owned(unsafe { libc::syscall(libc::SYS_openat2, dir, ptr(path), &how, size_of::<OpenHow>()) })
}

pub fn read(fd: RawFd, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes at most the buffer's length into it.
    check(unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) } as c_long)
}

pub fn pread(fd: RawFd, buffer: &mut [u8], offset: i64) -> Result<usize> {
    // SAFETY: the kernel writes at most the buffer's length into it.
    check(unsafe { libc::pread(fd, buffer.as_mut_ptr().cast(), buffer.len(), offset) } as c_long)
}

pub fn write(fd: RawFd, bytes: &[u8]) -> Result<usize> {
    // SAFETY: the kernel reads at most the slice's length from it.
    check(unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) } as c_long)
}

pub fn pwrite(fd: RawFd, bytes: &[u8], offset: i64) -> Result<usize> {
    // SAFETY: the kernel reads at most the slice's length from it.
    check(unsafe { libc::pwrite(fd, bytes.as_ptr().cast(), bytes.len(), offset) } as c_long)
}

/// Moves a file's position to where it has data, or a hole.
pub fn seek(fd: RawFd, offset: i64, whence: c_int) -> Result<i64> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_lseek, fd, offset, whence) }).map(|at| at as i64)
}

pub fn truncate(fd: RawFd, bytes: i64) -> Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_ftruncate, fd, bytes) }).map(drop)
}

/// Writes to a file that takes one value, such as those of proc and cgroup filesystems.
pub fn write_file(dir: RawFd, path: &CStr, value: &[u8]) -> Result<()> {
    let fd = open(dir, path, libc::O_WRONLY, 0)?;
    write(fd.as_raw_fd(), value).map(drop)
}

/// Reads the beginning of a file, as much as the buffer holds.
pub fn read_file<'b>(dir: RawFd, path: &CStr, buffer: &'b mut [u8]) -> Result<&'b [u8]> {
    let fd = open(dir, path, libc::O_RDONLY, 0)?;
    let n = read(fd.as_raw_fd(), buffer)?;
    Ok(&buffer[..n])
}

/// Fills a buffer with the next entries of a folder; 0 at its end.
pub fn getdents(fd: RawFd, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes at most the buffer's length into it.
    check(unsafe { libc::syscall(libc::SYS_getdents64, fd, buffer.as_mut_ptr(), buffer.len()) })
}

/// Splits the first entry's name off what `getdents` filled in.
pub fn next_entry(entries: &[u8]) -> Option<(&CStr, &[u8])> {
    // The kernel's layout: an inode, an offset, this entry's length, a type, and a NUL-terminated name.
    let len = u16::from_ne_bytes(entries.get(16..18)?.try_into().ok()?) as usize;
    let (entry, rest) = entries.split_at_checked(len)?;
    Some((CStr::from_bytes_until_nul(entry.get(19..)?).ok()?, rest))
}

pub fn mkdir(dir: RawFd, path: &CStr, mode: u32) -> Result<()> {
    // SAFETY: the path is NUL-terminated and lives across the call.
    check(unsafe { libc::syscall(libc::SYS_mkdirat, dir, ptr(path), mode) }).map(drop)
}

pub fn rmdir(dir: RawFd, path: &CStr) -> Result<()> {
    // SAFETY: the path is NUL-terminated and lives across the call.
    check(unsafe { libc::syscall(libc::SYS_unlinkat, dir, ptr(path), libc::AT_REMOVEDIR) }).map(drop)
}

pub fn unlink(dir: RawFd, path: &CStr) -> Result<()> {
    // SAFETY: the path is NUL-terminated and lives across the call.
    check(unsafe { libc::syscall(libc::SYS_unlinkat, dir, ptr(path), 0) }).map(drop)
}

pub fn rename(from: RawFd, old: &CStr, to: RawFd, new: &CStr) -> Result<()> {
    // SAFETY: both names are NUL-terminated and live across the call.
    check(unsafe { libc::syscall(libc::SYS_renameat2, from, ptr(old), to, ptr(new), 0) }).map(drop)
}

pub fn mknod(path: &CStr, mode: u32, device: u64) -> Result<()> {
    // SAFETY: the path is NUL-terminated and lives across the call.
    check(unsafe { libc::syscall(libc::SYS_mknodat, CWD, ptr(path), mode, device) }).map(drop)
}

pub fn symlink(target: &CStr, path: &CStr) -> Result<()> {
    // SAFETY: both paths are NUL-terminated and live across the call.
    check(unsafe { libc::syscall(libc::SYS_symlinkat, ptr(target), CWD, ptr(path)) }).map(drop)
}

pub fn symlink_at(target: &CStr, dir: RawFd, path: &CStr) -> Result<()> {
    // SAFETY: both paths are NUL-terminated and live across the call.
    check(unsafe { libc::syscall(libc::SYS_symlinkat, ptr(target), dir, ptr(path)) }).map(drop)
}

pub fn inotify() -> Result<OwnedFd> {
    let flags = libc::IN_CLOEXEC | libc::IN_NONBLOCK;
    // SAFETY: no memory is involved.
    owned(unsafe { libc::syscall(libc::SYS_inotify_init1, flags) })
}

pub fn chmod(dir: RawFd, path: &CStr, mode: u32) -> Result<()> {
    // SAFETY: the path is NUL-terminated and lives across the call.
    check(unsafe { libc::syscall(libc::SYS_fchmodat, dir, ptr(path), mode) }).map(drop)
}

pub fn chown(path: &CStr, uid: u32, gid: u32) -> Result<()> {
    // SAFETY: the path is NUL-terminated and lives across the call.
    let ret =
        unsafe { libc::syscall(libc::SYS_fchownat, CWD, ptr(path), uid, gid, libc::AT_SYMLINK_NOFOLLOW) };
    check(ret).map(drop)
}

pub fn fchmod(fd: RawFd, mode: u32) -> Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_fchmod, fd, mode) }).map(drop)
}

pub fn fchown(fd: RawFd, uid: u32, gid: u32) -> Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_fchown, fd, uid, gid) }).map(drop)
}

pub fn fstat(fd: RawFd) -> Result<libc::stat> {
    let mut stat = std::mem::MaybeUninit::uninit();
    // SAFETY: the kernel fills the whole structure when it succeeds, and only then is it read.
    check(c_long::from(unsafe { libc::fstat(fd, stat.as_mut_ptr()) }))?;
    // SAFETY: filled by the call above.
    Ok(unsafe { stat.assume_init() })
}

pub fn stat_at(dir: RawFd, path: &CStr, flags: c_int) -> Result<libc::stat> {
    let mut stat = std::mem::MaybeUninit::uninit();
    // SAFETY: the path lives across the call, and the kernel fills the whole structure when it succeeds.
    check(c_long::from(unsafe { libc::fstatat(dir, path.as_ptr(), stat.as_mut_ptr(), flags) }))?;
    // SAFETY: filled by the call above.
    Ok(unsafe { stat.assume_init() })
}

/// The kernel's `statfs`, whose flags libc's structure leaves out.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct StatFs {
    pub kind: i64,
    pub block_bytes: i64,
    pub blocks: u64,
    pub blocks_free: u64,
    pub blocks_available: u64,
    pub inodes: u64,
    pub inodes_free: u64,
    id: [i32; 2],
    name_max: i64,
    fragment_bytes: i64,
    pub flags: i64,
    spare: [i64; 4],
}

pub fn statfs(path: &CStr) -> Result<StatFs> {
    let mut stat = StatFs::default();
    // SAFETY: the path is NUL-terminated, stat has the kernel's layout, and both live across the call.
    check(unsafe { libc::syscall(libc::SYS_statfs, ptr(path), &mut stat) })?;
    Ok(stat)
}

pub fn fstatfs(fd: RawFd) -> Result<StatFs> {
    let mut stat = StatFs::default();
    // SAFETY: stat has the kernel's layout and lives across the call.
    check(unsafe { libc::syscall(libc::SYS_fstatfs, fd, &mut stat) })?;
    Ok(stat)
}

pub fn chdir(path: &CStr) -> Result<()> {
    // SAFETY: the path is NUL-terminated and lives across the call.
    check(unsafe { libc::syscall(libc::SYS_chdir, ptr(path)) }).map(drop)
}

pub fn fchdir(fd: RawFd) -> Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_fchdir, fd) }).map(drop)
}

pub fn getcwd(buffer: &mut [u8]) -> Result<&[u8]> {
    // SAFETY: the kernel writes at most the buffer's length.
    let n = check(unsafe { libc::syscall(libc::SYS_getcwd, buffer.as_mut_ptr(), buffer.len()) })?;
    Ok(&buffer[..n.saturating_sub(1)])
}

pub fn unshare(flags: c_int) -> Result<()> {
    // SAFETY: no memory is involved; the callers are single-threaded processes.
    check(unsafe { libc::syscall(libc::SYS_unshare, flags) }).map(drop)
}

pub fn setns(fd: RawFd, kind: c_int) -> Result<()> {
    // SAFETY: no memory is involved; the callers are single-threaded processes.
    check(unsafe { libc::syscall(libc::SYS_setns, fd, kind) }).map(drop)
}

pub fn getpid() -> i32 {
    // SAFETY: cannot fail. The raw call, because libc may remember the number from before a clone.
    unsafe { libc::syscall(libc::SYS_getpid) as i32 }
}

pub fn getppid() -> i32 {
    // SAFETY: cannot fail.
    unsafe { libc::syscall(libc::SYS_getppid) as i32 }
}

pub fn geteuid() -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::syscall(libc::SYS_geteuid) as u32 }
}

pub fn getegid() -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::syscall(libc::SYS_getegid) as u32 }
}

/// Sets the effective uid of this thread only, as the raw call does.
pub fn seteuid(uid: u32) -> Result<()> {
    let keep = u32::MAX;
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_setresuid, keep, uid, keep) }).map(drop)
}

pub fn setuid_all(uid: u32) -> Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) }).map(drop)
}

pub fn setgid_all(gid: u32) -> Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) }).map(drop)
}

pub fn setfsuid(uid: u32) {
    // SAFETY: no memory is involved; it cannot report failure, so callers check what follows instead.
    unsafe { libc::syscall(libc::SYS_setfsuid, uid) };
}

pub fn setfsgid(gid: u32) {
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_setfsgid, gid) };
}

pub fn clear_groups() -> Result<()> {
    // SAFETY: a count of 0 reads no memory.
    check(unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<u32>()) }).map(drop)
}

pub fn group_count() -> Result<usize> {
    // SAFETY: a size of 0 asks for the count only and writes nothing.
    check(unsafe { libc::syscall(libc::SYS_getgroups, 0, std::ptr::null_mut::<u32>()) })
}

/// A bit for each processor of the machine.
pub type Processors = [u64; 16];

/// The processor that this process runs on at the moment.
pub fn current_processor() -> Option<usize> {
    // SAFETY: cannot do harm.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// The processors that a process may run on.
pub fn allowed_processors(pid: i32) -> Result<Processors> {
    let mut processors = Processors::default();
    let bytes = size_of::<Processors>();
    // SAFETY: the kernel fills at most that many bytes, and any bits are numbers.
    check(unsafe { libc::syscall(libc::SYS_sched_getaffinity, pid, bytes, processors.as_mut_ptr()) })?;
    Ok(processors)
}

pub fn allow_processors(pid: i32, processors: &Processors) -> Result<()> {
    let bytes = size_of::<Processors>();
    // SAFETY: the array lives across the call and has that many bytes.
    check(unsafe { libc::syscall(libc::SYS_sched_setaffinity, pid, bytes, processors.as_ptr()) }).map(drop)
}

pub fn prctl(option: c_int, arg2: usize, arg3: usize) -> Result<usize> {
    // SAFETY: the options that are used here take plain numbers.
    check(unsafe { libc::syscall(libc::SYS_prctl, option, arg2, arg3, 0usize, 0usize) })
}

/// Names this process in lists of processes.
pub fn set_name(name: &CStr) {
    // SAFETY: the name is NUL-terminated and lives across the call; a failure changes nothing that matters.
    unsafe { libc::syscall(libc::SYS_prctl, libc::PR_SET_NAME, ptr(name), 0, 0, 0) };
}

pub fn setsid() -> Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_setsid) }).map(drop)
}

pub fn getsid() -> i32 {
    // SAFETY: no memory is involved.
    unsafe { libc::syscall(libc::SYS_getsid, 0) as i32 }
}

pub fn umask(mask: u32) {
    // SAFETY: cannot fail.
    unsafe { libc::syscall(libc::SYS_umask, mask) };
}

pub fn personality(persona: u64) -> Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_personality, persona) }).map(drop)
}

pub fn sethostname(name: &[u8]) -> Result<()> {
    // SAFETY: the kernel reads exactly the slice.
    check(unsafe { libc::syscall(libc::SYS_sethostname, name.as_ptr(), name.len()) }).map(drop)
}

/// Joins a fresh, nameless session keyring.
pub fn new_session_keyring() -> Result<()> {
    const KEYCTL_JOIN_SESSION_KEYRING: c_int = 1;
    // SAFETY: a null name asks for a new one.
    check(unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, std::ptr::null::<u8>()) })
        .map(drop)
}

/// The serial number of the session keyring; an error where there is none.
pub fn session_keyring() -> Result<usize> {
    const KEYCTL_GET_KEYRING_ID: c_int = 0;
    const KEY_SPEC_SESSION_KEYRING: c_int = -3;
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) })
}

pub fn setrlimit(resource: c_int, value: u64) -> Result<()> {
    let limit = libc::rlimit64 { rlim_cur: value, rlim_max: value };
    // SAFETY: limit lives across the call; a null old limit is allowed.
    let ret = unsafe {
        libc::syscall(libc::SYS_prlimit64, 0, resource, &limit, std::ptr::null_mut::<libc::rlimit64>())
    };
    check(ret).map(drop)
}

pub fn getrlimit(resource: c_int) -> Result<(u64, u64)> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: limit lives across the call; a null new limit changes nothing.
    let ret = unsafe {
        libc::syscall(libc::SYS_prlimit64, 0, resource, std::ptr::null::<libc::rlimit64>(), &mut limit)
    };
    check(ret).map(|_| (limit.rlim_cur, limit.rlim_max))
}

pub fn dup_to(fd: RawFd, target: RawFd, flags: c_int) -> Result<()> {
    // SAFETY: no memory is involved; the callers own the target's number.
    check(unsafe { libc::syscall(libc::SYS_dup3, fd, target, flags) }).map(drop)
}

/// A copy of a descriptor with a number of at least `floor`.
pub fn dup_above(fd: RawFd, floor: RawFd) -> Result<RawFd> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, floor) }).map(|fd| fd as RawFd)
}

pub fn clear_cloexec(fd: RawFd) -> Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_SETFD, 0) }).map(drop)
}

pub fn close(fd: RawFd) {
    // SAFETY: the callers own the number; errors of close cannot be acted on.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

pub fn close_range(first: u32, last: u32) -> Result<()> {
    // SAFETY: the callers own every number in the range.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}

pub fn close_on_exec_range(first: u32, last: u32) -> Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_CLOEXEC) }).map(drop)
}

pub fn set_nonblocking(fd: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: no memory is involved.
    let flags = check(unsafe { libc::syscall(libc::SYS_fcntl, fd.as_raw_fd(), libc::F_GETFL) })?;
    let flags = flags as c_int | libc::O_NONBLOCK;
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_fcntl, fd.as_raw_fd(), libc::F_SETFL, flags) }).map(drop)
}

/// A counter that another part of the kernel can raise.
pub fn event_fd() -> Result<OwnedFd> {
    // SAFETY: no memory is involved.
    owned(unsafe { libc::syscall(libc::SYS_eventfd2, 0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
}

/// A file in memory.
pub fn memory_file() -> Result<OwnedFd> {
    // SAFETY: the name is NUL-terminated.
    owned(unsafe { libc::syscall(libc::SYS_memfd_create, ptr(c"start"), libc::MFD_CLOEXEC) })
}

pub fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: the kernel fills both numbers when it succeeds.
    check(unsafe { libc::syscall(libc::SYS_pipe2, fds.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: both were just made for us.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

pub fn socket(family: c_int, kind: c_int, protocol: c_int) -> Result<OwnedFd> {
    // SAFETY: no memory is involved.
    owned(unsafe { libc::syscall(libc::SYS_socket, family, kind | libc::SOCK_CLOEXEC, protocol) })
}

/// Brings the loopback interface of the current network namespace up.
pub fn loopback_up() -> Result<()> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: request lives across the call and is what SIOCSIFFLAGS reads.
    check(unsafe { libc::syscall(libc::SYS_ioctl, socket.as_raw_fd(), libc::SIOCSIFFLAGS, &mut request) })
        .map(drop)
}

pub fn ioctl_number(fd: RawFd, request: u64, value: u64) -> Result<usize> {
    // SAFETY: used with requests that take a plain number.
    check(unsafe { libc::syscall(libc::SYS_ioctl, fd, request, value) })
}

pub fn set_window_size(fd: RawFd, rows: u16, columns: u16) -> Result<()> {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: size lives across the call and is what TIOCSWINSZ reads.
    check(unsafe { libc::syscall(libc::SYS_ioctl, fd, libc::TIOCSWINSZ, &size) }).map(drop)
}

pub fn window_size(fd: RawFd) -> Result<(u16, u16)> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: size lives across the call and is what TIOCGWINSZ fills.
    check(unsafe { libc::syscall(libc::SYS_ioctl, fd, libc::TIOCGWINSZ, &mut size) })?;
    Ok((size.ws_row, size.ws_col))
}

/// Unlocks the terminal behind a pty master and opens its slave.
pub fn pty_slave(master: RawFd) -> Result<OwnedFd> {
    let unlock: c_int = 0;
    // SAFETY: unlock lives across the call and is what TIOCSPTLCK reads.
    check(unsafe { libc::syscall(libc::SYS_ioctl, master, libc::TIOCSPTLCK, &unlock) })?;
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: TIOCGPTPEER takes flags and returns a new descriptor.
    owned(unsafe { libc::syscall(libc::SYS_ioctl, master, libc::TIOCGPTPEER, flags) })
}

pub fn kill(pid: i32, signal: c_int) -> Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_kill, pid, signal) }).map(drop)
}

pub fn pidfd_kill(pidfd: RawFd, signal: c_int) -> Result<()> {
    let none = std::ptr::null::<c_void>();
    // SAFETY: a null siginfo means the ordinary one.
    check(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd, signal, none, 0) }).map(drop)
}

/// Reaps one child. `None` where none has ended and `wait` was not asked for.
pub fn wait_any(wait: bool) -> Result<Option<(i32, c_int)>> {
    let mut status = 0;
    let flags = if wait { libc::__WALL } else { libc::__WALL | libc::WNOHANG };
    // SAFETY: status lives across the call; a null rusage is allowed.
    let ret =
        unsafe { libc::syscall(libc::SYS_wait4, -1, &mut status, flags, std::ptr::null_mut::<c_void>()) };
    check(ret).map(|pid| (pid != 0).then_some((pid as i32, status)))
}

pub fn wait_pid(pid: i32) -> Result<c_int> {
    let mut status = 0;
    let none = std::ptr::null_mut::<c_void>();
    // SAFETY: status lives across the call; a null rusage is allowed.
    check(unsafe { libc::syscall(libc::SYS_wait4, pid, &mut status, libc::__WALL, none) }).map(|_| status)
}

/// Waits until one of the descriptors can be read or is at its end. `Ok(0)` on time-out.
pub fn poll(fds: &mut [libc::pollfd], timeout_ms: c_int) -> Result<usize> {
    // SAFETY: the kernel reads and writes exactly the slice.
    check(c_long::from(unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as u64, timeout_ms) }))
}

/// Blocks a signal and returns a descriptor that is readable while it is pending.
pub fn signal_fd(signal: c_int) -> Result<OwnedFd> {
    let mask: u64 = 1 << (signal - 1);
    let none = std::ptr::null_mut::<u64>();
    // SAFETY: mask lives across both calls, and 8 is the size of the kernel's signal set.
    check(unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, &mask, none, 8) })?;
    let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
    // SAFETY: as above.
    owned(unsafe { libc::syscall(libc::SYS_signalfd4, -1, &mask, 8, flags) })
}

/// Unblocks every signal and gives each its default action, as a new program expects.
pub fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: all-zero bytes are a valid sigaction: SIG_DFL, no flags, an empty mask. It is the kernel's
        // layout (at most 32 bytes) that the raw call reads, and libc's structure is larger.
        let action: libc::sigaction = unsafe { std::mem::zeroed() };
        let none = std::ptr::null_mut::<c_void>();
        // SAFETY: action lives across the call. KILL and STOP answer EINVAL, which is as good.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, &action, none, 8) };
    }
    let empty: u64 = 0;
    let none = std::ptr::null_mut::<u64>();
    // SAFETY: the mask lives across the call, and 8 is the size of the kernel's signal set.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &empty, none, 8) };
}

/// Ends the process without running anything of libc's.
pub fn exit(code: c_int) -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, code) };
    }
}

pub fn random(buffer: &mut [u8]) -> Result<()> {
    // SAFETY: the kernel writes at most the buffer's length.
    let n = check(unsafe { libc::syscall(libc::SYS_getrandom, buffer.as_mut_ptr(), buffer.len(), 0) })?;
    if n == buffer.len() { Ok(()) } else { Err(Errno(libc::EAGAIN)) }
}

pub fn try_lock(fd: RawFd) -> Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_flock, fd, libc::LOCK_EX | libc::LOCK_NB) }).map(drop)
}

pub fn is_open(fd: RawFd) -> bool {
    // SAFETY: no memory is involved.
    unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_GETFD) >= 0 }
}

/// How many interfaces of the current network namespace have an IPv4 address.
pub fn interface_count(socket: RawFd) -> Result<usize> {
    let mut requests = [const { std::mem::MaybeUninit::<libc::ifreq>::zeroed() }; 4];
    let mut config = libc::ifconf {
        ifc_len: size_of_val(&requests) as c_int,
        ifc_ifcu: libc::__c_anonymous_ifc_ifcu { ifcu_buf: requests.as_mut_ptr().cast() },
    };
    // SAFETY: config points to the array and says its size; the kernel writes no more than that.
    check(unsafe { libc::syscall(libc::SYS_ioctl, socket, libc::SIOCGIFCONF, &mut config) })?;
    Ok(config.ifc_len as usize / size_of::<libc::ifreq>())
}

/// Makes a system call with all arguments 0, to see who answers it.
pub fn raw_without_arguments(number: c_long) -> Result<usize> {
    // SAFETY: used with calls that do nothing and touch no memory when every argument is 0.
    check(unsafe { libc::syscall(number, 0, 0, 0, 0, 0, 0) })
}

/// Unblocks every signal; their actions are the defaults since the launcher started.
pub fn unblock_signals() {
    let empty: u64 = 0;
    let none = std::ptr::null_mut::<u64>();
    // SAFETY: the mask lives across the call, and 8 is the size of the kernel's signal set.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &empty, none, 8) };
}
