//! The service, as a client sees it, and what is left of it when it is killed.

#[path = "serve/api.rs"]
mod api;
#[path = "serve/artifacts.rs"]
mod artifacts;
#[path = "serve/client.rs"]
mod client;
#[path = "serve/faults.rs"]
mod faults;
#[path = "serve/invariants.rs"]
mod invariants;
#[path = "serve/odd.rs"]
mod odd;
#[path = "serve/proofs.rs"]
mod proofs;
#[path = "serve/server.rs"]
mod server;
