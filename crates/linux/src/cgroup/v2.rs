//! Version 2: one folder per sandbox, and one that all inits share.
//!
//! Cloning a process from the inits' group into a sandbox's needs write access to `cgroup.procs` of both and of
//! their common parent. The parent's is opened to everyone: it only matters to processes that are below it
//! already, and those see no cgroup filesystem.

use super::{CPU_PERIOD_US, CgroupLimits, Entry, Group};
use crate::sys::{self, Errno, Result};
use crate::{ControlSet, Stage};
use cofferdam_core::Control;
use std::ffi::{CStr, CString};
use std::fs;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The base folder and the inits' group in it.
#[derive(Debug)]
pub struct Tree {
    base: OwnedFd,
    inits: OwnedFd,
}

/// The group of all inits.
const INITS: &str = "cofferdam-init";

/// Where this process itself moves when the base is the group that it is in.
const HOST: &str = "cofferdam-host";

impl Tree {
    pub(super) fn open(base: &Path) -> std::result::Result<Self, String> {
        prepare(base).map_err(|e| format!("{}: {e}", base.display()))?;
        let open = |path: &Path| {
            let text = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
            let fd = sys::open(sys::CWD, &text, libc::O_DIRECTORY | libc::O_RDONLY, 0);
            fd.map_err(|e| format!("{}: {e}", path.display()))
        };
        Ok(Self { base: open(base)?, inits: open(&base.join(INITS))? })
    }

    pub(super) fn base(&self) -> RawFd {
        self.base.as_raw_fd()
    }

    pub(super) fn init_group(&self) -> RawFd {
        self.inits.as_raw_fd()
    }

    pub(super) fn create(
        &self,
        name: &CStr,
        limits: &CgroupLimits,
    ) -> std::result::Result<Group, (Stage, Errno)> {
        let base = self.base.as_raw_fd();
        match sys::mkdir(base, name, 0o755) {
            Ok(()) => {}
            Err(Errno(libc::EEXIST)) => {
                sys::rmdir(base, name)
                    .and_then(|()| sys::mkdir(base, name, 0o755))
                    .map_err(|e| (Stage::Cgroup, e))?;
            }
            Err(errno) => return Err((Stage::Cgroup, errno)),
        }
        let made = open_and_limit(base, name, limits);
        made.inspect_err(|_| {
            let _ = self.remove(name);
        })
    }

    pub(super) fn remove(&self, name: &CStr) -> Result<()> {
        match sys::rmdir(self.base.as_raw_fd(), name) {
            Err(Errno(libc::ENOENT)) => Ok(()),
            other => other,
        }
    }
}

fn open_and_limit(
    base: RawFd,
    name: &CStr,
    limits: &CgroupLimits,
) -> std::result::Result<Group, (Stage, Errno)> {
    let folder =
        sys::open(base, name, libc::O_RDONLY | libc::O_DIRECTORY, 0).map_err(|e| (Stage::Cgroup, e))?;
    sys::chmod(folder.as_raw_fd(), c"cgroup.procs", 0o666).map_err(|e| (Stage::Cgroup, e))?;
    limits.point(Stage::Cgroup)?;
    let mut proven = ControlSet::EMPTY;
    apply(&folder, limits, &mut proven).map_err(|e| (Stage::CgroupLimit, e))?;
    limits.point(Stage::CgroupLimit)?;
    Ok(Group { entry: Entry::Folder(folder), oom: None, proven })
}

/// Makes the base and the inits' group, and switches the controllers on for the groups below.
fn prepare(base: &Path) -> std::io::Result<()> {
    if !base.is_dir() {
        let parent = base.parent().unwrap_or(base);
        enable(parent)?;
        make_folder(base)?;
    }
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").trim_start_matches('/');
    // Another process, or another thread, may be at it already.
    let is_home = !own.is_empty() && (base.ends_with(own) || base.join(HOST).ends_with(own));
    if is_home {
        enable_home(base)?;
    } else {
        enable(base)?;
    }
    let inits = base.join(INITS);
    make_folder(&inits)?;
    for folder in [base, &inits] {
        let procs = folder.join("cgroup.procs");
        if fs::metadata(&procs)?.permissions().mode() & 0o777 != 0o666 {
            fs::set_permissions(&procs, fs::Permissions::from_mode(0o666))?;
        }
    }
    Ok(())
}

