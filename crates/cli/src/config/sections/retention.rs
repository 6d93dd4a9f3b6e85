//! `[retention]`: what is kept, and for how long.

use crate::config::kinds::{KeepFor, Time};
use crate::config::setting::{Section, no_clash, setting};

pub(crate) const SECTION: Section = Section {
    name: "retention",
    about: "For how long things are kept after they ended. What is removed of an audit leaves a signed checkpoint.",
    settings: &[
        setting!("jobs", KeepFor, control.retention.jobs, "jobs; their output goes with them at the latest"),
        setting!("output", KeepFor, control.retention.output, "what jobs wrote"),
        setting!("audit", KeepFor, control.retention.audit, "entries of the audit"),
        setting!("every", Time, control.retention.every, "how often it is looked for what may go"),
    ],
    check: no_clash,
};
