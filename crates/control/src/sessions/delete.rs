//! `session.delete`: a session ends at once, and what its steps were and wrote goes. That there was one, and that it was
//! deleted, stays until it is deleted once more, or its time is over.

use crate::{Control, Result, now_ms};
use cofferdam_core::{EndCause, SessionState};
use cofferdam_policy::Permit;
use cofferdam_store::{SessionEnd, StoreError};

impl Control {
    pub async fn delete_session(&self, permit: &Permit, id: &str) -> Result<()> {
        let (tenant, now) = (permit.tenant().to_owned(), now_ms());
        let end = SessionEnd {
            tenant: tenant.clone(),
            id: id.to_owned(),
            cause: EndCause::Deleted,
            message: None,
            actor: permit.actor().to_owned(),
            at_ms: now,
        };
        let is_whole = match self.parts.store.end_session(end).await {
            Ok(ended) => {
                let has_archive = ended.has_archive;
                self.let_go(vec![ended]).await;
                if has_archive && let Err(error) = self.sweep_archives().await {
                    // Its key is gone. The rest goes with the next sweep.
                    tracing::warn!("what a deleted session kept is not gone yet: {error}");
                }
                false
            }
            Err(StoreError::SessionState { state: SessionState::Ended, .. }) => true,
            Err(error) => return Err(error.into()),
        };
        self.parts.store.clear_session(tenant, id.to_owned(), is_whole, now).await?;
        // The key went first; now it leaves the database's own files.
        self.forget_together().await
    }
}
