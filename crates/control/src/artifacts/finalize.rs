//! `artifact.create`, its end: the bytes are there, are the right ones, and can be read from now on.

use super::create::check_sha256;
use crate::{Control, ControlError, Result, now_ms};
use cofferdam_core::InvalidValue;
use cofferdam_policy::Permit;
use cofferdam_store::{ArtifactRecord, ArtifactState};
use serde_json::json;

impl Control {
    /// Makes an uploaded artifact readable, if its bytes have the hash that was said at the beginning or is said now.
    pub async fn finalize_artifact(
        &self,
        permit: &Permit,
        id: &str,
        sha256: Option<&str>,
    ) -> Result<ArtifactRecord> {
        let record = self.artifact_record(permit.tenant(), id).await?;
        let said = sha256.map(check_sha256).transpose()?;
        let is_new = record.state == ArtifactState::Uploading;
        let stored = match (record.state, &record.stored_sha256) {
            (_, Some(stored)) => stored.clone(),
            _ => {
                let text = "the artifact has no bytes yet".to_owned();
                return Err(ControlError::Conflict { text });
            }
        };
        let expected = match (said, &record.sha256) {
            (Some(said), _) => said,
            (None, Some(announced)) => announced.clone(),
            (None, None) => {
                let fix = "say which hash the bytes should have, now or when the artifact is created";
                return Err(InvalidValue::new("sha256", "", fix).into());
            }
        };
        if expected != stored || record.sha256.as_ref().is_some_and(|announced| *announced != stored) {
            let fix = format!("the bytes that came have the hash {stored}; upload them again");
            return Err(InvalidValue::new("sha256", expected, fix).into());
        }
        if is_new {
            let (tenant, until) = (permit.tenant().to_owned(), self.retained_until(now_ms()));
            let event = self.event(permit, "artifact.ready", id, json!({"sha256": stored}));
            self.parts.store.finalize_artifact(tenant, id.to_owned(), stored, until, event).await?;
        }
        self.artifact_record(permit.tenant(), id).await
    }
}
