//! Where output goes while a job still runs.
//!
//! The result keeps the first 8 MiB of each stream in any case. A `LiveOutput` sees every byte as it comes; it
//! may slow a living process down, as a full pipe would, and it can never hold up a dead one.

use cofferdam_backend::async_trait;

/// Which of the two streams bytes came from. A terminal has only the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// Takes output as it comes.
#[async_trait]
pub trait LiveOutput: Send {
    /// The sandbox stands and its process runs: what was before was its start.
    fn started(&mut self) {}

    /// Takes bytes at once, whether or not it is ready. It is called without waiting for `ready` only for what
    /// a dead process left in its pipes, so what has to be queued is bounded by their size.
    fn push(&mut self, stream: OutputStream, bytes: &[u8]);

    /// Waits until more may come. It is asked after each piece of a living process, and again when none has followed for
    /// a while, so that nothing need be held back for long. It may be dropped while waiting.
    async fn ready(&mut self);
}

/// Nobody is watching.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discard;

#[async_trait]
impl LiveOutput for Discard {
    fn push(&mut self, _: OutputStream, _: &[u8]) {}

    async fn ready(&mut self) {}
}
