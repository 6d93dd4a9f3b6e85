//! Version 1, which only root can use.

use super::{GROUP, Scratch, refused_fix};
use crate::doctor::{degraded, missing, ok, required};
use cofferdam_core::Check;
use std::io;
use std::path::{Path, PathBuf};

/// A controller, a file of it, and the limit that is set to see whether it can be.
struct Controller {
    name: &'static str,
    file: &'static str,
    limit: Option<&'static str>,
}

const CONTROLLERS: [Controller; 6] = [
    Controller { name: "memory", file: "memory.limit_in_bytes", limit: Some("67108864") },
    Controller { name: "pids", file: "pids.max", limit: Some("100") },
    Controller { name: "cpu", file: "cpu.cfs_quota_us", limit: Some("50000") },
    Controller { name: "cpuacct", file: "cpuacct.usage", limit: None },
    Controller { name: "freezer", file: "freezer.state", limit: None },
    Controller { name: "devices", file: "devices.list", limit: None },
];

pub(super) fn checks(mounts: &[(String, PathBuf)]) -> Vec<Check> {
    let mut checks = Vec::new();
    for controller in CONTROLLERS {
        let mount = mounts.iter().find(|(name, _)| name == controller.name).map(|(_, path)| path.as_path());
        let (row, scratch) = check(&controller, mount);
        checks.push(if controller.limit.is_some() { required(row) } else { row });
        match (controller.name, scratch) {
            ("memory", Some(scratch)) => checks.extend([swap(&scratch), memory_peak(&scratch)]),
            ("pids", Some(scratch)) => checks.push(pids_peak(&scratch)),
            _ => {}
        }
    }
    checks
}

fn check(controller: &Controller, mount: Option<&Path>) -> (Check, Option<Scratch>) {
    let Controller { name, file, limit } = controller;
    let Some(mount) = mount else {
        let folder = format!("/sys/fs/cgroup/{name}");
        let fix = format!("sudo mkdir -p {folder} && sudo mount -t cgroup -o {name} cgroup {folder}");
        return (missing(GROUP, name, "not mounted", fix), None);
    };
    let used = Scratch::make(mount).and_then(|scratch| {
        match limit {
            Some(value) => scratch.takes(file, value)?,
            None if scratch.has(file) => {}
            None => return Err(io::Error::other(format!("there is no {file}"))),
        }
        Ok(scratch)
    });
    match used {
        Ok(scratch) => {
            let done = if limit.is_some() { ", a limit was set" } else { "" };
            (ok(GROUP, name, format!("{}{done}", mount.display())), Some(scratch))
        }
        Err(error) => {
            let fix = refused_fix(&error, mount);
            (missing(GROUP, name, format!("{}: {error}", mount.display()), fix), None)
        }
    }
}

fn swap(memory: &Scratch) -> Check {
    let row = if memory.has("memory.memsw.limit_in_bytes") {
        ok(GROUP, "swap limit", "memory.memsw.limit_in_bytes")
    } else if memory.takes("memory.swappiness", "0").is_ok() {
        ok(GROUP, "swap limit", "memory.swappiness")
    } else {
        missing(GROUP, "swap limit", "none", "put swapaccount=1 on the kernel's command line")
    };
    required(row)
}

fn memory_peak(memory: &Scratch) -> Check {
    let file = "memory.max_usage_in_bytes";
    if memory.has(file) {
        return ok(GROUP, "memory peak", file);
    }
    degraded(GROUP, "memory peak", "not measured", "boot cgroup version 2 with Linux 5.19 or later")
}

fn pids_peak(pids: &Scratch) -> Check {
    if pids.has("pids.peak") {
        return ok(GROUP, "process peak", "pids.peak");
    }
    degraded(GROUP, "process peak", "not measured", "boot Linux 6.1 or later")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::CheckState;

    #[test]
    fn a_controller_that_is_not_mounted_has_its_mount_line() {
        let (row, _) = check(&CONTROLLERS[4], None);
        assert_eq!(row.state, CheckState::Missing);
        assert_eq!(
            row.fix.as_deref(),
            Some(
                "sudo mkdir -p /sys/fs/cgroup/freezer && sudo mount -t cgroup -o freezer cgroup /sys/fs/cgroup/freezer"
            )
        );
    }

    #[test]
    fn a_place_where_groups_cannot_be_made_is_missing() {
        let (row, scratch) = check(&CONTROLLERS[0], Some(Path::new("/no-such-mount")));
        assert!(row.state == CheckState::Missing && row.fix.is_some() && scratch.is_none());
    }
}
