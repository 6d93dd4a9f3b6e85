//! The service, as a client sees it, and what is left of it when it is killed.

#[path = "serve/api.rs"]
mod api;
#[path = "serve/artifacts.rs"]
mod artifacts;
#[path = "serve/client.rs"]
mod client;
#[path = "serve/collector.rs"]
mod collector;
#[path = "serve/degradation.rs"]
mod degradation;
#[path = "serve/events.rs"]
mod events;
#[path = "serve/faults.rs"]
mod faults;
#[path = "serve/identity.rs"]
mod identity;
#[path = "serve/invariants.rs"]
mod invariants;
#[path = "serve/keeping.rs"]
mod keeping;
#[path = "serve/limits.rs"]
mod limits;
#[path = "serve/observing.rs"]
mod observing;
#[path = "serve/odd.rs"]
mod odd;
#[path = "serve/proofs.rs"]
mod proofs;
#[path = "serve/server.rs"]
mod server;
#[path = "serve/webhooks.rs"]
mod webhooks;
