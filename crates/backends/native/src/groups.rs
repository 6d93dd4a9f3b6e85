//! The machine's cgroups, as this backend uses them.

use cofferdam_linux::cgroup::{self, Cgroups, Layout};
use cofferdam_linux::slots::Slots;
use std::time::{Duration, Instant};

/// What the sandboxes of a launcher that was just killed may take to die, all together.
const SWEEP_PATIENCE: Duration = Duration::from_secs(2);

/// Where groups are made, and where their files are read.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) layout: Layout,
    pub(crate) cgroups: Cgroups,
}

impl Groups {
    /// Removes groups that a killed launcher left: those of ranges that nobody holds. What was frozen in one was killed
    /// with its launcher, and dies now. Where processes live on in one, its range is set aside.
    pub(crate) fn sweep(&self, slots: &Slots) {
        let began = Instant::now();
        for name in self.layout.groups() {
            let number = name.strip_prefix('s').and_then(|number| number.parse().ok());
            let Some(Ok(Some(slot))) = number.map(|number| slots.try_take(number)) else { continue };
            let _ = self.layout.thaw_for_kill(&name);
            while self.cgroups.remove(&name).is_err() {
                if began.elapsed() > SWEEP_PATIENCE {
                    // A range that is not marked is still guarded: its group cannot be made anew.
                    let _ = slot.set_aside("a killed launcher left processes in its cgroup");
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
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
