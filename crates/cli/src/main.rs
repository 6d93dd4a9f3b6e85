//! The `cofferdam` command: names the concrete backend and hands it to the commands.
//!
//! Whatever has to happen while the process is still small and alone (forking the launcher) happens at the
//! top of `main`, before arguments are read; for `run`, even before `main`.

mod args;
mod backends;
mod commands;
mod config;
mod exit;
mod host;

use backends::Choice;
use cofferdam_backend::{Backend, BackendError};
use cofferdam_guest::agent;
use cofferdam_linux::arguments;
use cofferdam_linux::contained::lock_down;
use cofferdam_linux::launcher::{self, default_runtime_folder};
use cofferdam_native::{LauncherHandle, LauncherOptions, NativeBackend, doctor};
use commands::Parts;
use std::ffi::CStr;
use std::process::ExitCode;
use std::sync::Arc;

/// A host that has threads before it needs a launcher executes this program with this word, and a socket as its
/// stdin.
const LAUNCHER: &CStr = c"launcher";

/// Inside a container, this program is its first process.
const GUEST: &CStr = c"guest";

fn main() -> ExitCode {
    // Where it lies: a copy made now would be in the launcher's memory, too.
    let word = arguments::nth(1);
    if word == Some(LAUNCHER) {
        launcher::run_on_stdin(&LauncherOptions { makes_spares: true, leave_out: Default::default() });
    }
    if word == Some(GUEST) {
        return agent::run(std::env::args().skip(1), lock_down).unwrap_or(ExitCode::FAILURE);
    }
    // Only these make sandboxes, and it is worth the time of a fork to know that before parsing.
    let launcher = match word {
        Some(word) if word == c"run" => Some(early_launcher().unwrap_or_else(|| fork_launcher(false))),
        Some(word) if word == c"serve" || word == c"worker" => Some(fork_launcher(true)),
        Some(word) if word == c"image" && arguments::nth(2) == Some(c"check") => Some(fork_launcher(false)),
        _ => None,
    };
    let backend = move |choice| match choice {
        Choice::Native => connect(launcher),
        other => backends::make(other),
    };
    commands::dispatch(std::env::args_os(), Parts { backend: Box::new(backend), checks: doctor })
}

/// The one that was forked before this function, where there was nothing in the way.
fn early_launcher() -> Option<std::io::Result<LauncherHandle>> {
    Some(cofferdam_early::launcher()?.map(LauncherHandle::new).map_err(Into::into))
}

/// `makes_spares` is for a host that makes many sandboxes.
fn fork_launcher(makes_spares: bool) -> std::io::Result<LauncherHandle> {
    let options = LauncherOptions { makes_spares, leave_out: Default::default() };
    Ok(LauncherHandle::new(launcher::fork(&options)?))
}

fn connect(launcher: Option<std::io::Result<LauncherHandle>>) -> Result<Arc<dyn Backend>, BackendError> {
    let failed = |e| BackendError::failed("starting the launcher", e);
    let launcher = launcher.unwrap_or_else(|| fork_launcher(false)).map_err(failed)?;
    if let Some(network) = cofferdam_early::network() {
        launcher.give_network(&network).map_err(failed)?;
    }
    Ok(Arc::new(NativeBackend::new(launcher, default_runtime_folder()).map_err(failed)?))
}
