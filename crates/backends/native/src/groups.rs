//! The machine's cgroups, as this backend uses them.

use cofferdam_linux::cgroup::{self, Cgroups, Layout};
use cofferdam_linux::slots::Slots;

/// Where groups are made, and where their files are read.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) layout: Layout,
    pub(crate) cgroups: Cgroups,
}

impl Groups {
    /// Removes groups that a killed launcher left: those of ranges that nobody holds.
    pub(crate) fn sweep(&self, slots: &Slots) {
        for name in self.layout.groups() {
            let number = name.strip_prefix('s').and_then(|number| number.parse().ok());
            if number.is_some_and(|number| slots.is_free(number)) {
                let _ = self.cgroups.remove(&name);
            }
        }
    }

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
