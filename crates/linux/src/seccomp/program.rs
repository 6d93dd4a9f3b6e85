//! A compiled filter, and the one system call that installs it.

use std::borrow::Cow;
use std::io;

use libc::{c_ulong, sock_filter, sock_fprog};

/// No flags. In particular:
/// - SPEC_ALLOW is left out. Where the kernel ties speculation mitigations to seccomp (the default before
///   5.16, or by the administrator's choice), code of several tenants on one CPU is what they are for;
///   elsewhere it changes nothing.
/// - TSYNC is left out: launcher, init and a payload before its exec have one thread.
const FLAGS: c_ulong = 0;

/// A BPF program that `compile` made: at most 4096 instructions, every jump inside it, a return at the end of
/// each path.
#[derive(Debug)]
pub struct Program(Cow<'static, [sock_filter]>);

impl Program {
    #[cfg(test)]
    pub(super) fn new(code: Vec<sock_filter>) -> Self {
        assert!(
            code.len() <= libc::BPF_MAXINSNS as usize,
            "a filter of {} instructions is too long",
            code.len()
        );
        Program(Cow::Owned(code))
    }

    /// A program that was compiled before, when this crate was written; a test holds it to what `compile` makes.
    pub(super) const fn compiled(code: &'static [sock_filter]) -> Self {
        Program(Cow::Borrowed(code))
    }

    pub fn as_slice(&self) -> &[sock_filter] {
        &self.0
    }
}

/// Puts the calling thread, and all that it forks or executes from now on, under `program`, for good. On
/// failure the error is the errno: EACCES if neither no_new_privs is set nor CAP_SYS_ADMIN held.
///
/// Neither allocates nor locks, so it may be called between fork and exec.
pub fn install(program: &Program) -> Result<(), i32> {
    let code = program.as_slice();
    // The kernel's structure has a mutable pointer but the kernel only reads through it. `new` bounded the
    // length.
    let description = sock_fprog { len: code.len() as u16, filter: code.as_ptr().cast_mut() };
    // SAFETY: `description` lives until the call returns and its pointer and length are those of `code`,
    // which the borrow of `program` keeps alive; the kernel copies the instructions and writes through
    // neither pointer.
    let outcome = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, FLAGS, &raw const description)
    };
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)),
    }
}
