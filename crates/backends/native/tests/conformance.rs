//! The native backend keeps what the traits promise.

use cofferdam_backend::Backend;
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_native::{LauncherHandle, NativeBackend};
use std::process::Command;
use std::sync::Arc;

async fn make_backend() -> Arc<dyn Backend> {
    let launcher = LauncherHandle::spawn(Command::new(env!("CARGO_BIN_EXE_cofferdam-launcher"))).unwrap();
    Arc::new(NativeBackend::new(launcher, default_runtime_folder()).unwrap())
}

cofferdam_backend::conformance!(make_backend);
