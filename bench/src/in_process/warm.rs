//! A program in a sandbox that is ready and waiting. Each sandbox serves once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cofferdam_backend::{ProcessSpec, Sandbox};

use super::flow::{self, Shared};
use super::host::{Host, failed, finished, process};
use crate::contestant::{Contestant, Sample};
use crate::failure::{Failure, Result};
use crate::throughput::Flow;
use crate::workload::Workload;

/// Sandboxes made ahead for one slice of a throughput measurement, which ends with them if not before: making
/// more meanwhile would measure that.
const STOCK: usize = 200;

pub(crate) struct Warm {
    host: Arc<Host>,
    workload: Workload,
    /// Made after a sample, for the next one.
    ready: Mutex<Option<Box<dyn Sandbox>>>,
}

impl Warm {
    pub(crate) fn new(host: Arc<Host>, workload: Workload) -> Self {
        Self { host, workload, ready: Mutex::default() }
    }

    /// Takes down what still waits.
    pub(crate) fn end(self) -> Result<()> {
        match lock(&self.ready).take() {
            Some(sandbox) => self.host.runtime.block_on(sandbox.destroy()).map_err(failed),
            None => Ok(()),
        }
    }

    async fn stock(&self) -> Result<Vec<Box<dyn Sandbox>>> {
        let mut stock = Vec::with_capacity(STOCK);
        while stock.len() < STOCK {
            stock.push(self.host.warm().await?);
        }
        Ok(stock)
    }
}

impl Contestant for Warm {
    fn name(&self) -> &str {
        "warm"
    }

    fn sample(&self) -> Result<Sample> {
        let process = process(self.workload)?;
        let ready = lock(&self.ready).take();
        let (took, next) = self.host.runtime.block_on(async {
            let sandbox = match ready {
                Some(sandbox) => sandbox,
                None => self.host.warm().await?,
            };
            let took = serve(&*sandbox, process).await?;
            // In this order the launcher, which answers one request after the other, is idle again at the end,
            // and whoever is timed next has the machine.
            let next = self.host.warm().await?;
            sandbox.destroy().await.map_err(failed)?;
            Ok::<_, Failure>((took, next))
        })?;
        *lock(&self.ready) = Some(next);
        Ok(took.into())
    }

    fn flow(&self, in_flight: usize, window: Duration) -> Flow {
        let flow = self.host.runtime.block_on(async {
            let stock = Arc::new(Mutex::new(self.stock().await?));
            let (process, shared) = (process(self.workload)?, Shared::new(window));
            let run = {
                let stock = Arc::clone(&stock);
                move || {
                    let sandbox = lock(&stock).pop()?;
                    let process = process.clone();
                    Some(async move { serve(&*sandbox, process).await.map(|_| sandbox) })
                }
            };
            let served = flow::run(&shared, in_flight, run).await;
            let flow = shared.flow();
            let unused = std::mem::take(&mut *lock(&stock));
            for sandbox in served.into_iter().chain(unused) {
                sandbox.destroy().await.map_err(failed)?;
            }
            Ok(flow)
        });
        flow.unwrap_or_else(|failure| Flow { failure: Some(failure), ..Flow::default() })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(sandbox: &dyn Sandbox, process: ProcessSpec) -> Result<Duration> {
    let start = Instant::now();
    let process = sandbox.start(process).await.map_err(failed)?;
    finished(&*process).await?;
    Ok(start.elapsed())
}
