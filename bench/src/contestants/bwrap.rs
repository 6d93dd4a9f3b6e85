//! Bubblewrap: every namespace it can unshare, the shared root read-only, its own /proc, /dev and /tmp, and
//! no limits.

use std::path::{Path, PathBuf};

use super::whole_command::WholeCommand;
use super::{Peer, installed};
use crate::contestant::Pace;
use crate::failure::Result;
use crate::workload::Workload;
use crate::workplace::Workplace;

const PROGRAM: &str = "/usr/bin/bwrap";

pub(super) struct Bwrap {
    rootfs: PathBuf,
}

impl Bwrap {
    pub(super) fn prepare(place: &Workplace) -> Result<Self> {
        installed("bwrap", Path::new(PROGRAM), place)?;
        Ok(Self { rootfs: place.rootfs() })
    }
}

impl Peer for Bwrap {
    fn pace(&self) -> Pace {
        Pace::Fast
    }

    fn command(&self, workload: Workload) -> Result<WholeCommand> {
        let command = WholeCommand::new("bwrap", PROGRAM, ["--unshare-all", "--ro-bind"])
            .args([&self.rootfs])
            .args(["/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--die-with-parent"])
            .args(workload.argv());
        Ok(command)
    }
}
