//! Network namespaces, made ahead of the sandboxes that get them.
//!
//! Making one takes longer than anything else about a sandbox, and needs nothing of it. One that is made here
//! belongs to the launcher's user namespace, so that nobody inside has any right over it.

use crate::sys::{self, Result};
use std::os::fd::OwnedFd;

/// Makes a network namespace with its loopback up, and moves this process into it.
pub fn make() -> Result<OwnedFd> {
    sys::unshare(libc::CLONE_NEWNET)?;
    sys::loopback_up()?;
    sys::open(sys::CWD, c"/proc/self/ns/net", libc::O_RDONLY, 0)
}
