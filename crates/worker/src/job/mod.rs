//! One job: a sandbox, one process in it, its outputs, and it is gone.
//!
//! `spec` is what may be asked for, `prepare` turns it into a process before anything exists, `run` goes
//! through the stages, `supervise` waits for the end or brings it about, `streams` moves the bytes, and
//! `verdict` says from the evidence how it ended.

mod cancel;
mod error;
mod prepare;
mod run;
mod spec;
mod streams;
mod supervise;
#[cfg(test)]
mod tests;
mod verdict;

pub(crate) use cancel::Request;
pub use cancel::{Cancellation, Canceller, cancellation};
pub use error::JobError;
pub(crate) use run::run_ahead;
pub use run::{check, run, run_in, run_keeping};
pub use spec::{ArtifactsWanted, FileIn, JobSpec, Stdin, Work, sandbox_spec};
pub(crate) use streams::Streams;
pub(crate) use supervise::{Cause, supervise};
