//! `artifact.list`.

use crate::{Control, Result};
use cofferdam_policy::Permit;
use cofferdam_store::{ArtifactFilter, ArtifactRecord};

impl Control {
    pub async fn list_artifacts(
        &self,
        permit: &Permit,
        filter: &ArtifactFilter,
    ) -> Result<Vec<ArtifactRecord>> {
        // A job or a session that is another's has no artifacts to list, and is not found.
        if let Some(job) = &filter.job {
            self.get_job(permit, job).await?;
        }
        if let Some(session) = &filter.session {
            self.get_session(permit, session).await?;
        }
        Ok(self.parts.store.artifacts(permit.tenant(), filter).await?)
    }
}
