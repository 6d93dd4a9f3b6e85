//! What makes sandboxes, as traits.
//!
//! A sandbox can start processes, move files and connect to ports; jobs, sessions and services are made of
//! nothing else. No implementation lives here; `watching` is what those share that have inotify. The conformance
//! suite (feature `conformance`) says in code what the traits promise, and every backend runs it with one macro
//! call.

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod spec;
mod traits;
pub mod watching;

pub use async_trait::async_trait;
pub use error::{BackendError, Result};
pub use spec::{Image, Mount, MountSource, OomScope, ProcessSpec, SandboxSpec, SharedFiles, Stdio};
pub use traits::{
    Backend, Capabilities, Change, Entry, EntryKind, ExitStatus, FileStat, IDLE_SANDBOX_BYTES, Listener,
    MAX_OPEN_FILES, OpenFile, Process, ProcessId, Reader, Sandbox, Stats, Stream, Watched, Watcher, Writer,
};
