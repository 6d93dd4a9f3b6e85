//! The machine's cgroups, as this backend uses them.

use cofferdam_linux::cgroup::{self, Cgroups, Layout};

/// Where groups are made, and where their files are read.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) layout: Layout,
    pub(crate) cgroups: Cgroups,
}

impl Groups {
    pub(crate) fn open() -> Self {
        let layout = cgroup::detect();
        let cgroups = Cgroups::open(&layout);
        // What could not be opened is as good as not there, and says why.
        match &cgroups {
            Cgroups::None { reason } => Self { layout: Layout::None { reason: reason.clone() }, cgroups },
            _ => Self { layout, cgroups },
        }
    }
}
