//! The program's arguments where the kernel put them, without a copy.
//!
//! The standard library copies every argument when one is asked for, and a copy made before the launcher is
//! forked would be in its memory and in that of every init.

use libc::{c_char, c_int};
use std::ffi::CStr;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

static COUNT: AtomicI32 = AtomicI32::new(0);
static FIRST: AtomicPtr<*const c_char> = AtomicPtr::new(std::ptr::null_mut());

/// glibc calls it before `main`, with what it got from the kernel.
extern "C" fn at_start(count: c_int, first: *const *const c_char, _: *const *const c_char) {
    // SAFETY: this is what glibc got from the kernel.
    unsafe { remember(count, first) };
}

/// Says where they are; for whoever glibc calls even before this module.
///
/// # Safety
/// They are the count and the array that the kernel gave to this process.
pub unsafe fn remember(count: c_int, first: *const *const c_char) {
    COUNT.store(count, Ordering::Relaxed);
    FIRST.store(first.cast_mut(), Ordering::Relaxed);
}

// SAFETY: the section holds functions of exactly this type, called once each before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = at_start;

/// The argument at a place, the program's own name being at 0.
pub fn nth(index: usize) -> Option<&'static CStr> {
    if index >= COUNT.load(Ordering::Relaxed) as usize {
        return None;
    }
    // SAFETY: the kernel's array has that many pointers to NUL-terminated strings, which stay for as long as the
    // process; only the launcher overwrites them, and reads none afterwards.
    unsafe {
        let text = *FIRST.load(Ordering::Relaxed).add(index);
        (!text.is_null()).then(|| CStr::from_ptr(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_that_the_standard_library_sees() {
        for (i, argument) in std::env::args().enumerate() {
            assert_eq!(nth(i).unwrap().to_str().unwrap(), argument);
        }
        assert_eq!(nth(std::env::args().count()), None);
    }
}
