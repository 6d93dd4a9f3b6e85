//! The OCI backend keeps what the traits promise, with gVisor.

mod support;

use cofferdam_backend::Backend;
use std::sync::Arc;

async fn make_backend() -> Arc<dyn Backend> {
    Arc::new(support::backend("runsc"))
}

const DIFFERS: &[(&str, &str)] = &[];

cofferdam_backend::conformance!(make_backend, differs: DIFFERS);