/// Makes a group unless it is there; another launcher may be doing the same.
fn make_folder(path: &Path) -> std::io::Result<()> {
    match fs::create_dir(path) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Switches the controllers on in the group that this process is in, as often as a process comes to it meanwhile:
/// one that was forked before its parent was moved.
fn enable_home(base: &Path) -> std::io::Result<()> {
    const TRIES: u32 = 100;
    for _ in 1..TRIES {
        move_own_group(base)?;
        match enable(base) {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) => std::thread::yield_now(),
            other => return other,
        }
    }
    move_own_group(base)?;
    enable(base)
}

/// A group with processes of its own cannot limit groups below it: they go into a leaf first.
fn move_own_group(base: &Path) -> std::io::Result<()> {
    let host = base.join(HOST);
    make_folder(&host)?;
    for pid in fs::read_to_string(base.join("cgroup.procs"))?.lines() {
        match fs::write(host.join("cgroup.procs"), pid) {
            // It ended in the meantime.
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
            other => other?,
        }
    }
    Ok(())
}

fn enable(folder: &Path) -> std::io::Result<()> {
    let file = folder.join("cgroup.subtree_control");
    let now = fs::read_to_string(&file)?;
    if super::detect::NEEDED.iter().all(|c| now.split_whitespace().any(|have| have == *c)) {
        return Ok(());
    }
    fs::write(file, "+memory +pids +cpu")
}

pub(super) fn apply(folder: &OwnedFd, limits: &CgroupLimits, proven: &mut ControlSet) -> Result<()> {
    let leave_out = limits.leave_out;
    if !leave_out.has(Control::MemoryLimit) {
        let bytes = limits.memory_bytes / 4096 * 4096;
        set_and_prove(folder, c"memory.max", format_args!("{bytes}"))?;
        if limits.files_on_disk {
            // Who writes faster than the disk takes it is slowed down, and not killed for the pages that wait.
            set_and_prove(folder, c"memory.high", format_args!("{}", bytes / 4 * 3 / 4096 * 4096))?;
        }
        proven.insert(Control::MemoryLimit);
        let group = u8::from(limits.oom_group);
        set_and_prove(folder, c"memory.oom.group", format_args!("{group}"))?;
    }
    if !leave_out.has(Control::SwapOff) {
        match set_and_prove(folder, c"memory.swap.max", format_args!("0")) {
            // A kernel without swap has no such file, and needs none.
            Ok(()) | Err(Errno(libc::ENOENT)) => proven.insert(Control::SwapOff),
            Err(errno) => return Err(errno),
        }
    }
    if !leave_out.has(Control::PidsLimit) {
        set_and_prove(folder, c"pids.max", format_args!("{}", limits.pids))?;
        proven.insert(Control::PidsLimit);
    }
    if !leave_out.has(Control::CpuLimit) {
        let quota = limits.cpu_quota_us();
        set_and_prove(folder, c"cpu.max", format_args!("{quota} {CPU_PERIOD_US}"))?;
        proven.insert(Control::CpuLimit);
    }
    Ok(())
}

/// Writes a value and reads it back through the same descriptor.
fn set_and_prove(folder: &OwnedFd, file: &CStr, value: std::fmt::Arguments<'_>) -> Result<()> {
    let fd = sys::open(folder.as_raw_fd(), file, libc::O_RDWR, 0)?;
    let mut text = [0u8; 48];
    let mut rest = &mut text[..];
    let _ = rest.write_fmt(value);
    let len = 48 - rest.len();
    sys::write(fd.as_raw_fd(), &text[..len])?;
    let mut seen = [0u8; 48];
    let n = sys::pread(fd.as_raw_fd(), &mut seen, 0)?;
    if seen[..n].trim_ascii_end() == &text[..len] { Ok(()) } else { Err(Errno(libc::ERANGE)) }
}
