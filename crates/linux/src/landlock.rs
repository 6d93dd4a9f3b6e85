//! Landlock: a second, independent wall around files.

use crate::sys::{self, Errno, Result};
use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

#[repr(C)]
struct RulesetAttr {
    access_fs: u64,
    access_net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathRule {
    access: u64,
    parent: i32,
}

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
/// Making and removing of plain files, folders, links, sockets and FIFOs; not of devices.
const CHANGE_TREE: u64 = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

/// The ABI version that the kernel speaks; 0 where it has no Landlock or it is switched off.
pub fn abi() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel reads no attributes and answers its version.
    let ret = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION) };
    u32::try_from(ret).unwrap_or(0)
}

fn handled(abi: u32) -> u64 {
    let first = (1 << 13) - 1;
    let by_abi = [(2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)];
    by_abi.iter().filter(|(since, _)| abi >= *since).fold(first, |all, (_, right)| all | right)
}

fn allow(ruleset: RawFd, path: &CStr, access: u64) -> Result<()> {
    const PATH_BENEATH: u32 = 1;
    let parent = sys::open(sys::CWD, path, libc::O_PATH, 0)?;
    let rule = PathRule { access, parent: parent.as_raw_fd() };
    // SAFETY: rule lives across the call and has the layout of a path rule.
    let ret = unsafe { libc::syscall(libc::SYS_landlock_add_rule, ruleset, PATH_BENEATH, &rule, 0) };
    if ret < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// Makes the rules: the whole root can be read and executed, the writable places can be written, and devices can
/// be used but not made. Signals and abstract sockets are left alone: each process of a sandbox is in a domain of
/// its own and must reach the others, and namespaces keep it from everything else.
pub fn ruleset(abi: u32, writable: &[&CStr]) -> Result<OwnedFd> {
    let all = handled(abi);
    let attr = RulesetAttr { access_fs: all, access_net: 0, scoped: 0 };
    let size = match abi {
        0..=3 => 8,
        4..=5 => 16,
        _ => 24,
    };
    // SAFETY: attr lives across the call and is at least as large as the size that this ABI knows.
    let fd = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &attr, size, 0) };
    if fd < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the kernel has just made it for us.
    let ruleset = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
    let read = EXECUTE | READ_FILE | READ_DIR;
    let raw = ruleset.as_raw_fd();
    allow(raw, c"/", read)?;
    for path in writable {
        allow(raw, path, all & (read | WRITE_FILE | CHANGE_TREE | REFER | TRUNCATE))?;
    }
    allow(raw, c"/dev", all & (read | WRITE_FILE | TRUNCATE | IOCTL_DEV))?;
    // /proc/self has files that a process may write about itself; what is not its own is not writable anyway.
    allow(raw, c"/proc", all & (read | WRITE_FILE))?;
    Ok(ruleset)
}

pub fn restrict_self(ruleset: RawFd) -> Result<()> {
    // SAFETY: no memory is involved.
    let ret = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) };
    if ret < 0 { Err(Errno::last()) } else { Ok(()) }
}
