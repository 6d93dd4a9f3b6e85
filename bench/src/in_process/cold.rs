//! From nothing to an exit status: a sandbox made, used once and destroyed. The last is timed apart.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::flow::{self, Shared};
use super::host::{Host, Use, failed, process};
use crate::contestant::{Contestant, Sample};
use crate::failure::{Failure, Result};
use crate::throughput::Flow;
use crate::workload::Workload;

pub(crate) struct Cold {
    host: Arc<Host>,
    workload: Workload,
}

impl Cold {
    pub(crate) fn new(host: Arc<Host>, workload: Workload) -> Self {
        Self { host, workload }
    }
}

impl Contestant for Cold {
    fn name(&self) -> &str {
        "cold"
    }

    fn sample(&self) -> Result<Sample> {
        let (sandbox, process) = (self.host.sandbox(Use::Job), process(self.workload)?);
        self.host.runtime.block_on(async {
            let (took, sandbox) = self.host.cold(sandbox, process).await?;
            let start = Instant::now();
            sandbox.destroy().await.map_err(failed)?;
            Ok(Sample { took, destroy: Some(start.elapsed()) })
        })
    }

    /// Each is destroyed by a task of its own, while the next is being made; the last of them counts, too.
    fn flow(&self, in_flight: usize, window: Duration) -> Flow {
        let (host, workload) = (Arc::clone(&self.host), self.workload);
        let run = move || {
            let host = Arc::clone(&host);
            Some(async move {
                let (_, sandbox) = host.cold(host.sandbox(Use::Job), process(workload)?).await?;
                Ok(tokio::spawn(async move { sandbox.destroy().await.map_err(failed) }))
            })
        };
        self.host.runtime.block_on(async {
            let shared = Shared::new(window);
            let destroys = flow::run(&shared, in_flight, run).await;
            for destroy in destroys {
                match destroy.await {
                    Ok(Ok(())) => {}
                    Ok(Err(failure)) => shared.fail(failure),
                    Err(error) => shared.fail(Failure::new(error.to_string())),
                }
            }
            shared.flow()
        })
    }
}
