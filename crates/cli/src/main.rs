//! The `cofferdam` command: names the concrete backend and hands it to the commands.
//!
//! Whatever has to happen while the process is still small and alone (forking the launcher) happens at the
//! top of `main`, before arguments are read.

mod args;
mod commands;
mod exit;
mod host;

use cofferdam_backend::{Backend, BackendError};
use cofferdam_core::Check;
use commands::Parts;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    commands::dispatch(std::env::args_os(), Parts { backend: make_backend, checks })
}

// SEAM: the native backend is put in here; until then every run is refused.
fn make_backend() -> Result<Arc<dyn Backend>, BackendError> {
    Err(BackendError::Refused {
        reason: "no backend is part of this build".to_owned(),
        fix: "build it with the native backend".to_owned(),
    })
}

// SEAM: the native backend's view of the machine.
fn checks() -> Vec<Check> {
    Vec::new()
}
