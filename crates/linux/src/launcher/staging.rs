//! The launcher's own mount namespace: what sandboxes are built from.
//!
//! Every sandbox starts as a copy of this namespace. The host's mounts are let go of before there is a sandbox, so
//! that the copy costs the same on a machine with hundreds of mounts, with one exception. Letting go takes as long
//! as every processor needs to notice, which for one sandbox alone is longer than copying: a launcher that makes
//! only one keeps the host's mounts in `/host` until it has nothing else to do. That sandbox leaves them with the
//! rest of this namespace, before anything runs in it.

use super::rootless::Ids;
use crate::init::NamespaceIds;
use crate::sys::{self, Errno, Result};
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd};

/// Device nodes that every program may expect, by major and minor number.
const DEVICES: [(&CStr, u32, u32); 6] = [
    (c"nodes/null", 1, 3),
    (c"nodes/zero", 1, 5),
    (c"nodes/full", 1, 7),
    (c"nodes/random", 1, 8),
    (c"nodes/urandom", 1, 9),
    (c"nodes/tty", 5, 0),
];

const LINKS: [(&CStr, &CStr); 5] = [
    (c"/proc/self/fd", c"nodes/fd"),
    (c"/proc/self/fd/0", c"nodes/stdin"),
    (c"/proc/self/fd/1", c"nodes/stdout"),
    (c"/proc/self/fd/2", c"nodes/stderr"),
    (c"pts/ptmx", c"nodes/ptmx"),
];

/// Where the host's mounts are until they are let go of. Without root they stay: layers are opened through them.
const HOST: &CStr = c"/host";

/// Leaves the host's root, though not its mounts: see `leave_host`.
pub(super) fn enter(ids: Ids) -> Result<()> {
    let is_root = ids == Ids::Host;
    let host_dev = if cfg!(feature = "leave-out") { sys::clone_mount(sys::CWD, c"/dev").ok() } else { None };
    // What is made here has the modes that it is given.
    sys::umask(0);
    sys::unshare(libc::CLONE_NEWNS)?;
    sys::mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;
    let options = Some(c"size=4m,mode=0755");
    sys::mount(Some(c"stage"), c"/tmp", Some(c"tmpfs"), libc::MS_NOSUID, options)?;
    sys::chdir(c"/tmp")?;
    for folder in [c"new", c"files", c"nodes", c"proc"] {
        sys::mkdir(sys::CWD, folder, 0o755)?;
    }
    sys::mkdir(sys::CWD, c"host", 0o700)?;
    make_dev(is_root)?;
    if cfg!(feature = "leave-out") {
        sys::mkdir(sys::CWD, c"host-dev", 0o755)?;
        match host_dev {
            Some(dev) => sys::attach_mount(dev.as_raw_fd(), c"host-dev")?,
            // Without root only the whole tree can be had, and only in this namespace.
            None => sys::mount(Some(c"/dev"), c"host-dev", None, libc::MS_BIND | libc::MS_REC, None)?,
        }
    }
    if is_root {
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        sys::mount(Some(c"proc"), c"proc", Some(c"proc"), flags, None)?;
    } else {
        // The pid namespace is not ours, so neither is a new /proc.
        sys::mount(Some(c"/proc"), c"proc", None, libc::MS_BIND | libc::MS_REC, None)?;
    }
    sys::pivot_root(c".", c"host")?;
    sys::chdir(c"/")
}

/// Lets go of the host's mounts, so that they are not in use because of this process.
pub(super) fn leave_host() -> Result<()> {
    sys::umount(HOST, libc::MNT_DETACH)
}

/// A detached copy of a folder of the host's, where the host could not make one.
pub(super) fn open_layer(path: &str) -> Result<OwnedFd> {
    let path = CString::new(format!("/host{path}")).map_err(|_| Errno(libc::EINVAL))?;
    sys::clone_mount(sys::CWD, &path)
}

/// The devices that every program may expect, in a folder that is a read-only mount of its own: every bind of it
/// inherits that.
fn make_dev(is_root: bool) -> Result<()> {
    for (path, major, minor) in DEVICES {
        let (kind, device) =
            if is_root { (libc::S_IFCHR, libc::makedev(major, minor)) } else { (libc::S_IFREG, 0) };
        sys::mknod(path, kind | 0o666, device)?;
    }
    for (target, path) in LINKS {
        sys::symlink(target, path)?;
    }
    for folder in [c"nodes/pts", c"nodes/shm"] {
        sys::mkdir(sys::CWD, folder, 0o755)?;
    }
    sys::mount(Some(c"nodes"), c"nodes", None, libc::MS_BIND, None)?;
    let flags = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NOEXEC;
    sys::mount(None, c"nodes", None, flags, None)?;
    if is_root {
        return Ok(());
    }
    // Without the right to make a device, the host's own is put in each place, if it is what it should be.
    for (path, major, minor) in DEVICES {
        let name = path.to_bytes().strip_prefix(b"nodes").unwrap_or_default();
        let host = CString::new([b"/dev", name].concat()).map_err(|_| Errno(libc::EINVAL))?;
        if sys::stat_at(sys::CWD, &host, 0)?.st_rdev != libc::makedev(major, minor) {
            return Err(Errno(libc::ENODEV));
        }
        sys::mount(Some(&host), path, None, libc::MS_BIND, None)?;
        // A mount of its own has the host's flags, not the folder's. The device itself must stay usable.
        let mount = sys::open(sys::CWD, path, libc::O_PATH, 0)?;
        sys::mount_setattr(mount.as_raw_fd(), sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NOEXEC, -1)?;
    }
    Ok(())
}

/// Attaches an image's layers below `/iN`.
pub(super) fn add_image(image: u32, layers: &[(String, OwnedFd)]) -> Result<()> {
    let c = |text: String| CString::new(text).map_err(|_| Errno(libc::EINVAL));
    sys::mkdir(sys::CWD, &c(format!("/i{image}"))?, 0o755)?;
    sys::mkdir(sys::CWD, &c(format!("/i{image}/empty"))?, 0o755)?;
    for (name, mount) in layers {
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Err(Errno(libc::EINVAL));
        }
        let target = c(format!("/i{image}/{name}"))?;
        sys::mkdir(sys::CWD, &target, 0o755)?;
        let set = sys::MOUNT_ATTR_RDONLY | sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NODEV;
        sys::mount_setattr(mount.as_raw_fd(), set, -1)?;
        sys::attach_mount(mount.as_raw_fd(), &target)?;
    }
    Ok(())
}

/// The namespaces of this process.
pub(super) fn own_namespaces() -> NamespaceIds {
    let id = |path: &CStr| sys::stat_at(sys::CWD, path, 0).map_or(0, |stat| stat.st_ino);
    NamespaceIds {
        user: id(c"/proc/self/ns/user"),
        pid: id(c"/proc/self/ns/pid"),
        mount: id(c"/proc/self/ns/mnt"),
        net: id(c"/proc/self/ns/net"),
        ipc: id(c"/proc/self/ns/ipc"),
        uts: id(c"/proc/self/ns/uts"),
        cgroup: id(c"/proc/self/ns/cgroup"),
    }
}
