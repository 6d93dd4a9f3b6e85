//! What is counted while the program runs, and the text by which that is asked for; and the context by which a trace
//! goes on from one process to the next.
//!
//! A number is one atomic addition. No lock is held and nothing is allocated where something is counted, and what a
//! name is told apart by is a word of this program's, never one of a caller's: so nobody can make the text grow.
//! This crate does no I/O and has no global state.

mod histogram;
mod numbers;
mod text;
mod trace;

pub use histogram::{BATCH_SIZES, Histogram, LATENCIES};
pub use numbers::{Counter, Gauge};
pub use text::{Kind, Text};
pub use trace::{TRACE, continue_trace, current_traceparent, parse_traceparent};
