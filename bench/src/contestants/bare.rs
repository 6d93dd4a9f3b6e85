//! No sandbox: the host's own program, forked and executed. What every other figure is a multiple of.

use super::Peer;
use super::whole_command::WholeCommand;
use crate::contestant::Pace;
use crate::failure::{Failure, Result};
use crate::workload::Workload;

pub(super) struct Bare;

impl Peer for Bare {
    fn pace(&self) -> Pace {
        Pace::Fast
    }

    fn command(&self, workload: Workload) -> Result<WholeCommand> {
        let (program, args) =
            workload.argv().split_first().ok_or_else(|| Failure::new("an empty workload"))?;
        Ok(WholeCommand::new("bare", program, args))
    }
}
