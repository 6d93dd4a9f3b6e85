//! The last walls of a process in a container that somebody else made: what init does for a native one, as far as
//! no privilege is needed.

use crate::{seccomp, sys};

/// Default signals and the exact filter, for good; then nothing but exec is left to do. The error is an errno.
pub fn lock_down() -> Result<(), i32> {
    sys::reset_signals();
    seccomp::install(seccomp::payload_one_id())
}
