//! Following a step's output: from any place, while it runs and afterwards, without a gap or a repetition.

use crate::{Control, ControlError, Result};
use cofferdam_policy::Permit;
use cofferdam_store::{OutputEvent, StepRecord};
use std::time::Duration;
use tokio::time::timeout;

/// How often a step is looked at that another process has given to its worker.
const LOOK: Duration = Duration::from_millis(250);

/// So many events at a time.
const BATCH: i64 = 64;

/// What comes next.
#[derive(Debug)]
pub enum FollowedStep {
    Output(Vec<OutputEvent>),
    /// The step has ended, and everything that is kept of what it wrote was seen.
    Ended(Box<StepRecord>),
    /// Everything that there is for now was seen, or the server is about to stop.
    Now,
}

/// Someone who follows a step.
#[derive(Debug)]
pub struct StepFollower {
    control: Control,
    /// Whether to wait for what is yet to come.
    waits: bool,
    tenant: String,
    session: String,
    id: String,
    last_seq: i64,
}

impl Control {
    /// Follows a step from after a number, to its end or, where it is not to wait, to what there is now.
    pub async fn follow_step(
        &self,
        permit: &Permit,
        session: &str,
        id: &str,
        after_seq: i64,
        waits: bool,
    ) -> Result<StepFollower> {
        self.get_step(permit, session, id).await?;
        self.parts.metrics.followers.add(1);
        let (tenant, session, id) = (permit.tenant().to_owned(), session.to_owned(), id.to_owned());
        Ok(StepFollower { control: self.clone(), waits, tenant, session, id, last_seq: after_seq })
    }
}

impl Drop for StepFollower {
    fn drop(&mut self) {
        self.control.parts.metrics.followers.add(-1);
    }
}

impl StepFollower {
    /// What is kept of what the step wrote, from its beginning.
    pub async fn all(&self, limit: i64) -> Result<Vec<OutputEvent>> {
        self.control.step_output(&self.tenant, &self.session, &self.id, 0, limit).await
    }

    pub async fn next(&mut self) -> Result<FollowedStep> {
        let parts = &self.control.parts;
        let mut stopped = parts.stopped.subscribe();
        loop {
            let news = parts.running.get(&self.id).map(|handle| handle.news.subscribe());
            // In this order: what is written with the end is there once the end is seen.
            let step = self.control.read_step(&self.tenant, &self.session, &self.id).await?;
            let step = step.ok_or(ControlError::NotFound { what: "step" })?;
            let (tenant, session) = (&self.tenant, &self.session);
            let events = self.control.step_output(tenant, session, &self.id, self.last_seq, BATCH).await?;
            if let Some(last) = events.last() {
                self.last_seq = last.seq;
                return Ok(FollowedStep::Output(events));
            }
            if step.state.is_final() {
                return Ok(FollowedStep::Ended(Box::new(step)));
            }
            if !self.waits {
                return Ok(FollowedStep::Now);
            }
            let next = async {
                match news {
                    Some(mut news) => drop(timeout(LOOK, news.changed()).await),
                    None => tokio::time::sleep(LOOK).await,
                }
            };
            tokio::select! {
                () = next => {}
                _ = stopped.wait_for(|stopped| *stopped) => return Ok(FollowedStep::Now),
            }
        }
    }
}
