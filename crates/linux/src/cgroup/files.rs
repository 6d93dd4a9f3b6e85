//! A sandbox's group as the host sees it: what was used, and changes while it lives.

use super::{BASE, CgroupLimits, Layout, v1, v2};
use crate::ControlSet;
use crate::sys;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What does not stand still by then will not. On a busy machine a process must first get its turn to be stopped.
const STANDSTILL: Duration = Duration::from_secs(10);

/// What a group counted. Unknown is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu_time_us: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub memory_peak_bytes: Option<u64>,
    pub pids_peak: Option<u64>,
    pub io_bytes: Option<u64>,
    pub oom_kills: Option<u64>,
    pub memory_limit_hits: Option<u64>,
    pub pids_limit_hits: Option<u64>,
    pub cpu_throttled: Option<u64>,
}

/// The beginning of a small file, with no more calls than it takes.
fn text(path: &Path) -> Option<String> {
    let path = CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
    let mut buffer = [0; 1024];
    let text = sys::read_file(sys::CWD, &path, &mut buffer).ok()?;
    std::str::from_utf8(text).ok().map(str::to_owned)
}

fn number(path: PathBuf) -> Option<u64> {
    text(&path)?.trim().parse().ok()
}

/// One value of a file of `key value` lines.
fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

impl Layout {
    fn v1_folder(&self, controller: &str, group: &str) -> Option<PathBuf> {
        let Self::V1 { mounts } = self else { return None };
        let (_, mount) = mounts.iter().find(|(name, _)| name == controller)?;
        Some(mount.join(BASE).join(group))
    }

    /// The names of the groups that exist, whoever made them.
    pub fn groups(&self) -> Vec<String> {
        let folder = match self {
            Self::V1 { .. } => self.v1_folder("memory", ""),
            Self::V2 { base } => Some(base.clone()),
            Self::None { .. } => None,
        };
        let entries = folder.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        let is_group = |name: &String| name.strip_prefix('s').is_some_and(|rest| rest.parse::<u32>().is_ok());
        entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(is_group).collect()
    }

    /// Reads what a group has used so far.
    pub fn usage(&self, group: &str) -> Usage {
        match self {
            Self::V1 { .. } => self.usage_v1(group),
            Self::V2 { base } => usage_v2(&base.join(group)),
            Self::None { .. } => Usage::default(),
        }
    }

    fn usage_v1(&self, group: &str) -> Usage {
        let file = |controller: &str, file: &str| Some(self.v1_folder(controller, group)?.join(file));
        let text = |controller, name| file(controller, name).and_then(|p| text(&p));
        let count = |controller, name| file(controller, name).and_then(number);
        Usage {
            cpu_time_us: count("cpuacct", "cpuacct.usage").map(|ns| ns / 1000),
            memory_bytes: count("memory", "memory.usage_in_bytes"),
            memory_peak_bytes: count("memory", "memory.max_usage_in_bytes"),
            pids_peak: count("pids", "pids.peak"),
            io_bytes: None,
            oom_kills: text("memory", "memory.oom_control").and_then(|t| keyed(&t, "oom_kill")),
            memory_limit_hits: hits_v1(
                count("memory", "memory.failcnt"),
                count("memory", "memory.max_usage_in_bytes"),
                count("memory", "memory.limit_in_bytes"),
            ),
            pids_limit_hits: text("pids", "pids.events").and_then(|t| keyed(&t, "max")),
            cpu_throttled: text("cpu", "cpu.stat").and_then(|t| keyed(&t, "nr_throttled")),
        }
    }

    /// Replaces the limits of a group that is in use.
    pub fn change_limits(&self, group: &str, limits: &CgroupLimits) -> io::Result<()> {
        match self {
            Self::V1 { .. } => {
                let name = CString::new(group)?;
                for controller in ["memory", "pids", "cpu"] {
                    if let Some(base) = self.v1_folder(controller, "") {
                        let base = open_path(&base)?;
                        let group = v1::Group1 { base: base.as_raw_fd(), name: &name };
                        v1::change(controller, &group, limits)?;
                    }
                }
                Ok(())
            }
            Self::V2 { base } => {
                let folder = open_path(&base.join(group))?;
                Ok(v2::apply(&folder, limits, &mut ControlSet::default())?)
            }
            Self::None { reason } => Err(io::Error::other(reason.clone())),
        }
    }

