//! Mounts, by the old interface and the new one.

use super::{CWD, Result, check, opt_ptr, owned, ptr};
use libc::{c_int, c_void};
use std::ffi::CStr;
use std::os::fd::{OwnedFd, RawFd};

pub fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: u64,
    data: Option<&CStr>,
) -> Result<()> {
    let (source, kind, data) = (opt_ptr(source), opt_ptr(kind), opt_ptr(data));
    // SAFETY: every string is NUL-terminated and lives across the call, or is null where the kernel allows it.
    check(unsafe { libc::syscall(libc::SYS_mount, source, ptr(target), kind, flags, data) }).map(drop)
}

pub fn umount(target: &CStr, flags: c_int) -> Result<()> {
    // SAFETY: the path is NUL-terminated and lives across the call.
    check(unsafe { libc::syscall(libc::SYS_umount2, ptr(target), flags) }).map(drop)
}

pub fn pivot_root(new: &CStr, old: &CStr) -> Result<()> {
    // SAFETY: both paths are NUL-terminated and live across the call.
    check(unsafe { libc::syscall(libc::SYS_pivot_root, ptr(new), ptr(old)) }).map(drop)
}

/// A detached copy of the mount at a path: only that mount, without what is mounted below it.
pub fn clone_mount(dir: RawFd, path: &CStr) -> Result<OwnedFd> {
    const OPEN_TREE_CLONE: u32 = 1;
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC as u32 | libc::AT_EMPTY_PATH as u32;
    // SAFETY: the path is NUL-terminated and lives across the call.
    owned(unsafe { libc::syscall(libc::SYS_open_tree, dir, ptr(path), flags) })
}

/// Attaches a detached mount.
pub fn attach_mount(mount: RawFd, target: &CStr) -> Result<()> {
    const MOVE_MOUNT_F_EMPTY_PATH: u32 = 4;
    let flags = MOVE_MOUNT_F_EMPTY_PATH;
    // SAFETY: both paths are NUL-terminated and live across the call.
    check(unsafe { libc::syscall(libc::SYS_move_mount, mount, ptr(c""), CWD, ptr(target), flags) }).map(drop)
}

/// Begins to mount a filesystem that is not attached anywhere yet.
pub fn fsopen(kind: &CStr) -> Result<OwnedFd> {
    const FSOPEN_CLOEXEC: u32 = 1;
    // SAFETY: the name is NUL-terminated and lives across the call.
    owned(unsafe { libc::syscall(libc::SYS_fsopen, ptr(kind), FSOPEN_CLOEXEC) })
}

/// Sets an option of it, with a value or as a flag.
pub fn fsconfig_set(filesystem: RawFd, key: &CStr, value: Option<&CStr>) -> Result<()> {
    const FSCONFIG_SET_FLAG: u32 = 0;
    const FSCONFIG_SET_STRING: u32 = 1;
    let command = if value.is_some() { FSCONFIG_SET_STRING } else { FSCONFIG_SET_FLAG };
    // SAFETY: both strings are NUL-terminated and live across the call; a flag has no value.
    check(unsafe { libc::syscall(libc::SYS_fsconfig, filesystem, command, ptr(key), opt_ptr(value), 0) })
        .map(drop)
}

/// Reads the filesystem, with the options that were set.
pub fn fsconfig_create(filesystem: RawFd) -> Result<()> {
    const FSCONFIG_CMD_CREATE: u32 = 6;
    let none = std::ptr::null::<c_void>();
    // SAFETY: the command takes neither key nor value.
    check(unsafe { libc::syscall(libc::SYS_fsconfig, filesystem, FSCONFIG_CMD_CREATE, none, none, 0) })
        .map(drop)
}

/// A detached mount of it, which is gone with its last descriptor unless it was attached.
pub fn fsmount(filesystem: RawFd, attributes: u64) -> Result<OwnedFd> {
    const FSMOUNT_CLOEXEC: u32 = 1;
    // SAFETY: no memory is involved.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, filesystem, FSMOUNT_CLOEXEC, attributes) })
}

/// `mount_attr` of mount_setattr(2).
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns_fd: u64,
}

pub const MOUNT_ATTR_RDONLY: u64 = 0x1;
pub const MOUNT_ATTR_NOSUID: u64 = 0x2;
pub const MOUNT_ATTR_NODEV: u64 = 0x4;
pub const MOUNT_ATTR_NOEXEC: u64 = 0x8;
pub const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;

/// Sets attributes of one mount; `userns` is used with `MOUNT_ATTR_IDMAP` only.
pub fn mount_setattr(mount: RawFd, set: u64, userns: RawFd) -> Result<()> {
    let attr = MountAttr { set, clear: 0, propagation: 0, userns_fd: userns as u64 };
    let size = size_of::<MountAttr>();
    // SAFETY: attr lives across the call and the size is its own.
    check(unsafe {
        libc::syscall(libc::SYS_mount_setattr, mount, ptr(c""), libc::AT_EMPTY_PATH, &attr, size)
    })
    .map(drop)
}
