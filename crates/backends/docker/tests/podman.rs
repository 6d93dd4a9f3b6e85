//! The same backend keeps what the traits promise on a Podman of its own.

mod support;

use cofferdam_backend::Backend;
use cofferdam_docker::Engine;
use std::sync::{Arc, OnceLock};

fn shared() -> &'static support::Daemon {
    static SHARED: OnceLock<support::Daemon> = OnceLock::new();
    SHARED.get_or_init(|| support::start(Engine::Podman))
}

async fn make_backend() -> Arc<dyn Backend> {
    Arc::new(support::backend(shared()))
}

const DIFFERS: &[(&str, &str)] = &[
    (
        "isolation::mandatory_controls_are_enforced",
        "a container has no user namespace unless Podman is rootless, and neither hidepid nor a read-only /proc",
    ),
    (
        "isolation::mounts_show_no_host_paths",
        "Podman mounts layers and /etc files of its own by their full paths",
    ),
    (
        "limits::inodes_are_bounded",
        "Podman mounts no files in memory with a number of files; memory itself is what they end at",
    ),
    ("limits::tmp_shares_the_disk_limit", "/workspace has 7/8 of the room for files and /tmp has 1/8"),
];

cofferdam_backend::conformance!(make_backend, differs: DIFFERS);

#[test]
fn the_differences_are_documented() {
    support::assert_documented("podman", DIFFERS);
}

#[test]
fn an_image_of_the_store_is_loaded_where_podman_has_none() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(support::assert_store_is_used(shared()));
}
