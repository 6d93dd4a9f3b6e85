//! `[quotas]`: what a tenant may have that has none of its own.

use crate::config::kinds::{Count, Size};
use crate::config::setting::{Section, no_clash, setting};

pub(crate) const SECTION: Section = Section {
    name: "quotas",
    about: "What each tenant may have, unless it has a number of its own (`POST /v1/tenants`).",
    settings: &[
        setting!(
            "max_running",
            Count<u64>,
            control.quotas.max_running,
            "sandboxes at once; more jobs than that wait"
        ),
        setting!(
            "max_queued",
            Count<u64>,
            control.quotas.max_queued,
            "jobs that wait; more than that are a 429"
        ),
        setting!(
            "requests_per_second",
            Count<u64>,
            control.quotas.requests_per_second,
            "requests a second; more are a 429"
        ),
        setting!(
            "burst",
            Count<u64>,
            control.quotas.burst,
            "requests that may come at once after a while of none"
        ),
        setting!("artifact_bytes", Size, control.quotas.artifact_bytes, "bytes of artifacts that are kept"),
    ],
    check: no_clash,
};
