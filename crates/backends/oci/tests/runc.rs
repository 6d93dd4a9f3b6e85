//! The OCI backend keeps what the traits promise, with runc.

mod support;

use cofferdam_backend::Backend;
use std::sync::Arc;

async fn make_backend() -> Arc<dyn Backend> {
    Arc::new(support::backend("runc"))
}

const DIFFERS: &[(&str, &str)] = &[(
    "isolation::mandatory_controls_are_enforced",
    "a container's /proc is neither read-only nor mounted with hidepid, and its keyring cannot be asked about",
)];

cofferdam_backend::conformance!(make_backend, differs: DIFFERS);

#[test]
fn the_differences_are_documented() {
    support::assert_documented("oci with runc", DIFFERS);
}
