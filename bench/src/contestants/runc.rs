//! runc on a bundle, without any engine above it: what Docker and Podman cannot get below.

use std::path::{Path, PathBuf};

use super::whole_command::WholeCommand;
use super::{Peer, installed, oci_bundle};
use crate::contestant::Pace;
use crate::failure::Result;
use crate::workload::Workload;
use crate::workplace::Workplace;

pub(crate) struct Runc {
    rootfs: PathBuf,
    state: PathBuf,
    bundles: PathBuf,
}

impl Runc {
    pub(crate) const PROGRAM: &str = "/usr/sbin/runc";

    pub(crate) fn prepare(place: &Workplace) -> Result<Self> {
        installed("runc", Path::new(Self::PROGRAM), place)?;
        Ok(Self { rootfs: place.rootfs(), state: place.run("runc"), bundles: place.run("runc-bundles") })
    }
}

impl Peer for Runc {
    fn pace(&self) -> Pace {
        Pace::Slow
    }

    fn command(&self, workload: Workload) -> Result<WholeCommand> {
        let bundle = oci_bundle::write(&self.bundles, &self.rootfs, workload)?;
        let command = WholeCommand::new("runc", Self::PROGRAM, ["--root"])
            .args([&self.state])
            .args(["run", "--bundle"])
            .args([bundle])
            .with_fresh_id(workload);
        Ok(command)
    }
}
