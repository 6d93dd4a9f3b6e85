//! `artifact.get`: what is known of an artifact.

use crate::{Control, Result};
use cofferdam_policy::Permit;
use cofferdam_store::ArtifactRecord;

impl Control {
    pub async fn get_artifact(&self, permit: &Permit, id: &str) -> Result<ArtifactRecord> {
        self.artifact_record(permit.tenant(), id).await
    }
}
