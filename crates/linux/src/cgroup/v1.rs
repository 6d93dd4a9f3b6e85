//! Version 1: a folder per controller. Only root can use it.

use super::{BASE, CgroupLimits, Entry, Group};
use crate::sys::{self, Errno, Result};
use crate::{ControlSet, Stage};
use cofferdam_core::Control;
use std::ffi::{CStr, CString};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

/// One controller's base folder.
#[derive(Debug)]
struct Controller {
    name: &'static str,
    base: OwnedFd,
}

/// The base folders of every controller that is used.
#[derive(Debug)]
pub struct Tree {
    controllers: Vec<Controller>,
    /// The devices policy is the same for every sandbox, so one group serves them all.
    devices: Option<OwnedFd>,
}

/// Null, zero, full, random, urandom and the terminal.
const ALLOWED_DEVICES: [&[u8]; 7] =
    [b"c 1:3 rw", b"c 1:5 rw", b"c 1:7 rw", b"c 1:8 rw", b"c 1:9 rw", b"c 5:0 rw", b"c 5:2 rw"];

fn open_folder(path: &Path) -> Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| Errno(libc::EINVAL))?;
    match sys::mkdir(sys::CWD, &path, 0o755) {
        Ok(()) | Err(Errno(libc::EEXIST)) => {}
        Err(errno) => return Err(errno),
    }
    sys::open(sys::CWD, &path, libc::O_DIRECTORY | libc::O_RDONLY, 0)
}

impl Tree {
    pub(super) fn open(mounts: &[(String, PathBuf)]) -> std::result::Result<Self, String> {
        let mut controllers = Vec::new();
        for name in ["memory", "pids", "cpu", "cpuacct", "freezer"] {
            let Some((_, mount)) = mounts.iter().find(|(n, _)| n == name) else { continue };
            // Two controllers in one hierarchy share their folders.
            let shared = mounts.iter().any(|(other, m)| name == "cpuacct" && other == "cpu" && m == mount);
            if shared {
                continue;
            }
            let path = mount.join(BASE);
            let base = open_folder(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            controllers.push(Controller { name, base });
        }
        let devices =
            mounts.iter().find(|(n, _)| n == "devices").and_then(|(_, mount)| devices_group(mount).ok());
        Ok(Self { controllers, devices })
    }

    pub(super) fn create(
        &self,
        name: &CStr,
        limits: &CgroupLimits,
    ) -> std::result::Result<Group, (Stage, Errno)> {
        let mut proven = ControlSet::EMPTY;
        let mut tasks = Vec::with_capacity(6);
        let wanted = |c: &&Controller| limits.pausable || c.name != "freezer";
        for controller in self.controllers.iter().filter(wanted) {
            let made = self.create_one(controller, name, limits, &mut proven);
            tasks.push(made.inspect_err(|_| {
                let _ = self.remove(name);
            })?);
        }
        limits.point(Stage::Cgroup)?;
        if let Some(devices) = self.devices.as_ref().filter(|_| !limits.leave_out.has(Control::DevicesLimit))
        {
            let fd = sys::open(devices.as_raw_fd(), c"tasks", libc::O_WRONLY, 0);
            tasks.push(fd.map_err(|e| (Stage::Cgroup, e))?);
            proven.insert(Control::DevicesLimit);
        }
        let oom = if limits.oom_group && proven.has(Control::MemoryLimit) {
            Some(self.watch_oom(name).map_err(|e| (Stage::CgroupLimit, e))?)
        } else {
            None
        };
        Ok(Group { entry: Entry::Tasks(tasks), oom, proven })
    }

    /// Version 1 kills one process only; the event lets init end the others.
    fn watch_oom(&self, name: &CStr) -> Result<OwnedFd> {
        let memory = self.controllers.iter().find(|c| c.name == "memory").ok_or(Errno(libc::ENOENT))?;
        let group = Group1 { base: memory.base.as_raw_fd(), name };
        let control = group.open("memory.oom_control", libc::O_RDONLY)?;
        let event = sys::event_fd()?;
        let line = format!("{} {}", event.as_raw_fd(), control.as_raw_fd());
        let register = group.open("cgroup.event_control", libc::O_WRONLY)?;
        sys::write(register.as_raw_fd(), line.as_bytes())?;
        Ok(event)
    }

    fn create_one(
        &self,
        controller: &Controller,
        name: &CStr,
        limits: &CgroupLimits,
        proven: &mut ControlSet,
    ) -> std::result::Result<OwnedFd, (Stage, Errno)> {
        let base = controller.base.as_raw_fd();
        match sys::mkdir(base, name, 0o755) {
            Ok(()) => {}
            // Left by a launcher that was killed; its processes died with it.
            Err(Errno(libc::EEXIST)) => {
                let renewed = sys::rmdir(base, name).and_then(|()| sys::mkdir(base, name, 0o755));
                renewed.map_err(|e| (Stage::Cgroup, e))?;
            }
            Err(errno) => return Err((Stage::Cgroup, errno)),
        }
        let group = Group1 { base, name };
        apply(controller.name, &group, limits, proven).map_err(|e| (Stage::CgroupLimit, e))?;
        // Not at the first, so that there is something to take back.
        if controller.name != "memory" {
            limits.point(Stage::CgroupLimit)?;
        }
        group.open("tasks", libc::O_WRONLY).map_err(|e| (Stage::Cgroup, e))
    }

    pub(super) fn folders(&self) -> Vec<RawFd> {
        self.controllers.iter().map(|controller| controller.base.as_raw_fd()).collect()
    }

    pub(super) fn remove(&self, name: &CStr) -> Result<()> {
        let mut result = Ok(());
        for controller in &self.controllers {
            match sys::rmdir(controller.base.as_raw_fd(), name) {
                Ok(()) | Err(Errno(libc::ENOENT)) => {}
                Err(errno) => result = Err(errno),
            }
        }
        result
    }
}

fn devices_group(mount: &Path) -> Result<OwnedFd> {
    let base = open_folder(&mount.join(BASE))?;
    let mut buffer = [0; 256];
    let now = sys::read_file(base.as_raw_fd(), c"devices.list", &mut buffer)?;
    let lines = now.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    if lines.clone().count() == ALLOWED_DEVICES.len()
        && lines.clone().all(|line| ALLOWED_DEVICES.contains(&line))
    {
        return Ok(base);
    }
    sys::write_file(base.as_raw_fd(), c"devices.deny", b"a")?;
    for device in ALLOWED_DEVICES {
        sys::write_file(base.as_raw_fd(), c"devices.allow", device)?;
    }
    Ok(base)
}

/// A group of one controller. Its files are named from the base on, which saves opening its folder.
pub(super) struct Group1<'g> {
    pub(super) base: RawFd,
    pub(super) name: &'g CStr,
}

