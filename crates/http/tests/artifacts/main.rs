//! Artifacts as a client meets them, on a server in this process: its own store, its own place, its own port.

// A test has nothing better to do with an error than to fail.
#![allow(clippy::unwrap_used)]

mod bed;
mod content;
mod flow;
mod links;
#[path = "../../../artifacts/tests/places/s3.rs"]
mod s3;
mod sweep;
mod tenants;
mod uploads;
