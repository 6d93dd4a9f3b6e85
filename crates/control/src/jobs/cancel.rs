//! `job.cancel`: ends a job that has not ended. Asking again, or too late, changes nothing and is no error.

use crate::{Control, Result};
use cofferdam_core::JobState;
use cofferdam_policy::Permit;
use serde_json::json;

impl Control {
    pub async fn cancel_job(&self, permit: &Permit, id: &str) -> Result<JobState> {
        let event = self.event(permit, "job.cancelled", id, json!({}));
        let (tenant, by) = (permit.tenant().to_owned(), permit.actor().to_owned());
        let state = self.parts.store.cancel(tenant, id.to_owned(), by.clone(), event).await?;
        if state == JobState::Running
            && let Some(handle) = self.parts.running.get(id)
        {
            // Whoever asked first has cancelled it.
            handle.cancel.send_if_modified(|first| {
                let is_first = first.is_none();
                if is_first {
                    *first = Some(by);
                }
                is_first
            });
        }
        Ok(state)
    }
}
