//! Finds out which cgroups this machine has, and where this process may make its own.

use super::BASE;
use crate::sys;
use std::ffi::CString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What the machine offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// Version 1: a mount per controller.
    V1 {
        mounts: Vec<(String, PathBuf)>,
    },
    /// Version 2: the folder below which groups are made.
    V2 {
        base: PathBuf,
    },
    None {
        reason: String,
    },
}

/// The controllers without which there are no limits.
pub(crate) const NEEDED: [&str; 3] = ["memory", "pids", "cpu"];

/// Version 1 controllers that are used where they exist.
const USED_V1: [&str; 6] = ["memory", "pids", "cpu", "cpuacct", "devices", "freezer"];

/// Looks at this process's view of the machine: the usual places first, as the list of mounts takes longer.
pub fn detect() -> Layout {
    usual_place().unwrap_or_else(from_mounts)
}

/// Whether this looks like version 1 in its usual place: a first look, at the cost of one call.
pub fn is_v1() -> bool {
    sys::geteuid() == 0 && sys::stat_at(sys::CWD, c"/sys/fs/cgroup/memory/tasks", 0).is_ok()
}

/// Version 1 below /sys/fs/cgroup, as systemd and most others mount it.
fn usual_place() -> Option<Layout> {
    const CGROUP_V1: i64 = 0x27_e0eb;
    if sys::geteuid() != 0 {
        return None;
    }
    let mut mounts = Vec::with_capacity(USED_V1.len());
    for controller in USED_V1 {
        let path = format!("/sys/fs/cgroup/{controller}");
        let found = sys::statfs(&CString::new(path.as_str()).ok()?);
        if found.is_ok_and(|stat| stat.kind == CGROUP_V1) {
            mounts.push((controller.to_owned(), PathBuf::from(path)));
        }
    }
    let has_all = NEEDED.iter().all(|needed| mounts.iter().any(|(name, _)| name == needed));
    has_all.then_some(Layout::V1 { mounts })
}

fn from_mounts() -> Layout {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    detect_from(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"), sys::geteuid() == 0)
}

/// The same, from the text of `mountinfo` and `cgroup`.
pub fn detect_from(mountinfo: &str, own: &str, is_root: bool) -> Layout {
    let mounts: Vec<_> = mountinfo.lines().filter_map(parse_mount).collect();
    let mut v1 = Vec::new();
    for controller in USED_V1 {
        let found =
            mounts.iter().find(|m| m.kind == "cgroup" && m.options.split(',').any(|o| o == controller));
        if let Some(mount) = found {
            v1.push((controller.to_owned(), PathBuf::from(mount.target)));
        }
    }
    if NEEDED.iter().all(|needed| v1.iter().any(|(name, _)| name == needed)) {
        return if is_root {
            Layout::V1 { mounts: v1 }
        } else {
            Layout::None { reason: "cgroup version 1 cannot be used without root".to_owned() }
        };
    }
    let Some(unified) = mounts.iter().find(|m| m.kind == "cgroup2") else {
        return Layout::None { reason: "no cgroup filesystem is mounted".to_owned() };
    };
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("");
    v2_base(Path::new(unified.target), own, is_root)
}

/// As root the groups are made at the top; otherwise in the own group, if it was delegated to this user.
fn v2_base(top: &Path, own: &str, is_root: bool) -> Layout {
    if is_root {
        return Layout::V2 { base: top.join(BASE) };
    }
    let own = top.join(own);
    // A group that was moved into a leaf of itself by an earlier run of ours still counts.
    let home = if own.ends_with("cofferdam-host") { own.parent().unwrap_or(top).to_owned() } else { own };
    let writable = |file: &str| {
        let metadata = fs::metadata(home.join(file));
        metadata.is_ok_and(|m| {
            use std::os::unix::fs::MetadataExt;
            m.uid() == sys::geteuid() && m.permissions().mode() & 0o200 != 0
        })
    };
    if !writable("cgroup.procs") || !writable("cgroup.subtree_control") {
        let reason = "this user's cgroup is not delegated to it".to_owned();
        return Layout::None { reason };
    }
    let controllers = fs::read_to_string(home.join("cgroup.controllers")).unwrap_or_default();
    let has = |needed: &&str| controllers.split_whitespace().any(|c| c == *needed);
    match NEEDED.iter().find(|needed| !has(needed)) {
        Some(missing) => {
            Layout::None { reason: format!("the {missing} controller is not delegated to this user") }
        }
        None => Layout::V2 { base: home },
    }
}

struct Mount<'l> {
    target: &'l str,
    kind: &'l str,
    options: &'l str,
}

/// One line of mountinfo: fields, a variable number of optional ones, ` - `, type, source, options.
fn parse_mount(line: &str) -> Option<Mount<'_>> {
    let (left, right) = line.split_once(" - ")?;
    let target = left.split(' ').nth(4)?;
    let mut right = right.split(' ');
    let kind = right.next()?;
    let options = right.nth(1)?;
    Some(Mount { target, kind, options })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
30 20 0:25 / /sys/fs/cgroup ro - tmpfs tmpfs ro
31 30 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 30 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
33 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
34 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

    #[test]
    fn the_hybrid_layout_is_version_1() {
        let Layout::V1 { mounts } = detect_from(HYBRID, "0::/\n", true) else { panic!("not v1") };
        let at = |name| mounts.iter().find(|(n, _)| n == name).map(|(_, p)| p.to_str().unwrap());
        assert_eq!(at("memory"), Some("/sys/fs/cgroup/memory"));
        assert_eq!(at("cpuacct"), Some("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(at("freezer"), None);
    }

    #[test]
    fn version_1_without_root_is_none_with_a_reason() {
        assert!(matches!(detect_from(HYBRID, "", false), Layout::None { reason } if reason.contains("root")));
    }

    #[test]
    fn version_2_as_root_is_made_at_the_top() {
        let info = "40 20 0:30 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let base = PathBuf::from("/sys/fs/cgroup/cofferdam");
        assert_eq!(detect_from(info, "0::/user.slice\n", true), Layout::V2 { base });
    }

    #[test]
    fn nothing_mounted_is_none() {
        assert!(matches!(detect_from("", "", true), Layout::None { .. }));
    }
}
