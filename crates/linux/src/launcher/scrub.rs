//! Forgetting the host: its environment, its command line, its descriptors.

use crate::ControlSet;
use crate::{arguments, sys};
use cofferdam_core::Control;
use std::ffi::{CStr, c_char};
use std::os::fd::RawFd;

unsafe extern "C" {
    static mut environ: *const *const c_char;
}

/// Overwrites the arguments and variables that the kernel put on the stack, and says whether they are gone.
pub(super) fn environment(leave_out: ControlSet) -> bool {
    if leave_out.has(Control::CleanEnvironment) {
        return false;
    }
    let mut is_blank = true;
    // SAFETY: the process has one thread. Each argument and each variable is a NUL-terminated string that the
    // kernel made for this process. Nothing refers to them afterwards: environ is emptied, and the launcher reads
    // no argument.
    unsafe {
        for argument in (0..).map_while(arguments::nth) {
            is_blank &= wipe(argument.as_ptr().cast_mut(), argument.count_bytes());
        }
        let mut variable = environ;
        while !variable.is_null() && !(*variable).is_null() {
            is_blank &= wipe((*variable).cast_mut(), CStr::from_ptr(*variable).count_bytes());
            variable = variable.add(1);
        }
        environ = std::ptr::null();
    }
    is_blank
}

/// Overwrites bytes and looks whether that had its effect.
///
/// # Safety
/// The bytes belong to this process and nobody reads them any more.
unsafe fn wipe(start: *mut c_char, bytes: usize) -> bool {
    let mut left = 0;
    for i in 0..bytes {
        // SAFETY: promised by the caller. Volatile, so that neither is taken for useless.
        left |= unsafe {
            start.add(i).write_volatile(0);
            start.add(i).read_volatile()
        };
    }
    left == 0
}

/// Closes everything but the socket; 0, 1 and 2 become /dev/null, so that nothing else takes their numbers.
pub(super) fn descriptors(socket: RawFd, leave_out: ControlSet) -> sys::Result<()> {
    use std::os::fd::AsRawFd;
    let null = sys::open(sys::CWD, c"/dev/null", libc::O_RDWR, 0)?;
    for target in 0..3 {
        sys::dup_to(null.as_raw_fd(), target, 0)?;
    }
    drop(null);
    if leave_out.has(Control::ClosedFds) {
        return Ok(());
    }
    if socket > 3 {
        sys::close_range(3, socket as u32 - 1)?;
    }
    sys::close_range(socket as u32 + 1, u32::MAX)
}
