//! Folders whose changes are told: an instance for each watch, whose events go to the host as they are. It is made
//! inside, so that what it costs is counted as the sandbox's own.

use super::files::walk;
use cofferdam_backend::watching::words::WANTED;
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init, remove_watch};
use rustix::io::{Errno, ioctl_fionread};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

pub(super) fn start() -> Result<OwnedFd, Errno> {
    init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
}

/// Watches a folder as what was opened, whatever its path names by now.
pub(super) fn add(events: BorrowedFd<'_>, path: &str) -> Result<i32, Errno> {
    let folder = walk(path, false)?;
    let own = format!("/proc/self/fd/{}", folder.as_raw_fd());
    add_watch(events, own, WatchFlags::from_bits_retain(WANTED))
}

pub(super) fn remove(events: BorrowedFd<'_>, watch: i32) -> Result<(), Errno> {
    remove_watch(events, watch)
}

/// Whether everything that happened was read.
pub(super) fn is_empty(events: BorrowedFd<'_>) -> Result<bool, Errno> {
    Ok(ioctl_fionread(events)? == 0)
}
