//! Network namespaces, made ahead of the sandboxes that get them.
//!
//! Making one takes longer than anything else about a sandbox, and needs nothing of it. One that is made here
//! belongs to the launcher's user namespace, so that nobody inside has any right over it.

use crate::sys::{self, Result};
use std::os::fd::{AsRawFd, OwnedFd};

/// The network namespace of this process, if it may come back to it after leaving: without root it may not, and
/// then stays in whichever it made last.
pub(super) fn own() -> Option<OwnedFd> {
    let own = sys::open(sys::CWD, c"/proc/self/ns/net", libc::O_RDONLY, 0).ok()?;
    enter(&own).is_ok().then_some(own)
}

pub(super) fn enter(network: &OwnedFd) -> Result<()> {
    sys::setns(network.as_raw_fd(), libc::CLONE_NEWNET)
}

/// Makes a network namespace with its loopback up.
pub(super) fn make(home: Option<&OwnedFd>) -> Result<OwnedFd> {
    sys::unshare(libc::CLONE_NEWNET)?;
    let made = sys::loopback_up().and_then(|()| sys::open(sys::CWD, c"/proc/self/ns/net", libc::O_RDONLY, 0));
    if let Some(home) = home {
        enter(home)?;
    }
    made
}
