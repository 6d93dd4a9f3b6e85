//! The Docker backend: every sandbox is a container of a Docker Engine, or of Podman behind the same interface.
//!
//! The daemon makes the walls; the backend asks for the narrowest it knows (`container`), puts a helper of ours
//! into the image (`prepare`), and from then on speaks to that helper through the container's own streams
//! (`cofferdam_guest`). So exit codes, signals, terminals, files and ports are the same as everywhere, and not
//! what an `exec` of the daemon would make of them.
//!
//! What it does not do: pull images, publish ports, mount anything of the host that it was not handed as a descriptor.

mod attach;
mod backend;
mod container;
mod daemon;
mod engine;
#[cfg(feature = "leave-out")]
mod leave_out;
mod load;
mod mounts;
mod orphans;
mod prepare;
mod sandbox;
mod save;

pub use backend::{DockerBackend, DockerOptions, LOST_AFTER};
pub use engine::Engine;
pub use save::{Saved, save};
