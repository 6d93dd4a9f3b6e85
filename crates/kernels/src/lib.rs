//! Interpreters that keep their state.
//!
//! A *kernel* is one interpreter process in a sandbox. It runs *cells* one after another, in one namespace, and
//! tells for each what it wrote, what its last expression was worth, and how it ended. It works on every backend
//! that can `start` and `listen`: what host and interpreter say to each other goes over a connection on the
//! sandbox's own loopback, and never over the streams that belong to the user's code.
//!
//! Nothing here trusts the interpreter. The user's code lives in the same process, and can say on the connection
//! whatever it likes: it then hurts its own kernel, and nothing else.

mod cell;
mod error;
pub mod frame;
mod interrupt;
mod kernel;
mod language;
mod output;
mod programs;
mod random;
mod request;
mod run;
mod start;

pub use cell::{
    Cell, CellEnd, CellError, CellOutcome, CellSink, KernelOptions, ResultKind, RichResult, Stream,
};
pub use error::KernelError;
pub use interrupt::Interrupter;
pub use kernel::Kernel;
pub use language::KernelLanguage;
pub use programs::{PYTHON_WAITING, Waiting};
pub use start::Preparation;
