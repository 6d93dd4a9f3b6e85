//! The OCI backend: every sandbox is a container of a runtime binary, runc or gVisor's runsc, made from a root
//! folder without a daemon.
//!
//! The backend mounts the root and the room for files (`place`), writes what the runtime is to make of it
//! (`config`), has it made (`runtime`, `starting`), and speaks to a helper inside (`cofferdam_guest`). Limits are set by the
//! runtime and read from their cgroup on the host.
//!
//! What it does not do: take another runtime than the one that was named, or run without root.

mod backend;
mod config;
mod layer;
#[cfg(feature = "leave-out")]
mod leave_out;
mod place;
mod runtime;
mod sandbox;
mod starting;

pub use backend::{OciBackend, OciOptions};
