//! A complete backend in memory, for tests of whatever stands on the traits.
//!
//! Programs are closures that get the inside of a process: its streams, its signals, its files. Everything
//! that the traits promise holds here too: a destroyed sandbox runs nothing, its streams end, it answers
//! `Gone`. Ports and pausing are not offered, and the capabilities say so.

mod backend;
mod files;
mod process;
mod sandbox;

pub use backend::FakeBackend;
pub use files::{FakeFiles, Node};
pub use process::Guest;

/// The next value of a mutex that no test poisons on purpose.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
