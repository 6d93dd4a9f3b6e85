//! Following a job's output: from any place, while it runs and afterwards, without a gap or a repetition.

use crate::{Control, ControlError, Result};
use cofferdam_policy::Permit;
use cofferdam_store::{JobRecord, OutputEvent};
use std::time::Duration;
use tokio::time::timeout;

/// How often a job is looked at that this process does not run.
const LOOK: Duration = Duration::from_millis(250);

/// So many events at a time.
const BATCH: i64 = 64;

/// What comes next.
#[derive(Debug)]
pub enum Followed {
    Output(Vec<OutputEvent>),
    /// The job has ended, and everything that is kept of what it wrote was seen.
    Ended(Box<JobRecord>),
    /// Everything that there is for now was seen.
    Now,
}

/// Someone who follows a job.
#[derive(Debug)]
pub struct Follower {
    control: Control,
    /// Whether to wait for what is yet to come.
    waits: bool,
    tenant: String,
    id: String,
    last_seq: i64,
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
        Ok(Follower { control: self.clone(), waits, tenant, id, last_seq: after_seq })
    }
}

impl Follower {
    /// The number of the last event that was seen.
    pub fn last_seq(&self) -> i64 {
        self.last_seq
    }

    pub async fn next(&mut self) -> Result<Followed> {
        let parts = &self.control.parts;
        loop {
            let news = parts.running.get(&self.id).map(|handle| handle.news.subscribe());
            // In this order: what is written with the end is there once the end is seen.
            let job = parts.store.job(&self.tenant, &self.id).await?;
            let job = job.ok_or(ControlError::NotFound { what: "job" })?;
            if job.output_expired_at_ms.is_some() {
                return Ok(Followed::Ended(Box::new(job)));
            }
            let events = parts.store.output(&self.id, self.last_seq, BATCH).await?;
            if let Some(last) = events.last() {
                self.last_seq = last.seq;
                return Ok(Followed::Output(events));
            }
            if job.state.is_final() {
                return Ok(Followed::Ended(Box::new(job)));
            }
            if !self.waits {
                return Ok(Followed::Now);
            }
            match news {
                Some(mut news) => drop(timeout(LOOK, news.changed()).await),
                None => tokio::time::sleep(LOOK).await,
            }
        }
    }
}
