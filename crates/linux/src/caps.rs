//! Capabilities and secure bits.

use crate::sys::{self, Errno, Result};

const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const CAP_KILL: u64 = 1 << 5;
const CAP_SETGID: u64 = 1 << 6;
const CAP_SETUID: u64 = 1 << 7;
const CAP_SETPCAP: u64 = 1 << 8;
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// What init keeps, in its own user namespace only: to become the payload's user, to drop capabilities for it,
/// to signal it, and to give each process a cgroup namespace (its filter allows no other use of SYS_ADMIN).
pub const INIT: u64 = CAP_KILL | CAP_SETGID | CAP_SETUID | CAP_SETPCAP | CAP_SYS_ADMIN;

/// Sets effective and permitted to a mask and inheritable to nothing.
pub fn set(mask: u64) -> Result<()> {
    let header = Header { version: VERSION_3, pid: 0 };
    let part = |shift: u32| Data {
        effective: (mask >> shift) as u32,
        permitted: (mask >> shift) as u32,
        inheritable: 0,
    };
    let data = [part(0), part(32)];
    // SAFETY: header and data live across the call and have the layout of version 3.
    let ret = unsafe { libc::syscall(libc::SYS_capset, &header, &data) };
    if ret < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// The effective, permitted and inheritable capabilities, or'ed together.
pub fn any() -> Result<u64> {
    let header = Header { version: VERSION_3, pid: 0 };
    let mut data = [Data::default(); 2];
    // SAFETY: header and data live across the call and have the layout of version 3.
    if unsafe { libc::syscall(libc::SYS_capget, &header, &mut data) } < 0 {
        return Err(Errno::last());
    }
    let all = |d: Data| u64::from(d.effective | d.permitted | d.inheritable);
    Ok(all(data[0]) | all(data[1]) << 32)
}

/// The highest capability that the running kernel knows.
pub fn last() -> u32 {
    let known = |cap: u32| sys::prctl(libc::PR_CAPBSET_READ, cap as usize, 0).is_ok();
    // They are numbered without gaps, and each look is a call.
    let (mut last, mut unknown) = (0, 64);
    while unknown - last > 1 {
        let middle = (last + unknown) / 2;
        *(if known(middle) { &mut last } else { &mut unknown }) = middle;
    }
    last
}

/// Empties the bounding set, up to the last capability that the kernel knows.
pub fn drop_bounding(last: u32) -> Result<()> {
    (0..=last).try_for_each(|cap| sys::prctl(libc::PR_CAPBSET_DROP, cap as usize, 0).map(drop))
}

/// Whether the bounding set is empty; the first and the most powerful ones stand for all.
pub fn bounding_empty(last: u32) -> bool {
    (0..=last).all(|cap| sys::prctl(libc::PR_CAPBSET_READ, cap as usize, 0) == Ok(0))
}

/// NOROOT and NO_CAP_AMBIENT_RAISE on, NO_SETUID_FIXUP and KEEP_CAPS off, each locked: uid 0 means nothing any
/// more, and no exec can change that.
pub const LOCKED_SECUREBITS: usize = 0b1110_1011;

/// Lets a change of the effective uid leave the capabilities alone; for the launcher.
pub const NO_SETUID_FIXUP: usize = 1 << 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_capability_is_the_kernels() {
        let told = std::fs::read_to_string("/proc/sys/kernel/cap_last_cap").unwrap();
        assert_eq!(last().to_string(), told.trim());
    }
}
