//! OCI bundles on the shared root, one for each workload. Owns what "a default container" means here: the
//! namespaces and mounts that `runc spec` would give, read-only root, no capabilities, no limits.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::failure::{Doing, Result};
use crate::workload::Workload;

/// Writes the bundle below `parent` and returns its folder. No `cgroupsPath`: then each container's id names
/// its cgroup, and runs in flight at once do not share one.
pub(super) fn write(parent: &Path, rootfs: &Path, workload: Workload) -> Result<PathBuf> {
    let bundle = parent.join(workload.slug());
    fs::create_dir_all(&bundle).doing(format_args!("creating {}", bundle.display()))?;
    let config = bundle.join("config.json");
    fs::write(&config, spec(rootfs, workload).to_string())
        .doing(format_args!("writing {}", config.display()))?;
    Ok(bundle)
}

fn spec(rootfs: &Path, workload: Workload) -> Value {
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": { "uid": 0, "gid": 0 },
            "args": workload.argv(),
            "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"],
            "cwd": "/",
            "capabilities": {},
            "noNewPrivileges": true,
        },
        "root": { "path": rootfs, "readonly": true },
        "hostname": "bench",
        "mounts": mounts(),
        "linux": {
            "namespaces": (["pid", "network", "ipc", "uts", "mount"].map(|kind| json!({ "type": kind }))),
            "resources": { "devices": [{ "allow": false, "access": "rwm" }] },
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/sysrq-trigger", "/proc/timer_list"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"],
        },
    })
}

fn mounts() -> Value {
    json!([
        { "destination": "/proc", "type": "proc", "source": "proc" },
        { "destination": "/dev", "type": "tmpfs", "source": "tmpfs",
          "options": ["nosuid", "strictatime", "mode=755", "size=65536k"] },
        { "destination": "/dev/pts", "type": "devpts", "source": "devpts",
          "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"] },
        { "destination": "/dev/shm", "type": "tmpfs", "source": "shm",
          "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"] },
        { "destination": "/tmp", "type": "tmpfs", "source": "tmpfs",
          "options": ["nosuid", "nodev", "mode=1777"] },
    ])
}
