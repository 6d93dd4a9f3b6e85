//! One process after the other in a sandbox that stays, as steps of a session are.

use std::sync::Arc;
use std::time::Instant;

use cofferdam_backend::Sandbox;

use super::host::{Host, failed, finished, process};
use crate::contestant::{Contestant, Sample};
use crate::failure::Result;
use crate::workload::Workload;

pub(crate) struct Exec {
    host: Arc<Host>,
    workload: Workload,
    sandbox: Box<dyn Sandbox>,
}

impl Exec {
    pub(crate) fn new(host: Arc<Host>, workload: Workload) -> Result<Self> {
        let sandbox = host.runtime.block_on(host.warm())?;
        Ok(Self { host, workload, sandbox })
    }

    pub(crate) fn end(self) -> Result<()> {
        self.host.runtime.block_on(self.sandbox.destroy()).map_err(failed)
    }
}

impl Contestant for Exec {
    fn name(&self) -> &str {
        "exec"
    }

    fn sample(&self) -> Result<Sample> {
        let process = process(self.workload)?;
        self.host.runtime.block_on(async {
            let start = Instant::now();
            let process = self.sandbox.start(process).await.map_err(failed)?;
            finished(&*process).await?;
            Ok(start.elapsed().into())
        })
    }
}
