//! A program given to an interpreter that waits for it in a sandbox of its own, as a server's pool does it: from
//! the request to the whole result.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cofferdam_core::Outcome;
use cofferdam_worker::runtime::{Runtime, by_name};
use cofferdam_worker::{
    Discard, JobSpec, Pool, PoolSettings, Work, cancellation, draw_job_id, draw_sandbox_id, sandbox_spec,
};

use super::flow::{self, Shared};
use super::host::Host;
use crate::contestant::{Contestant, Sample};
use crate::failure::{Failure, Result};
use crate::throughput::Flow;
use crate::workload::Workload;

/// Interpreters started for one slice of a throughput measurement, which ends with them if not before.
const STOCK: usize = 40;

/// Far longer than any start takes.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Ahead {
    host: Arc<Host>,
    pool: Arc<Pool>,
    runtime: &'static Runtime,
    /// One at a time: the pool is tended by whoever waits for it.
    turn: Mutex<()>,
}

impl Ahead {
    pub(super) fn new(host: Arc<Host>) -> Result<Self> {
        let runtime = by_name("language", "python").map_err(|error| Failure::new(error.to_string()))?;
        let settings =
            PoolSettings { per_kind: STOCK, total: STOCK, bytes: u64::MAX, idle: Duration::from_secs(3600) };
        let pool = Arc::new(Pool::new(host.backend(), settings));
        let ahead = Self { host, pool, runtime, turn: Mutex::default() };
        ahead.sample()?;
        Ok(ahead)
    }

    fn job(&self) -> Result<JobSpec> {
        let broken = |error: std::io::Error| Failure::new(error.to_string());
        let code = "print(1)".to_owned();
        let work = Work::Code { runtime: self.runtime, code };
        let mut job = JobSpec::new(draw_job_id().map_err(broken)?, work);
        job.image = self.host.image();
        Ok(job)
    }

    async fn fill(&self, count: usize) -> Result<()> {
        let id = draw_sandbox_id().map_err(|error| Failure::new(error.to_string()))?;
        self.pool.keep_ready(&sandbox_spec(id, &self.job()?), Some(self.runtime), count);
        let filled = async {
            while self.pool.counts().waiting < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            () = filled => Ok(()),
            never = self.pool.tend() => match never {},
            () = tokio::time::sleep(PATIENCE) => Err(Failure::new("the interpreters did not come up")),
        }
    }
}

async fn serve(pool: &Pool, job: JobSpec) -> Result<Duration> {
    let start = Instant::now();
    let (_keep, cancel) = cancellation();
    let result =
        pool.run(job, &mut Discard, cancel).await.map_err(|error| Failure::new(error.to_string()))?;
    let took = start.elapsed();
    let is_right = result.outcome == Outcome::Exited { code: 0 }
        && result.stdout.bytes == Workload::Python.expected_stdout().as_bytes();
    if is_right { Ok(took) } else { Err(Failure::new(format!("the program ended with {result:?}"))) }
}

impl Contestant for Ahead {
    fn name(&self) -> &str {
        "ahead"
    }

    fn sample(&self) -> Result<Sample> {
        let _turn = self.turn.lock();
        let job = self.job()?;
        self.host.runtime.block_on(async {
            self.fill(1).await?;
            let took = serve(&self.pool, job).await?;
            // The next one starts now, so that nothing of it is left to do when others are timed.
            self.fill(1).await?;
            Ok(took.into())
        })
    }

    fn flow(&self, in_flight: usize, window: Duration) -> Flow {
        let flow = self.host.runtime.block_on(async {
            self.fill(STOCK).await?;
            let jobs: Result<Vec<_>> = (0..STOCK).map(|_| self.job()).collect();
            let jobs = Arc::new(Mutex::new(jobs?));
            let shared = Shared::new(window);
            let pool = Arc::clone(&self.pool);
            let next = move || {
                let job = jobs.lock().ok()?.pop()?;
                let pool = Arc::clone(&pool);
                Some(async move { serve(&pool, job).await })
            };
            flow::run(&shared, in_flight, next).await;
            Ok::<_, Failure>(shared.flow())
        });
        flow.unwrap_or_else(|failure| Flow { failure: Some(failure), ..Flow::default() })
    }
}
