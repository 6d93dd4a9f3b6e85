//! The OCI backend keeps what the traits promise, with gVisor.

mod support;

use cofferdam_backend::Backend;
use std::sync::Arc;

async fn make_backend() -> Arc<dyn Backend> {
    Arc::new(support::backend("runsc"))
}

const DIFFERS: &[(&str, &str)] = &[
    (
        "isolation::mandatory_controls_are_enforced",
        "gVisor's kernel is the wall: it shows no no_new_privs, keyring, securebits or mount flags to be proven",
    ),
    ("isolation::devices_are_the_harmless_ones", "there is a /dev/fuse, of gVisor's own kernel"),
    (
        "isolation::processes_are_unprivileged",
        "/proc/self/status has no line for ambient capabilities and privileges",
    ),
    ("limits::limits_can_change", "a kill for want of memory takes gVisor's kernel, and the sandbox with it"),
    (
        "limits::out_of_memory_ends_one_process",
        "a kill for want of memory takes gVisor's kernel, and the sandbox with it",
    ),
    ("limits::processes_are_limited_and_counted", "gVisor's kernel has no limit of processes of its own"),
    ("limits::stats_are_measured", "hits of a limit of processes cannot be counted: there is none"),
    ("ports::the_network_is_loopback_only", "addresses outside answer EHOSTUNREACH instead of ENETUNREACH"),
    ("process::signal_state_is_the_default", "/proc/self/status has no lines for signals"),
    ("terminal::dev_tty_is_the_terminal", "/dev/tty cannot be opened; the terminal's own name can"),
];

cofferdam_backend::conformance!(make_backend, differs: DIFFERS);

#[test]
fn the_differences_are_documented() {
    support::assert_documented("oci with runsc", DIFFERS);
}
