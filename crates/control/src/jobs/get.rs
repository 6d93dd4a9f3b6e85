//! `job.get`, and waiting for a job's end.

use crate::{Control, ControlError, Result};
use cofferdam_policy::Permit;
use cofferdam_store::JobRecord;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

impl Control {
    pub async fn get_job(&self, permit: &Permit, id: &str) -> Result<JobRecord> {
        let job = self.parts.store.job(permit.tenant(), id).await?;
        job.ok_or(ControlError::NotFound { what: "job" })
    }

    /// The job when it has ended, or as it is when the time is over. Whoever waits changes nothing by going away.
    pub async fn wait_job(&self, permit: &Permit, id: &str, time: Duration) -> Result<JobRecord> {
        let deadline = Instant::now() + time;
        let mut topic = None;
        loop {
            // Listened to before the look, so that no end falls between the two.
            let news = self.parts.running.get(id).map(|handle| handle.news.subscribe());
            if let Some((_, changes)) = &mut topic {
                watch::Receiver::mark_unchanged(changes);
            }
            let job = self.get_job(permit, id).await?;
            if job.state.is_final() || Instant::now() >= deadline {
                return Ok(job);
            }
            match news {
                Some(mut news) => while let Ok(Ok(())) = timeout_at(deadline, news.changed()).await {},
                // It waits, or another process runs it: one task looks for all of those.
                None => match &mut topic {
                    Some((_, changes)) => drop(timeout_at(deadline, changes.changed()).await),
                    None => {
                        let joined = self.parts.feeds.job(id);
                        let changes = joined.subscribe();
                        topic = Some((joined, changes));
                    }
                },
            }
        }
    }
}
