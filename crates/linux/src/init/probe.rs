//! The proofs behind the isolation report: each control is looked at from inside, after the fact.

use super::{InitPlan, Kit, NamespaceIds};
use crate::sys::{self, Errno};
use crate::{ControlSet, caps};
use cofferdam_core::Control;
use std::ffi::CStr;
use std::os::fd::AsRawFd;

fn namespace(path: &CStr, of_launcher: u64) -> bool {
    sys::stat_at(sys::CWD, path, 0).is_ok_and(|stat| stat.st_ino != of_launcher)
}

/// Compares the namespaces with the launcher's; needs the launcher's /proc.
pub(super) fn namespaces(host: NamespaceIds, seen: &mut ControlSet) {
    seen.set(Control::UserNamespace, namespace(c"/proc/self/ns/user", host.user));
    seen.set(Control::PidNamespace, namespace(c"/proc/self/ns/pid", host.pid) && sys::getpid() == 1);
    seen.set(Control::MountNamespace, namespace(c"/proc/self/ns/mnt", host.mount));
    seen.set(Control::NetNamespace, namespace(c"/proc/self/ns/net", host.net));
    seen.set(Control::IpcNamespace, namespace(c"/proc/self/ns/ipc", host.ipc));
    seen.set(Control::UtsNamespace, namespace(c"/proc/self/ns/uts", host.uts));
    let mut buffer = [0u8; 256];
    let map = sys::read_file(sys::CWD, c"/proc/self/uid_map", &mut buffer).unwrap_or_default();
    seen.set(Control::OwnHostUids, maps_away_from_root(map));
}

/// Whether no line of an id map leads to host id 0.
fn maps_away_from_root(map: &[u8]) -> bool {
    let mut lines = map.split(|b| *b == b'\n').filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            let outside = line.split(|b| *b == b' ').filter(|field| !field.is_empty()).nth(1);
            outside.is_some_and(|field| field != b"0")
        })
}

const RDONLY: i64 = libc::ST_RDONLY as i64;
const NOSUID: i64 = libc::ST_NOSUID as i64;
const NODEV: i64 = 4;

/// What holds for the whole sandbox.
pub(super) fn init(plan: &InitPlan<'_>, seen: &mut ControlSet) {
    root_and_files(plan, seen);
    proc(seen);
    let same = |a: libc::stat, b: libc::stat| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino);
    let root = sys::stat_at(sys::CWD, c"/", 0);
    let above = sys::stat_at(sys::CWD, c"/..", 0);
    seen.set(Control::HostRootDetached, matches!((root, above), (Ok(a), Ok(b)) if same(a, b)));
    seen.set(Control::MinimalDev, dev_is_minimal());
    seen.set(Control::InitProtected, sys::prctl(libc::PR_GET_DUMPABLE, 0, 0) == Ok(0));
    seen.set(Control::DiesWithHost, death_signal() == Some(libc::SIGKILL));
    seen.set(Control::LoopbackOnly, seen.has(Control::NetNamespace) && addresses() == Some(1));
    seen.set(Control::InitSeccomp, filtered(libc::SYS_bpf));
}

/// Each mount is looked at once, for all that it shows.
fn root_and_files(plan: &InitPlan<'_>, seen: &mut ControlSet) {
    const OVERLAY: i64 = 0x794c_7630;
    const STRICT: i64 = NOSUID | NODEV;
    let has = |stat: &sys::StatFs, flags: i64| stat.flags & flags == flags;
    let (mut private, mut flags_hold) = (true, true);
    for overlay in &plan.overlays {
        let path = part_path(&overlay.target);
        let Ok(part) = sys::statfs(path) else { return };
        // The host's own root may be an overlay, too: the sandbox's is another one.
        private &= part.kind == OVERLAY
            && sys::stat_at(sys::CWD, path, 0).is_ok_and(|stat| stat.st_dev != overlay.plain_device);
        flags_hold &= has(&part, STRICT);
        seen.set(Control::ReadOnlyRoot, path == c"/" && has(&part, RDONLY));
    }
    seen.set(Control::PrivateRoot, private);
    let (Ok(files), Ok(proc)) = (sys::statfs(c"/workspace"), sys::statfs(c"/proc")) else { return };
    seen.set(Control::ProcReadOnly, has(&proc, RDONLY));
    let bytes = files.blocks.saturating_mul(files.block_bytes as u64);
    seen.set(Control::DiskLimit, bytes > 0 && bytes <= plan.files_bytes.next_multiple_of(4096));
    seen.set(Control::InodeLimit, files.inodes > 0 && files.inodes <= plan.files_inodes);
    let holds = |path: &CStr, flags: i64| sys::statfs(path).is_ok_and(|stat| has(&stat, flags));
    flags_hold &= has(&files, STRICT) && has(&proc, STRICT);
    flags_hold &= holds(c"/tmp", STRICT) && holds(c"/dev/shm", STRICT) && holds(c"/dev", NOSUID);
    seen.set(Control::MountFlags, flags_hold);
}

