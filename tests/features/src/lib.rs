//! What the scenarios of features/ are run with: a service for each of them, and the words of their steps.

// A daemon's life is the same for every test that needs one; imports are what only some of them use.
#[allow(dead_code)]
#[path = "../../../crates/backends/docker/tests/support/daemon.rs"]
mod daemon;
pub mod service;
pub mod tags;
pub mod wall;
pub mod world;
