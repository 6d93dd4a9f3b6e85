//! Init's own restrictions, in the order in which the kernel needs them.

use super::{InitPlan, Kit, NamespaceIds, StageResult};
use crate::stage::Stage;
use crate::sys::{self, Errno};
use crate::{ControlSet, caps, landlock, seccomp};
use cofferdam_core::Control;
use std::ffi::CStr;
use std::os::fd::{IntoRawFd, RawFd};

/// What needs no ids yet, done while the launcher maps them.
pub(super) fn early(plan: &InitPlan<'_>, seen: &mut ControlSet) -> StageResult {
    sys::set_name(c"coffer-init");
    if !plan.leaves_out(Control::ClosedFds) {
        plan.at(Stage::Fds, close_all_but(&plan.keep))?;
    }
    if !plan.leaves_out(Control::Keyring) {
        plan.at(Stage::Keyring, sys::new_session_keyring())?;
        seen.set(Control::Keyring, sys::session_keyring().is_ok_and(|id| id != plan.launcher_keyring));
    }
    if !plan.leaves_out(Control::UtsNamespace) {
        plan.at(Stage::Hostname, sys::sethostname(plan.hostname.as_bytes()))?;
    }
    let wants_loopback = !plan.leaves_out(Control::NetNamespace) && !plan.leaves_out(Control::LoopbackOnly);
    if wants_loopback && !plan.has_network {
        plan.at(Stage::Loopback, sys::loopback_up())?;
    }
    let _ = sys::personality(0);
    Ok(())
}

/// Closes what lies between the descriptors that stay.
fn close_all_but(keep: &[RawFd]) -> sys::Result<()> {
    let mut next = 0;
    for fd in keep.iter().map(|fd| *fd as u32) {
        if fd > next {
            sys::close_range(next, fd - 1)?;
        }
        next = fd + 1;
    }
    sys::close_range(next, u32::MAX)
}

/// Waits for the id maps and takes on the sandbox's root id. Returns the launcher's namespaces.
pub(super) fn become_root(plan: &InitPlan<'_>) -> StageResult<NamespaceIds> {
    let mut ids = [0u8; NamespaceIds::BYTES];
    let synced = match sys::read(plan.sync, &mut ids) {
        Ok(NamespaceIds::BYTES) => Ok(()),
        Ok(_) => Err(Errno(libc::EPIPE)),
        Err(errno) => Err(errno),
    };
    plan.at(Stage::Sync, synced)?;
    if !plan.leaves_out(Control::Groups) {
        match sys::clear_groups() {
            // Without a privileged launcher the groups cannot change; the probe says whether there are any.
            Err(Errno(libc::EPERM)) => {}
            other => plan.at(Stage::Identity, other)?,
        }
    }
    plan.at(Stage::Identity, sys::setgid_all(plan.init_id))?;
    plan.at(Stage::Identity, sys::setuid_all(plan.init_id))?;
    // A change of ids clears it, so it comes after.
    if !plan.leaves_out(Control::DiesWithHost) {
        plan.at(Stage::DeathSignal, die_with_parent())?;
    }
    // The change of ids hid this process from itself; nobody else is in the sandbox yet, and `late` hides it again.
    plan.at(Stage::Identity, sys::prctl(libc::PR_SET_DUMPABLE, 1, 0))?;
    sys::umask(0);
    Ok(NamespaceIds::from_bytes(ids))
}

/// Every change of this process's ids, also of those for files, takes it away again.
pub(super) fn die_with_parent() -> sys::Result<()> {
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as usize, 0).map(drop)
}

/// Without root, what a sandbox has of these is also counted as the user's own, who has 128 instances by default:
/// a few for each, so that one cannot take them from the others and from the user's editor.
const SHARED_COUNTS: [(&CStr, &[u8]); 2] =
    [(c"/proc/sys/user/max_inotify_instances", b"16"), (c"/proc/sys/user/max_inotify_watches", b"8192")];

/// Settings that are made through the launcher's /proc, as the sandbox's own will be read-only.
pub(super) fn through_host_proc(
    plan: &InitPlan<'_>,
    outside: NamespaceIds,
    seen: &mut ControlSet,
) -> StageResult {
    super::probe::namespaces(outside, seen);
    if !plan.leaves_out(Control::NamespaceLimits) {
        plan.at(Stage::NamespaceLimits, write_and_prove(c"/proc/sys/user/max_user_namespaces", b"0"))?;
        seen.insert(Control::NamespaceLimits);
        // Older kernels have no such file, and no fanotify for user namespaces either.
        let _ = write_and_prove(c"/proc/sys/user/max_fanotify_groups", b"0");
        if plan.shares_counts {
            for (path, most) in SHARED_COUNTS {
                match write_and_prove(path, most) {
                    // A kernel that does not count them by namespace.
                    Err(Errno(libc::ENOENT)) => {}
                    other => plan.at(Stage::NamespaceLimits, other)?,
                }
            }
        }
    }
    if !plan.leaves_out(Control::OomVictim) {
        plan.at(Stage::OomScore, write_and_prove(c"/proc/self/oom_score_adj", b"1000"))?;
        seen.insert(Control::OomVictim);
    }
    Ok(())
}

