//! `artifact.get`, its bytes.

use crate::{Control, ControlError, Result};
use cofferdam_artifacts::{ArtifactError, Name, Reading};
use cofferdam_policy::Permit;
use cofferdam_store::{ArtifactRecord, ArtifactState};
use serde_json::json;
use std::ops::Range;

/// An artifact's bytes on their way out, and what is known of it.
#[derive(Debug)]
pub struct Download {
    pub record: ArtifactRecord,
    pub reading: Reading,
}

impl Control {
    /// Opens a part of an artifact, and notes that it was read.
    pub async fn read_artifact(
        &self,
        permit: &Permit,
        record: ArtifactRecord,
        part: Range<u64>,
    ) -> Result<Download> {
        let reading = self.open_artifact(&record, part.clone())?;
        let details = json!({"first": part.start, "end": part.end});
        let event = self.event(permit, "artifact.read", &record.id, details);
        self.parts.store.note(record.tenant.clone(), event).await?;
        Ok(Download { record, reading })
    }

    pub(super) fn open_artifact(&self, record: &ArtifactRecord, part: Range<u64>) -> Result<Reading> {
        let vault = &self.artifacts()?.vault;
        let (ArtifactState::Ready, Some(attempt)) = (record.state, &record.attempt) else {
            return Err(ControlError::Conflict {
                text: format!("the artifact is {}", record.state.as_str()),
            });
        };
        let name = Name::new(&record.tenant, &record.id, &attempt.name)?;
        let key = vault.open_key(&name, &attempt.wrapped_key)?;
        let size = u64::try_from(record.size_bytes).map_err(|_| ArtifactError::Missing)?;
        Ok(vault.read(name, key, size, part))
    }
}
