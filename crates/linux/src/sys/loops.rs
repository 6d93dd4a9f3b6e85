//! Loop devices, and the filesystems on them.

use super::{Result, check, ioctl_number};
use std::os::fd::RawFd;

/// The number of a loop device that nobody uses.
pub fn free_loop_device(control: RawFd) -> Result<usize> {
    const LOOP_CTL_GET_FREE: u64 = 0x4C82;
    ioctl_number(control, LOOP_CTL_GET_FREE, 0)
}

/// `loop_config` of linux/loop.h. What is not named here stays 0.
#[repr(C)]
struct LoopConfig {
    file: u32,
    block_bytes: u32,
    before_flags: [u32; 13],
    flags: u32,
    names_and_keys: [u32; 44],
    reserved: [u64; 8],
}

/// Puts a loop device before a file. It is let go of when nothing uses the device any more.
pub fn configure_loop_device(device: RawFd, file: RawFd) -> Result<()> {
    const LOOP_CONFIGURE: u64 = 0x4C0A;
    const LO_FLAGS_AUTOCLEAR: u32 = 4;
    // What the filesystem above has cached is not cached again below, where it would count as nobody's.
    const LO_FLAGS_DIRECT_IO: u32 = 16;
    const { assert!(size_of::<LoopConfig>() == 304) }
    let config = LoopConfig {
        file: file as u32,
        block_bytes: 0,
        before_flags: [0; 13],
        flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
        names_and_keys: [0; 44],
        reserved: [0; 8],
    };
    // SAFETY: config lives across the call and has the layout that the request reads.
    check(unsafe { libc::syscall(libc::SYS_ioctl, device, LOOP_CONFIGURE, &config) }).map(drop)
}

/// Makes an ext4 stop where it is: nothing more is read or written.
pub fn shut_down_filesystem(folder: RawFd) -> Result<()> {
    const EXT4_IOC_SHUTDOWN: u64 = 0x8004_587D;
    const WITHOUT_FLUSHING: u32 = 2;
    let how = WITHOUT_FLUSHING;
    // SAFETY: how lives across the call and is what the request reads.
    check(unsafe { libc::syscall(libc::SYS_ioctl, folder, EXT4_IOC_SHUTDOWN, &how) }).map(drop)
}