/// The path that a target below `/new` has after the pivot.
fn part_path(target: &CStr) -> &CStr {
    let bytes = target.to_bytes_with_nul();
    match CStr::from_bytes_with_nul(&bytes[b"/new".len()..]) {
        Ok(path) if !path.is_empty() => path,
        _ => c"/",
    }
}

fn proc(seen: &mut ControlSet) {
    let device = |path: &CStr| sys::stat_at(sys::CWD, path, 0).map(|stat| stat.st_dev);
    let own = device(c"/proc");
    let masked = |path: &CStr| match device(path) {
        Ok(dev) => Ok(dev) != own,
        Err(Errno(errno)) => errno == libc::ENOENT,
    };
    let covered = [c"/proc/sys", c"/proc/kallsyms", c"/proc/keys", c"/proc/cmdline"];
    seen.set(Control::ProcMasked, covered.into_iter().all(masked));
}

/// The usual five are there, and the host's own are not.
fn dev_is_minimal() -> bool {
    let null = sys::stat_at(sys::CWD, c"/dev/null", 0);
    let is_null = null.is_ok_and(|stat| stat.st_rdev == libc::makedev(1, 3));
    let gone = |path: &CStr| sys::stat_at(sys::CWD, path, 0).err() == Some(Errno(libc::ENOENT));
    is_null && [c"/dev/kmsg", c"/dev/mem", c"/dev/ptmx0", c"/dev/fuse", c"/dev/vda"].into_iter().all(gone)
}

fn death_signal() -> Option<i32> {
    let mut signal: libc::c_int = 0;
    sys::prctl(libc::PR_GET_PDEATHSIG, &raw mut signal as usize, 0).ok()?;
    Some(signal)
}

/// How many addresses the network namespace has; 1 is loopback's.
fn addresses() -> Option<usize> {
    let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).ok()?;
    sys::interface_count(socket.as_raw_fd()).ok()
}

/// Whether the filter in force answers for a system call, rather than the kernel: only it says ENOSYS.
fn filtered(number: libc::c_long) -> bool {
    sys::raw_without_arguments(number) == Err(Errno(libc::ENOSYS))
}

/// What holds for one process, looked at by itself just before it executes its program.
pub(super) fn payload(plan: &InitPlan<'_>, kit: &Kit, seen: &mut ControlSet) {
    seen.set(Control::CgroupNamespace, namespace(c"/proc/thread-self/ns/cgroup", kit.launcher_cgroups));
    seen.set(Control::Groups, sys::group_count() == Ok(0));
    // The bounding set is init's, which looked at it once for all that inherit it.
    seen.set(Control::Capabilities, caps::any() == Ok(0) && kit.bounding_empty);
    seen.set(Control::Securebits, sys::prctl(libc::PR_GET_SECUREBITS, 0, 0) == Ok(caps::LOCKED_SECUREBITS));
    seen.set(Control::NoNewPrivs, sys::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0) == Ok(1));
    seen.set(Control::OwnSession, sys::getsid() == sys::getpid());
    let hidden = sys::stat_at(sys::CWD, c"/proc/1", 0).err() == Some(Errno(libc::ENOENT));
    seen.set(Control::ProcHidden, hidden);
    let uid = sys::geteuid();
    seen.set(Control::SeparateInitUid, uid == plan.payload_id && uid != plan.init_id);
    let nofile = sys::getrlimit(libc::RLIMIT_NOFILE as i32);
    seen.set(Control::Rlimits, nofile.is_ok_and(|(soft, _)| soft <= super::lockdown::NOFILE));
    seen.set(
        Control::CoreDumpsOff,
        sys::getrlimit(libc::RLIMIT_CORE as i32).is_ok_and(|(_, hard)| hard <= 1),
    );
    if kit.landlock.is_some() {
        let canary = match kit.canary {
            Some(folder) => sys::open(folder, c".landlock", libc::O_WRONLY, 0),
            None => sys::open(sys::CWD, c"/run/.landlock", libc::O_WRONLY, 0),
        };
        seen.set(Control::Landlock, canary.err() == Some(Errno(libc::EACCES)));
    }
}

/// After the descriptors are closed and the filter is in: the last look.
pub(super) fn payload_last(seen: &mut ControlSet) {
    seen.set(Control::ClosedFds, !(3..12).any(sys::is_open));
    seen.set(Control::Seccomp, filtered(libc::SYS_clone3));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_to_host_root_is_seen() {
        assert!(maps_away_from_root(b"         0 1879048192      65536\n"));
        assert!(!maps_away_from_root(b"         0          0 4294967295\n"));
        assert!(!maps_away_from_root(b"0 100000 1000\n1000 0 1\n"));
        assert!(!maps_away_from_root(b""));
    }

    #[test]
    fn targets_lose_their_staging_prefix() {
        assert_eq!(part_path(c"/new"), c"/");
        assert_eq!(part_path(c"/new/usr"), c"/usr");
    }
}
