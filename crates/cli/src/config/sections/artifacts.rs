//! `[artifacts]`: bytes that outlive a sandbox.

use crate::config::kinds::{KeepFor, Size, Time};
use crate::config::setting::{Section, no_clash, setting};

pub(crate) const SECTION: Section = Section {
    name: "artifacts",
    about: "Bytes that outlive a sandbox. How many a tenant may have is in `[quotas]`.",
    settings: &[
        setting!("max_bytes", Size, control.artifacts.max_bytes, "the largest single upload"),
        setting!("retention", KeepFor, control.artifacts.retention, "how long one is kept after it was made"),
        setting!(
            "upload_time",
            Time,
            control.artifacts.upload_time,
            "how long an upload may take, from its beginning until it is finalised"
        ),
        setting!("link_time", Time, control.artifacts.link_time, "how long a signed address is good for"),
        setting!(
            "link_time_max",
            Time,
            control.artifacts.link_time_max,
            "the longest that a signed address may be asked for"
        ),
    ],
    check: no_clash,
};