impl Group1<'_> {
    fn open(&self, file: &str, flags: i32) -> Result<OwnedFd> {
        let mut path = [0u8; 96];
        let mut rest = &mut path[..];
        let written = rest.write_all(self.name.to_bytes()).and_then(|()| write!(rest, "/{file}\0"));
        written.map_err(|_| Errno(libc::ENAMETOOLONG))?;
        let path = CStr::from_bytes_until_nul(&path).map_err(|_| Errno(libc::EINVAL))?;
        sys::open(self.base, path, flags, 0)
    }

    /// Writes a number and reads it back through the same descriptor.
    fn set_and_prove(&self, file: &str, value: u64) -> Result<()> {
        let fd = self.open(file, libc::O_RDWR)?;
        let mut text = [0u8; 24];
        let mut rest = &mut text[..];
        let _ = write!(rest, "{value}");
        let len = 24 - rest.len();
        sys::write(fd.as_raw_fd(), &text[..len])?;
        let mut seen = [0u8; 24];
        let n = sys::pread(fd.as_raw_fd(), &mut seen, 0)?;
        if seen[..n].trim_ascii_end() == &text[..len] { Ok(()) } else { Err(Errno(libc::ERANGE)) }
    }

    fn read_number(&self, file: &str) -> Result<u64> {
        let mut buffer = [0u8; 32];
        let n = sys::read(self.open(file, libc::O_RDONLY)?.as_raw_fd(), &mut buffer)?;
        let text = std::str::from_utf8(&buffer[..n]).map_err(|_| Errno(libc::EINVAL))?;
        text.trim().parse().map_err(|_| Errno(libc::ERANGE))
    }
}

fn apply(controller: &str, group: &Group1<'_>, limits: &CgroupLimits, proven: &mut ControlSet) -> Result<()> {
    match controller {
        "memory" => apply_memory(group, limits, proven),
        "pids" if !limits.leave_out.has(Control::PidsLimit) => {
            group.set_and_prove("pids.max", limits.pids.into())?;
            proven.insert(Control::PidsLimit);
            Ok(())
        }
        // The period is the kernel's default, which every new group starts with.
        "cpu" if !limits.leave_out.has(Control::CpuLimit) => {
            group.set_and_prove("cpu.cfs_quota_us", limits.cpu_quota_us())?;
            proven.insert(Control::CpuLimit);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn apply_memory(group: &Group1<'_>, limits: &CgroupLimits, proven: &mut ControlSet) -> Result<()> {
    if limits.leave_out.has(Control::MemoryLimit) {
        return Ok(());
    }
    // The kernel rounds down to whole pages.
    let bytes = limits.memory_bytes / 4096 * 4096;
    group.set_and_prove("memory.limit_in_bytes", bytes)?;
    proven.insert(Control::MemoryLimit);
    if limits.leave_out.has(Control::SwapOff) {
        return Ok(());
    }
    match group.set_and_prove("memory.memsw.limit_in_bytes", bytes) {
        // A kernel that does not count swap still has this.
        Err(Errno(libc::ENOENT)) => group.set_and_prove("memory.swappiness", 0)?,
        other => other?,
    }
    proven.insert(Control::SwapOff);
    Ok(())
}

/// Changes a limit of a group that is in use: raising goes through memory+swap first, lowering last.
pub(super) fn change(controller: &str, group: &Group1<'_>, limits: &CgroupLimits) -> Result<()> {
    if controller == "memory" {
        let bytes = limits.memory_bytes / 4096 * 4096;
        if group.read_number("memory.memsw.limit_in_bytes").is_ok_and(|now| now < bytes) {
            group.set_and_prove("memory.memsw.limit_in_bytes", bytes)?;
        }
    }
    apply(controller, group, limits, &mut ControlSet::default())
}
