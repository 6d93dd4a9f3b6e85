//! The native backend keeps what the traits promise.

#[path = "conformance/disk.rs"]
mod disk;
#[path = "conformance/pausing.rs"]
mod pausing;

use cofferdam_backend::Backend;
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_native::{LauncherHandle, NativeBackend};
use std::process::Command;
use std::sync::Arc;

async fn make_backend() -> Arc<dyn Backend> {
    // Where the tests were built elsewhere, as for the VM, the launcher lies beside them.
    let built = env!("CARGO_BIN_EXE_cofferdam-launcher").into();
    let program = std::env::var_os("COFFERDAM_LAUNCHER").unwrap_or(built);
    let launcher = LauncherHandle::spawn(Command::new(program)).expect("a launcher");
    Arc::new(NativeBackend::new(launcher, default_runtime_folder()).expect("a backend"))
}

cofferdam_backend::conformance!(make_backend);
