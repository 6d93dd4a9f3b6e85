//! The Docker backend keeps what the traits promise, on a dockerd of its own.

mod support;

use cofferdam_backend::Backend;
use std::sync::Arc;

async fn make_backend() -> Arc<dyn Backend> {
    Arc::new(support::backend(support::shared()))
}

const DIFFERS: &[(&str, &str)] = &[
    (
        "isolation::mandatory_controls_are_enforced",
        "a container has no user namespace unless the daemon remaps users, and neither hidepid nor a read-only /proc",
    ),
    (
        "isolation::mounts_show_no_host_paths",
        "the daemon mounts layers and /etc files of its own by their full paths",
    ),
    ("limits::tmp_shares_the_disk_limit", "/workspace has 7/8 of the room for files and /tmp has 1/8"),
];

cofferdam_backend::conformance!(make_backend, differs: DIFFERS);

#[test]
fn the_differences_are_documented() {
    support::assert_documented("docker", DIFFERS);
}
