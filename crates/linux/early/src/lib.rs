//! Forks the launcher of `cofferdam run` before `main`.
//!
//! The launcher has the longer way to go, and needs nothing of what the standard library sets up first: signal
//! stacks, the limits of the stack, a look at each of the standard streams. A program that links this crate gets its
//! launcher by the time its `main` begins, if its first word says `run`; every other asks for one when it needs it.

#[cfg_attr(not(target_arch = "x86_64"), path = "entry_elsewhere.rs")]
mod entry;

pub use entry::network;

use cofferdam_linux::launcher::{self, LauncherOptions, Network};
use cofferdam_linux::{ControlSet, arguments, sys};
use libc::{c_char, c_int};
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::sync::Mutex;

const RUN: &CStr = c"run";

static LAUNCHER: Mutex<Option<sys::Result<OwnedFd>>> = Mutex::new(None);

/// The host's end of the launcher that was forked, once; `None` if none was.
pub fn launcher() -> Option<sys::Result<OwnedFd>> {
    LAUNCHER.lock().ok()?.take()
}

/// glibc calls it before `main`, with what it got from the kernel.
extern "C" fn fork(count: c_int, first: *const *const c_char, _: *const *const c_char) {
    // The launcher wipes them, and this may run before the function that else remembers where they are.
    // SAFETY: this is what glibc got from the kernel.
    unsafe { arguments::remember(count, first) };
    if arguments::nth(1) != Some(RUN) || !standard_streams_are_open() {
        return;
    }
    let options = LauncherOptions { makes_spares: false, leave_out: ControlSet::EMPTY };
    let network = if entry::has_started() { Network::Given } else { Network::Made };
    // SAFETY: nobody can have made a thread before this, apart from the one in `entry`, which makes system calls only.
    let forked = unsafe { launcher::fork_alone(&options, network) };
    if let Ok(mut launcher) = LAUNCHER.lock() {
        *launcher = Some(forked);
    }
}

// SAFETY: the section holds functions of exactly this type, called once each before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static FORK: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = fork;

/// A number below 3 that is free would become the launcher's socket. The standard library fills such a gap before
/// `main`, and then there is one more occasion to fork.
fn standard_streams_are_open() -> bool {
    let mut streams = [0, 1, 2].map(|fd| libc::pollfd { fd, events: 0, revents: 0 });
    sys::poll(&mut streams, 0).is_ok() && streams.iter().all(|stream| stream.revents & libc::POLLNVAL == 0)
}
