//! `step.interrupt`: ends a step that has not ended. What it has set stays, where its interpreter can.

use crate::{Control, Result};
use cofferdam_core::JobState;
use cofferdam_policy::Permit;
use serde_json::json;

impl Control {
    pub async fn interrupt_step(&self, permit: &Permit, session: &str, id: &str) -> Result<JobState> {
        let event = self.event(permit, "step.interrupted", id, json!({"session": session}));
        let (tenant, by) = (permit.tenant().to_owned(), permit.actor().to_owned());
        let (session, step) = (session.to_owned(), id.to_owned());
        let state = self.parts.store.interrupt_step(tenant, session, step, by.clone(), event).await?;
        if !state.is_final()
            && let Some(handle) = self.parts.running.get(id)
        {
            // Whoever asked first has ended it.
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
