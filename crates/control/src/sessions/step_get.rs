//! `step.get`, `step.list`, and waiting for a step's end.

use super::step_seal::open_step;
use crate::{Control, ControlError, Result};
use cofferdam_policy::Permit;
use cofferdam_store::StepRecord;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How often a step is looked at that another process may have given to its worker.
const LOOK: Duration = Duration::from_millis(250);

impl Control {
    pub async fn get_step(&self, permit: &Permit, session: &str, id: &str) -> Result<StepRecord> {
        let step = self.read_step(permit.tenant(), session, id).await?;
        step.ok_or(ControlError::NotFound { what: "step" })
    }

    /// A session's steps after a number, in order.
    pub async fn list_steps(
        &self,
        permit: &Permit,
        session: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<StepRecord>> {
        self.get_session(permit, session).await?;
        let steps = self.parts.store.steps(permit.tenant(), session, after, limit).await?;
        let seal = self.step_seal(permit.tenant(), session).await?;
        steps.into_iter().map(|step| open_step(seal.as_ref(), step)).collect()
    }

    /// The step when it has ended, or as it is when the time is over. Whoever waits changes nothing by going away.
    pub async fn wait_step(
        &self,
        permit: &Permit,
        session: &str,
        id: &str,
        time: Duration,
    ) -> Result<StepRecord> {
        let deadline = Instant::now() + time;
        loop {
            // Listened to before the look, so that no end falls between the two.
            let news = self.parts.running.get(id).map(|handle| handle.news.subscribe());
            if let Some(mut news) = news
                && !time.is_zero()
            {
                // It closes at the end: only then is there something to look for.
                while let Ok(Ok(())) = timeout_at(deadline, news.changed()).await {}
            }
            let step = self.get_step(permit, session, id).await?;
            if step.state.is_final() || Instant::now() >= deadline {
                return Ok(step);
            }
            tokio::time::sleep_until((Instant::now() + LOOK).min(deadline)).await;
        }
    }
}
