//! The service, as a client sees it, and what is left of it when it is killed.

#[path = "serve/apart.rs"]
mod apart;
#[path = "serve/apart_backends.rs"]
mod apart_backends;
#[path = "serve/api.rs"]
mod api;
#[path = "serve/artifacts.rs"]
mod artifacts;
#[path = "serve/backends.rs"]
mod backends;
#[path = "serve/browser.rs"]
mod browser;
#[path = "serve/client.rs"]
mod client;
#[path = "serve/collector.rs"]
mod collector;
#[path = "serve/degradation.rs"]
mod degradation;
#[path = "serve/disk.rs"]
mod disk;
#[path = "serve/docker_sandbox.rs"]
mod docker_sandbox;
#[path = "serve/duplicates.rs"]
mod duplicates;
#[path = "serve/elsewhere.rs"]
mod elsewhere;
#[path = "serve/events.rs"]
mod events;
#[path = "serve/faults.rs"]
mod faults;
#[path = "serve/fences.rs"]
mod fences;
#[path = "serve/forks.rs"]
mod forks;
#[path = "serve/hostile_archives.rs"]
mod hostile_archives;
#[path = "serve/identity.rs"]
mod identity;
#[path = "serve/images.rs"]
mod images;
#[path = "serve/invariants.rs"]
mod invariants;
#[path = "serve/keeping.rs"]
mod keeping;
#[path = "serve/limits.rs"]
mod limits;
#[path = "serve/load.rs"]
mod load;
#[path = "serve/machine.rs"]
mod machine;
#[path = "serve/master_keys.rs"]
mod master_keys;
#[path = "serve/named_requests.rs"]
mod named_requests;
#[path = "serve/observing.rs"]
mod observing;
#[path = "serve/odd.rs"]
mod odd;
#[path = "serve/pausing.rs"]
mod pausing;
#[path = "serve/planes.rs"]
mod planes;
#[path = "serve/planes_sessions.rs"]
mod planes_sessions;
// The store's own tests use the rest of it.
#[allow(dead_code, clippy::unwrap_used)]
#[path = "../../store/tests/store/postgres.rs"]
mod postgres;
#[path = "serve/proofs.rs"]
mod proofs;
#[path = "serve/pty.rs"]
mod pty;
#[path = "serve/roles.rs"]
mod roles;
#[path = "serve/runners.rs"]
mod runners;
#[path = "serve/sealed_steps.rs"]
mod sealed_steps;
#[path = "serve/secret_backends.rs"]
mod secret_backends;
#[path = "serve/secrets.rs"]
mod secrets;
#[path = "serve/server.rs"]
mod server;
#[path = "serve/session_backends.rs"]
mod session_backends;
#[path = "serve/session_faults.rs"]
mod session_faults;
#[path = "serve/session_files.rs"]
mod session_files;
#[path = "serve/sessions.rs"]
mod sessions;
#[path = "serve/shared_forks.rs"]
mod shared_forks;
#[path = "serve/shells.rs"]
mod shells;
#[path = "serve/snapshots.rs"]
mod snapshots;
#[path = "serve/socket.rs"]
mod socket;
#[path = "serve/sockets.rs"]
mod sockets;
#[path = "serve/step_receipts.rs"]
mod step_receipts;
#[path = "serve/tls.rs"]
mod tls;
#[path = "serve/tools.rs"]
mod tools;
#[path = "serve/watch_sockets.rs"]
mod watch_sockets;
#[path = "serve/watches.rs"]
mod watches;
#[path = "serve/webhooks.rs"]
mod webhooks;
