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
    /// The job has ended, and everything that is kept of what it wrote was seen.
    Ended(Box<JobRecord>),
    /// Everything that there is for now was seen.
    Now,
    /// The server is about to stop; whoever follows goes on elsewhere, or later.
    Stopped,
}

/// Someone who follows a job.
#[derive(Debug)]
pub struct Follower {
    control: Control,
    /// Whether to wait for what is yet to come.
    waits: bool,
    topic: Arc<Topic<OutputEvent>>,
    tenant: String,
    id: String,
    last_seq: i64,
    /// Whether it was looked if the job had ended before: from then on somebody tells.
    has_looked: bool,
}

impl Control {
    /// Follows a job from after a number, to its end or, where it is not to wait, to what there is now.
    pub async fn follow_job(
        &self,
        permit: &Permit,
        id: &str,
        after_seq: i64,
        waits: bool,
    ) -> Result<Follower> {
        self.get_job(permit, id).await?;
        let (tenant, id) = (permit.tenant().to_owned(), id.to_owned());
        let topic = self.parts.feeds.job(&id);
        self.parts.metrics.followers.add(1);
        Ok(Follower {
            control: self.clone(),
            waits,
            topic,
            tenant,
            id,
            last_seq: after_seq,
            has_looked: false,
        })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.control.parts.metrics.followers.add(-1);
    }
}

impl Follower {
    /// The number of the last event that was seen.
    pub fn last_seq(&self) -> i64 {
        self.last_seq
    }

    pub async fn next(&mut self) -> Result<Followed> {
        let parts = &self.control.parts;
        let mut stopped = parts.stopped.subscribe();
        // Listened to before anything is read, so that nothing falls between the two.
        let mut news = self.topic.subscribe();
        loop {
            let head = *news.borrow_and_update();
            let in_memory = if self.waits { self.topic.after(self.last_seq) } else { None };
            let events = match in_memory {
                Some(events) => events,
                None => match self.read().await? {
                    Ok(events) => events,
                    Err(job) => return Ok(Followed::Ended(job)),
                },
            };
            if let Some(last) = events.last() {
                self.last_seq = last.seq;
                return Ok(Followed::Output(events));
            }
            // What this process does not run may have ended before anybody followed: then nobody tells.
            if !self.waits || head.is_ended || (!self.has_looked && parts.running.get(&self.id).is_none()) {
                self.has_looked = true;
                let job = parts.store.job(&self.tenant, &self.id).await?;
                let job = job.ok_or(ControlError::NotFound { what: "job" })?;
                if job.state.is_final() {
                    // The last of it is written with the end, and there once that is seen.
                    let Ok(rest) = self.read().await? else { return Ok(Followed::Ended(Box::new(job))) };
                    let Some(last) = rest.last() else { return Ok(Followed::Ended(Box::new(job))) };
                    self.last_seq = last.seq;
                    return Ok(Followed::Output(rest));
                }
            }
            if !self.waits {
                return Ok(Followed::Now);
            }
            tokio::select! {
                _ = news.changed() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return Ok(Followed::Stopped),
            }
        }
    }

    /// What comes next in the store; or the job, where it is too late for that.
    async fn read(&self) -> Result<std::result::Result<Vec<Arc<OutputEvent>>, Box<JobRecord>>> {
        let parts = &self.control.parts;
        let events = parts.store.output(&self.id, self.last_seq, BATCH).await?;
        // Afterwards: what was read before its time was over is whole. What runs here has all of it.
        if parts.running.get(&self.id).is_none() {
            let job = parts.store.job(&self.tenant, &self.id).await?;
            let job = job.ok_or(ControlError::NotFound { what: "job" })?;
            if job.output_expired_at_ms.is_some() {
                return Ok(Err(Box::new(job)));
            }
        }
        Ok(Ok(events.into_iter().map(Arc::new).collect()))
    }
}
