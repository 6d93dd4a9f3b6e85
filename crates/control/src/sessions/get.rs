//! `session.get` and `session.list`.

use crate::{Control, ControlError, Result};
use cofferdam_policy::Permit;
use cofferdam_store::{SessionFilter, SessionRecord};

impl Control {
    pub async fn get_session(&self, permit: &Permit, id: &str) -> Result<SessionRecord> {
        let session = self.parts.store.session(permit.tenant(), id).await?;
        session.ok_or(ControlError::NotFound { what: "session" })
    }

    pub async fn list_sessions(&self, permit: &Permit, filter: &SessionFilter) -> Result<Vec<SessionRecord>> {
        Ok(self.parts.store.sessions(permit.tenant(), filter).await?)
    }
}
