//! Workers in other processes. Control reaches them through [`HttpWorkers`], which is the same trait that it knows the
//! worker in its own process by; a worker says that it is there through [`Registration`].
//!
//! Sessions go the same way: start, step and terminate, and one call in frames for everything else. A step is a run.
//!
//! Every call has a time-out, and is tried again with a growing pause where that changes nothing: a run is made once
//! however often it is asked for, and its output is followed from where it was cut off.

mod artifacts;
mod backoff;
mod breaker;
mod call;
mod connector;
mod create;
mod follow;
mod images;
mod register;
mod run;
mod sessions;

pub use connector::{HttpWorkers, RemoteError};
pub use register::Registration;