fn write_and_prove(path: &CStr, value: &[u8]) -> sys::Result<()> {
    use std::os::fd::AsRawFd;
    let fd = sys::open(sys::CWD, path, libc::O_RDWR, 0)?;
    sys::write(fd.as_raw_fd(), value)?;
    let mut buffer = [0u8; 16];
    let n = sys::pread(fd.as_raw_fd(), &mut buffer, 0)?;
    if buffer[..n].trim_ascii_end() == value { Ok(()) } else { Err(Errno(libc::ERANGE)) }
}

/// Lowered only, so that no privilege is needed. There is no limit on address space: it breaks JVM and Node.
/// The names are those that containers are asked for them by.
pub(crate) const RLIMITS: [(&str, libc::__rlimit_resource_t, u64); 6] = [
    ("nofile", libc::RLIMIT_NOFILE, 4096),
    ("memlock", libc::RLIMIT_MEMLOCK, 8 << 20),
    ("msgqueue", libc::RLIMIT_MSGQUEUE, 0),
    ("sigpending", libc::RLIMIT_SIGPENDING, 4096),
    ("rtprio", libc::RLIMIT_RTPRIO, 0),
    ("nice", libc::RLIMIT_NICE, 0),
];

pub(crate) const NOFILE: u64 = RLIMITS[0].2;

/// One byte: less than any core file, and the one value that also stops a core_pattern with a pipe.
pub(crate) const CORE: u64 = 1;

fn lower(resource: libc::__rlimit_resource_t, value: u64) -> sys::Result<()> {
    let (_, hard) = sys::getrlimit(resource as i32)?;
    sys::setrlimit(resource as i32, value.min(hard))
}

/// What comes after the mounts: limits, Landlock's rules, and init's own walls, the filter last.
pub(super) fn late(plan: &InitPlan<'_>) -> StageResult<Kit> {
    if !plan.leaves_out(Control::Rlimits) {
        for (_, resource, value) in RLIMITS {
            plan.at(Stage::Rlimits, lower(resource, value))?;
        }
    }
    if !plan.leaves_out(Control::CoreDumpsOff) {
        plan.at(Stage::Rlimits, lower(libc::RLIMIT_CORE, CORE))?;
    }
    let landlock = if plan.landlock_abi > 0 && !plan.leaves_out(Control::Landlock) {
        // What is allowed for a folder is allowed below it. /proc and /dev are read-only mounts either way. A test
        // that leaves out the read-only root leaves out that alone.
        let writable: &[_] = if plan.writable_root && !plan.leaves_out(Control::ReadOnlyRoot) {
            &[c"/"]
        } else {
            &[c"/workspace", c"/tmp", c"/dev/shm"]
        };
        Some(plan.at(Stage::Landlock, landlock::ruleset(plan.landlock_abi, writable))?.into_raw_fd())
    } else {
        None
    };
    let signals = plan.at(Stage::InitCapabilities, sys::signal_fd(libc::SIGCHLD))?.into_raw_fd();
    if !plan.leaves_out(Control::InitProtected) {
        plan.at(Stage::InitDumpable, sys::prctl(libc::PR_SET_DUMPABLE, 0, 0))?;
    }
    if !plan.leaves_out(Control::Capabilities) {
        // Every process inherits that; what init itself holds is not touched by it.
        plan.at(Stage::InitCapabilities, caps::drop_bounding(plan.last_capability))?;
    }
    plan.at(Stage::InitCapabilities, caps::set(caps::INIT))?;
    if !plan.leaves_out(Control::InitSeccomp) {
        plan.at(Stage::InitSeccomp, sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0))?;
        plan.at(Stage::InitSeccomp, seccomp::install(plan.init_filter).map_err(Errno))?;
    }
    sys::umask(0o022);
    let workspace = sys::open(sys::CWD, c"/workspace", libc::O_PATH | libc::O_DIRECTORY, 0);
    let workspace = plan.at(Stage::Workspace, workspace)?.into_raw_fd();
    let bounding_empty = caps::bounding_empty(plan.last_capability);
    Ok(Kit { launcher_cgroups: 0, landlock, canary: None, bounding_empty, signals, workspace })
}
