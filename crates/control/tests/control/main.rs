//! The control plane with a worker that is a fake: what cannot be had from a real one in a test.

// A case has nothing better to do with an error than to fail.
#![allow(clippy::unwrap_used)]

mod bed;
mod denials;
mod following;
mod gates;
mod webhooks;
