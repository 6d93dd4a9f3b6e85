//! Cofferdam as a library: contestants that make sandboxes from inside this process, as a server would, and
//! what an idle sandbox costs.
//!
//! They share one host: a runtime of one thread, and a launcher that is this program started again.

mod ahead;
mod cold;
mod exec;
mod flow;
mod host;
mod idle;
mod warm;

use std::path::Path;
use std::sync::Arc;

use cofferdam_linux::ControlSet;
use cofferdam_linux::launcher::run_on_stdin;
use cofferdam_native::LauncherOptions;

use crate::contestant::Contestant;
use crate::failure::Result;
use crate::workload::Workload;
use ahead::Ahead;
pub(crate) use cold::Cold;
pub(crate) use exec::Exec;
pub(crate) use host::Host;
#[cfg(test)]
pub(crate) use idle::Inventory;
pub(crate) use idle::{Idle, Round, measure as measure_idle, sandboxes};
pub(crate) use warm::Warm;

/// Asked for like a contestant, although it runs nothing.
pub(crate) const IDLE: &str = "idle";

/// The row of the time that cold sandboxes take to go.
pub(crate) const DESTROY: &str = "destroy";

/// The hidden first argument that makes this program a launcher.
const LAUNCHER: &str = "--launcher";

/// Becomes the launcher, if that is what this process was started for. To be called before anything else.
pub(crate) fn become_launcher_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|first| first == LAUNCHER) {
        run_on_stdin(&LauncherOptions { makes_spares: true, leave_out: ControlSet::EMPTY })
    }
}

/// A contestant by its name, proven to run the workload; none where the workload is not one for it.
pub(crate) fn contestant(
    name: &'static str,
    host: &Arc<Host>,
    workload: Workload,
) -> Result<Option<Box<dyn Contestant>>> {
    host.check(workload)?;
    let host = Arc::clone(host);
    Ok(match (name, workload) {
        ("ahead", Workload::Python) => Some(Box::new(Ahead::new(host)?)),
        ("ahead", Workload::True) => None,
        ("warm", _) => Some(Box::new(Warm::new(host, workload))),
        _ => Some(Box::new(Cold::new(host, workload))),
    })
}

pub(crate) fn host(rootfs: &Path) -> Result<Arc<Host>> {
    Ok(Arc::new(Host::start(rootfs)?))
}
