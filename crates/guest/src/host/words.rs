//! Words for what the helper could not do.

use crate::protocol::{Failure, Step};
use cofferdam_backend::{BackendError, ProcessSpec};
use cofferdam_core::GuestPath;
use rustix::io::Errno;
use std::io;

fn text(errno: i32) -> String {
    io::Error::from_raw_os_error(errno).to_string()
}

/// Why a process did not start, in the caller's terms.
pub(super) fn start_error(spec: &ProcessSpec, failure: Failure) -> BackendError {
    let Failure { step, errno } = failure;
    let program = spec.argv.first().cloned().unwrap_or_default();
    match (step, Errno::from_raw_os_error(errno)) {
        (Step::Execute, Errno::NOENT | Errno::NOTDIR) => BackendError::NotFound { path: program },
        (Step::Execute, Errno::NOEXEC) => BackendError::NotPermitted {
            path: program,
            reason: "not a program: neither a binary for this machine nor a script with #!".to_owned(),
        },
        (Step::Execute, Errno::TOOBIG) => BackendError::NotPermitted {
            path: program,
            reason: "the arguments are longer than the kernel takes".to_owned(),
        },
        (Step::Execute, _) => BackendError::NotPermitted {
            path: program,
            reason: format!("cannot be executed: {}", text(errno)),
        },
        (Step::Workdir, Errno::NOENT) => BackendError::NotFound { path: spec.cwd.to_string() },
        (Step::Workdir, _) => BackendError::NotPermitted {
            path: spec.cwd.to_string(),
            reason: format!("cannot be the working directory: {}", text(errno)),
        },
        _ => BackendError::failed("starting a process", io::Error::from_raw_os_error(errno)),
    }
}

/// Why a file could not be opened or written, in the caller's terms.
pub(super) fn file_error(path: &GuestPath, failure: Failure) -> BackendError {
    let path = path.to_string();
    let errno = failure.errno;
    match Errno::from_raw_os_error(errno) {
        Errno::NOENT => BackendError::NotFound { path },
        Errno::LOOP => {
            BackendError::NotPermitted { path, reason: "a link, or behind one: not followed".to_owned() }
        }
        Errno::NXIO => BackendError::NotPermitted { path, reason: "not a plain file".to_owned() },
        Errno::NOSPC | Errno::DQUOT => {
            BackendError::failed(format!("writing {path}"), io::Error::from_raw_os_error(errno))
        }
        _ => BackendError::NotPermitted { path, reason: text(errno) },
    }
}
