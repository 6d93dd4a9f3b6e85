//! gVisor: the same kind of bundle behind a kernel in user space.
//!
//! systrap, since the kvm platform hangs where /dev/kvm is there in name only; no network, since its default
//! mode fails on new kernels. Cgroups stay on: a sandbox without them would be another contestant.

use std::path::{Path, PathBuf};

use super::whole_command::WholeCommand;
use super::{Peer, installed, oci_bundle};
use crate::contestant::Pace;
use crate::failure::Result;
use crate::workload::Workload;
use crate::workplace::Workplace;

pub(crate) struct Runsc {
    program: PathBuf,
    rootfs: PathBuf,
    state: PathBuf,
    bundles: PathBuf,
}

impl Runsc {
    pub(crate) fn prepare(place: &Workplace) -> Result<Self> {
        let program = place.cache("runsc/usr/bin/runsc");
        installed("runsc", &program, place)?;
        Ok(Self {
            program,
            rootfs: place.rootfs(),
            state: place.run("runsc"),
            bundles: place.run("runsc-bundles"),
        })
    }
}

impl Runsc {
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }
}

impl Peer for Runsc {
    fn pace(&self) -> Pace {
        Pace::Slow
    }

    fn command(&self, workload: Workload) -> Result<WholeCommand> {
        let bundle = oci_bundle::write(&self.bundles, &self.rootfs, workload)?;
        let command =
            WholeCommand::new("runsc", &self.program, ["--platform=systrap", "--network=none", "--root"])
                .args([&self.state])
                .args(["run", "--bundle"])
                .args([bundle])
                .with_fresh_id(workload);
        Ok(command)
    }
}
