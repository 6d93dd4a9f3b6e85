//! Room for sandboxes, and what workspaces on disk and writable roots are made of.

use super::identity::Identity;
use super::programs::{find_anywhere, install};
use super::{check, degraded, missing, ok};
use crate::image::host_can_change_owners;
use cofferdam_core::{ByteSize, Check, CheckState};
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_linux::sys;
use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

const GROUP: &str = "disk";

/// Locks and the layers that images are put together from; certificates are the largest part.
const RUNTIME_MIN: ByteSize = ByteSize::mib(16);

/// A workspace on disk of the size that people ask for first.
const WORKSPACES_MIN: ByteSize = ByteSize::gib(1);

pub(super) fn checks(identity: &Identity) -> Vec<Check> {
    let home = identity.home.clone().filter(|home| home.is_dir());
    let workspaces = if identity.is_root() {
        PathBuf::from("/var/lib/cofferdam/workspaces")
    } else {
        home.unwrap_or_else(|| "/tmp".into()).join(".local/state/cofferdam/workspaces")
    };
    let mut checks = vec![
        space("runtime folder", &default_runtime_folder(), RUNTIME_MIN),
        space("workspaces", &workspaces, WORKSPACES_MIN),
    ];
    if identity.is_root() {
        checks.extend([loop_devices(), ext4(), writable_root()]);
    } else {
        let found = "only for root; --disk is limited to what fits in memory";
        checks.push(check(GROUP, "workspaces on disk", CheckState::Degraded, found));
        checks.push(check(GROUP, "writable root", CheckState::Degraded, "only for root"));
    }
    checks
}

/// Space where a folder is or will be made.
fn space(name: &str, folder: &Path, least: ByteSize) -> Check {
    let Some(there) = folder.ancestors().find(|path| path.is_dir()) else {
        return missing(GROUP, name, format!("{} is not there", folder.display()), "make it");
    };
    let Some(free) = free_bytes(there) else {
        let fix = format!("make {} readable", there.display());
        return missing(GROUP, name, format!("{} cannot be looked at", there.display()), fix);
    };
    let found = format!("{} free for {}", about(free), folder.display());
    if free < least.0 {
        let fix = format!("free {} on the filesystem of {}", about(least.0), there.display());
        return degraded(GROUP, name, found, fix);
    }
    ok(GROUP, name, found)
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let path = CString::new(folder.as_os_str().as_encoded_bytes()).ok()?;
    let fd = sys::open(sys::CWD, &path, libc::O_PATH | libc::O_DIRECTORY, 0).ok()?;
    let stat = sys::fstatfs(fd.as_raw_fd()).ok()?;
    Some(stat.blocks_available.saturating_mul(u64::try_from(stat.block_bytes).ok()?))
}

/// Bytes, rounded down to a tenth of the unit that they have at least one of.
fn about(bytes: u64) -> String {
    for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20)] {
        if bytes >> shift > 0 {
            return format!("{}.{} {unit}", bytes >> shift, (bytes >> (shift - 10)) % 1024 * 10 / 1024);
        }
    }
    format!("{} KiB", bytes >> 10)
}

fn loop_devices() -> Check {
    if Path::new("/dev/loop-control").exists() {
        return ok(GROUP, "loop devices", "/dev/loop-control");
    }
    let found = "no /dev/loop-control: no workspaces on disk";
    degraded(GROUP, "loop devices", found, "sudo modprobe loop; in a container: docker run --privileged")
}

fn ext4() -> Check {
    match find_anywhere("mkfs.ext4") {
        Some(path) => ok(GROUP, "mkfs.ext4", path.display().to_string()),
        None => degraded(GROUP, "mkfs.ext4", "not found: no workspaces on disk", install("e2fsprogs")),
    }
}

fn writable_root() -> Check {
    if host_can_change_owners(&default_runtime_folder()) {
        return ok(GROUP, "writable root", "id-mapped mounts");
    }
    let found = "no id-mapped mounts of /usr: no --writable-root";
    let fix = "use Linux 6.3 or newer, with /usr on ext4, xfs or btrfs; or a --rootfs on one";
    degraded(GROUP, "writable root", found, fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_down() {
        assert_eq!(about(0), "0 KiB");
        assert_eq!(about((3 << 20) + (1 << 19)), "3.5 MiB");
        assert_eq!(about((2 << 30) - 1), "1.9 GiB");
        assert_eq!(about(u64::MAX), "16777215.9 TiB");
    }

    #[test]
    fn space_is_that_of_the_nearest_folder() {
        let here = space("x", Path::new("/no/such/folder"), ByteSize(1));
        assert_eq!(here.state, CheckState::Ok);
        assert!(here.found.ends_with(" free for /no/such/folder"), "{}", here.found);
        let full = space("x", Path::new("/"), ByteSize(u64::MAX));
        assert!(full.state == CheckState::Degraded && full.fix.is_some());
    }
}
