//! The interface without a process around it: who may ask for what, and what a connection may cost.

#![allow(clippy::unwrap_used)]

#[path = "service/bed.rs"]
mod bed;
#[path = "service/connections.rs"]
mod connections;
#[path = "service/forks.rs"]
mod forks;
#[path = "service/idle_images.rs"]
mod idle_images;
#[path = "service/idle_sessions.rs"]
mod idle_sessions;
#[path = "service/roles.rs"]
mod roles;
#[path = "service/tls.rs"]
mod tls;
