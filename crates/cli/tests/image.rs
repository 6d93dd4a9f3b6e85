//! `cofferdam image` and `run --image`, from outside: the real program, real layers, real sandboxes.

#[path = "image/backends.rs"]
mod backends;
#[path = "image/bed.rs"]
mod bed;
#[path = "image/check.rs"]
mod check;
#[path = "image/daemon.rs"]
mod daemon;
#[allow(dead_code, reason = "the tests of the Docker backend use all of it")]
#[path = "../../backends/docker/tests/support/daemon.rs"]
mod docker;
#[path = "image/faults.rs"]
mod faults;
#[path = "image/profiles.rs"]
mod profiles;
#[path = "image/pull.rs"]
mod pull;
#[path = "image/registry.rs"]
mod registry;
#[path = "image/roots.rs"]
mod roots;
#[allow(dead_code, reason = "the tests of `run` use all of it")]
mod support;
