//! Following a job's output: from any place, while it runs and afterwards, without a gap or a repetition.

use super::{BATCH, Topic};
use crate::{Control, ControlError, Result};
use cofferdam_policy::Permit;
use cofferdam_store::{JobRecord, OutputEvent};
use std::sync::Arc;

/// What comes next.
#[derive(Debug)]
pub enum Followed {
    Output(Vec<Arc<OutputEvent>>),
    /// The job has ended, and everything that it wrote was seen.
    Ended(Box<JobRecord>),
    /// The server is about to stop; whoever follows goes on elsewhere, or later.
    Stopped,
}

/// Someone who follows a job.
#[derive(Debug)]
pub struct Follower {
    control: Control,
    topic: Arc<Topic<OutputEvent>>,
    tenant: String,
    id: String,
    last_seq: i64,
    /// Whether it was looked if the job had ended before: from then on somebody tells.
    has_looked: bool,
}

impl Control {
    /// Follows a job from after a number.
    pub async fn follow_job(&self, permit: &Permit, id: &str, after_seq: i64) -> Result<Follower> {
        self.get_job(permit, id).await?;
        let (tenant, id) = (permit.tenant().to_owned(), id.to_owned());
        let topic = self.parts.feeds.job(&id);
        self.parts.metrics.followers.add(1);
        Ok(Follower { control: self.clone(), topic, tenant, id, last_seq: after_seq, has_looked: false })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.control.parts.metrics.followers.add(-1);
    }
}

impl Follower {
    pub async fn next(&mut self) -> Result<Followed> {
        let parts = &self.control.parts;
        let mut stopped = parts.stopped.subscribe();
        // Listened to before anything is read, so that nothing falls between the two.
        let mut news = self.topic.subscribe();
        loop {
            let head = *news.borrow_and_update();
            let events = match self.topic.after(self.last_seq) {
                Some(events) => events,
                None => self.read().await?,
            };
            if let Some(last) = events.last() {
                self.last_seq = last.seq;
                return Ok(Followed::Output(events));
            }
            // What this process does not run may have ended before anybody followed: then nobody tells.
            if head.is_ended || (!self.has_looked && parts.running.get(&self.id).is_none()) {
                self.has_looked = true;
                let job = parts.store.job(&self.tenant, &self.id).await?;
                let job = job.ok_or(ControlError::NotFound { what: "job" })?;
                if job.state.is_final() {
                    // The last of it is written with the end, and there once that is seen.
                    let rest = self.read().await?;
                    let Some(last) = rest.last() else { return Ok(Followed::Ended(Box::new(job))) };
                    self.last_seq = last.seq;
                    return Ok(Followed::Output(rest));
                }
            }
            tokio::select! {
                _ = news.changed() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return Ok(Followed::Stopped),
            }
        }
    }

    async fn read(&self) -> Result<Vec<Arc<OutputEvent>>> {
        let events = self.control.parts.store.output(&self.id, self.last_seq, BATCH).await?;
        Ok(events.into_iter().map(Arc::new).collect())
    }
}
