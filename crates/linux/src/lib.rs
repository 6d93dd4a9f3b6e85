//! Linux, as far as sandboxes need it. But for the one attribute of `early`, this is the only crate with `unsafe` code.
//!
//! Three processes meet here. The host (the CLI or the server) talks to the `launcher`, which is forked before
//! the host holds any secret; the launcher clones an `init` for each sandbox; and init starts the user's
//! processes inside. What they say to each other is in `protocol` and `launcher::messages`.

pub mod arguments;
pub mod attached;
pub mod caps;
pub mod cgroup;
mod clone;
pub mod contained;
mod control_set;
pub mod disk;
pub mod features;
mod init;
pub mod landlock;
pub mod launcher;
pub mod protocol;
pub mod seccomp;
pub mod slots;
pub mod socket;
mod stage;
pub mod sys;
mod wire;

pub use control_set::ControlSet;
pub use stage::Stage;
