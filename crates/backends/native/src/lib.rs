//! The native backend: sandboxes made of this kernel's own parts, with nothing to install.
//!
//! The host side of what `cofferdam-linux` does: it prepares images, talks to the launcher and to each
//! sandbox's init, and turns what they prove into isolation reports.

mod backend;
mod connection;
mod disk;
mod doctor;
mod groups;
mod hand_over;
mod image;
mod launcher;
mod listing;
mod ports;
mod pour;
mod process;
mod report;
mod runtime;
mod sandbox;
mod share;
mod streams;
mod watch;

pub use backend::NativeBackend;
pub use cofferdam_linux::launcher::LauncherOptions;
pub use doctor::doctor;
pub use launcher::LauncherHandle;
