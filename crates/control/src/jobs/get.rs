//! `job.get`, and waiting for a job's end.

use crate::{Control, ControlError, Result};
use cofferdam_policy::Permit;
use cofferdam_store::JobRecord;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How often a job is looked at that another process may run.
const LOOK: Duration = Duration::from_millis(250);

impl Control {
    pub async fn get_job(&self, permit: &Permit, id: &str) -> Result<JobRecord> {
        let job = self.parts.store.job(permit.tenant(), id).await?;
        job.ok_or(ControlError::NotFound { what: "job" })
    }

    /// The job when it has ended, or as it is when the time is over. Whoever waits changes nothing by going away.
    pub async fn wait_job(&self, permit: &Permit, id: &str, time: Duration) -> Result<JobRecord> {
        let deadline = Instant::now() + time;
        loop {
            // Listened to before the look, so that no end falls between the two.
            let news = self.parts.running.get(id).map(|handle| handle.news.subscribe());
            let job = self.get_job(permit, id).await?;
            if job.state.is_final() || Instant::now() >= deadline {
                return Ok(job);
            }
            let next = (Instant::now() + LOOK).min(deadline);
            match news {
                Some(mut news) => while let Ok(Ok(())) = timeout_at(deadline, news.changed()).await {},
                None => tokio::time::sleep_until(next).await,
            }
        }
    }
}
