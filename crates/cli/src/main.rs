//! The `cofferdam` command: names the concrete backend and hands it to the commands.
//!
//! Whatever has to happen while the process is still small and alone (forking the launcher) happens at the
//! top of `main`, before arguments are read.

mod args;
mod commands;
mod exit;
mod host;

use cofferdam_backend::{Backend, BackendError};
use cofferdam_linux::arguments;
use cofferdam_linux::launcher::{self, default_runtime_folder};
use cofferdam_native::{LauncherHandle, LauncherOptions, NativeBackend, doctor};
use commands::Parts;
use std::ffi::CStr;
use std::process::ExitCode;
use std::sync::Arc;

/// A host that has threads before it needs a launcher executes this program with this word, and a socket as its
/// stdin.
const LAUNCHER: &CStr = c"launcher";

fn main() -> ExitCode {
    // Where it lies: a copy made now would be in the launcher's memory, too.
    let word = arguments::nth(1);
    if word == Some(LAUNCHER) {
        launcher::run_on_stdin(&LauncherOptions { makes_spares: true, leave_out: Default::default() });
    }
    // Only `run` makes sandboxes, and it is worth the time of a fork to know that before parsing.
    let launcher = word.filter(|word| *word == c"run").map(|_| fork_launcher());
    let backend = move || connect(launcher);
    commands::dispatch(std::env::args_os(), Parts { backend: Box::new(backend), checks: doctor })
}

fn fork_launcher() -> std::io::Result<LauncherHandle> {
    let options = LauncherOptions { makes_spares: false, leave_out: Default::default() };
    Ok(LauncherHandle::new(launcher::fork(&options)?))
}

fn connect(launcher: Option<std::io::Result<LauncherHandle>>) -> Result<Arc<dyn Backend>, BackendError> {
    let failed = |e| BackendError::failed("starting the launcher", e);
    let launcher = launcher.unwrap_or_else(fork_launcher).map_err(failed)?;
    Ok(Arc::new(NativeBackend::new(launcher, default_runtime_folder()).map_err(failed)?))
}
