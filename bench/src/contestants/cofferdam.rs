//! The product, with its defaults: everything enforced.

use std::path::{Path, PathBuf};

use super::Peer;
use super::whole_command::WholeCommand;
use crate::contestant::Pace;
use crate::failure::{Failure, Result};
use crate::workload::Workload;
use crate::workplace::Workplace;

pub(super) struct Cofferdam {
    program: PathBuf,
    rootfs: PathBuf,
}

impl Cofferdam {
    pub(super) fn prepare(program: Option<&Path>, place: &Workplace) -> Result<Self> {
        let program = program.ok_or_else(|| Failure::new("--cofferdam PATH was not given"))?;
        if !program.is_file() {
            return Err(Failure::new(format!("no binary at {}", program.display())));
        }
        Ok(Self { program: program.to_owned(), rootfs: place.rootfs() })
    }
}

impl Peer for Cofferdam {
    fn pace(&self) -> Pace {
        Pace::Fast
    }

    fn command(&self, workload: Workload) -> Result<WholeCommand> {
        let command = WholeCommand::new("cofferdam", &self.program, ["run", "--rootfs"])
            .args([&self.rootfs])
            .args(["--"])
            .args(workload.argv());
        Ok(command)
    }
}