    /// Thaws a group of version 1 before its end: frozen tasks there do not die.
    pub fn thaw_for_kill(&self, group: &str) -> io::Result<()> {
        match self.v1_folder("freezer", group) {
            Some(folder) => fs::write(folder.join("freezer.state"), "THAWED"),
            None => Ok(()),
        }
    }

    /// Stops or continues every process of a group, and waits until that is so.
    pub fn freeze(&self, group: &str, frozen: bool) -> io::Result<()> {
        let (file, value, state_file, done) = match self {
            Self::V1 { .. } => {
                let folder = self.v1_folder("freezer", group);
                let folder = folder.ok_or_else(|| io::Error::other("no freezer controller is mounted"))?;
                let file = folder.join("freezer.state");
                let value = if frozen { "FROZEN" } else { "THAWED" };
                (file.clone(), value, file, value.to_owned())
            }
            Self::V2 { base } => {
                let folder = base.join(group);
                let value = if frozen { "1" } else { "0" };
                (folder.join("cgroup.freeze"), value, folder.join("cgroup.events"), format!("frozen {value}"))
            }
            Self::None { reason } => return Err(io::Error::other(reason.clone())),
        };
        fs::write(&file, value)?;
        let (began, mut looks) = (Instant::now(), 0u32);
        while began.elapsed() < STANDSTILL {
            if fs::read_to_string(&state_file)?.contains(&done) {
                return Ok(());
            }
            sleep(Duration::from_millis(1));
            looks += 1;
            // Version 1 may overlook a process that has just begun, and then waits for it for ever. It looks again when it
            // is told again, and where programs begin all the time, better after they could go on for a moment.
            if frozen && matches!(self, Self::V1 { .. }) && looks.is_multiple_of(10) {
                if looks.is_multiple_of(100) {
                    fs::write(&file, "THAWED")?;
                    sleep(Duration::from_millis(5));
                }
                fs::write(&file, value)?;
            }
        }
        let seconds = STANDSTILL.as_secs();
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("the processes did not stop in {seconds} s")))
    }
}

fn open_path(path: &Path) -> io::Result<OwnedFd> {
    let text = CString::new(path.as_os_str().as_encoded_bytes())?;
    Ok(sys::open(sys::CWD, &text, libc::O_RDONLY | libc::O_DIRECTORY, 0)?)
}

/// How often memory was refused. Memory and swap together have the same limit here, and are asked first; on newer
/// kernels nobody counts their refusals. A group that was full up to its limit was refused at least once.
fn hits_v1(counted: Option<u64>, peak: Option<u64>, limit: Option<u64>) -> Option<u64> {
    let was_full = peak.zip(limit).is_some_and(|(peak, limit)| peak >= limit);
    counted.map(|hits| hits.max(was_full.into()))
}

fn usage_v2(folder: &Path) -> Usage {
    let text = |name: &str| text(&folder.join(name)).unwrap_or_default();
    let (cpu, events) = (text("cpu.stat"), text("memory.events"));
    Usage {
        cpu_time_us: keyed(&cpu, "usage_usec"),
        memory_bytes: number(folder.join("memory.current")),
        memory_peak_bytes: number(folder.join("memory.peak")),
        pids_peak: number(folder.join("pids.peak")),
        io_bytes: None,
        oom_kills: keyed(&events, "oom_kill"),
        memory_limit_hits: keyed(&events, "max"),
        pids_limit_hits: keyed(&text("pids.events"), "max"),
        cpu_throttled: keyed(&cpu, "nr_throttled"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_was_full_ran_into_its_limit() {
        assert_eq!(hits_v1(Some(0), Some(63), Some(64)), Some(0));
        assert_eq!(hits_v1(Some(0), Some(64), Some(64)), Some(1));
        assert_eq!(hits_v1(Some(9), Some(64), Some(64)), Some(9));
        assert_eq!(hits_v1(Some(3), None, None), Some(3));
        assert_eq!(hits_v1(None, Some(64), Some(64)), None);
    }

    #[test]
    fn keyed_values_are_found_by_their_whole_name() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(keyed(text, "oom_kill"), Some(3));
        assert_eq!(keyed(text, "oom"), None);
    }
}
