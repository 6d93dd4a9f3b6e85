//! A file of a session becomes an artifact, because somebody asks for it.

use super::files::{parse, refused};
use crate::artifacts::{ArtifactDesk, Keeper, Owner};
use crate::{Control, ControlError, Result};
use cofferdam_api::SessionArtifactRequest;
use cofferdam_core::{Artifact, InvalidValue};
use cofferdam_policy::{Action, Permit};
use cofferdam_store::ArtifactRecord;
use serde_json::json;

const MAX_NAME_BYTES: usize = 255;

impl Control {
    /// Keeps a file as it is now. It outlives the session.
    pub async fn create_session_artifact(
        &self,
        permit: &Permit,
        session: &str,
        request: &SessionArtifactRequest,
    ) -> Result<ArtifactRecord> {
        self.artifacts()?;
        // Whoever may not read the file may not have it kept either.
        let reading = self.permit(permit.principal(), Action::FileRead, permit.tenant(), None).await?;
        let path = parse("path", &request.path)?;
        let last = path.as_str().rsplit('/').next().unwrap_or_default();
        let name = request.name.as_deref().unwrap_or(last);
        if !(1..=MAX_NAME_BYTES).contains(&name.len()) || name.chars().any(char::is_control) {
            let fix = "it must be 1 to 255 bytes of text without control characters";
            return Err(InvalidValue::new("name", name, fix).into());
        }
        let details = json!({"path": path.as_str(), "verb": "artifact"});
        let at = self.reach_file(&reading, session, "file.read", details).await?;
        let (_, mut content) = at.sessions()?.read_file(&at.placed, &path).await.map_err(refused)?;
        let owner = Owner::Session { id: session.to_owned(), step: None };
        let keeper = Keeper::new(self.clone(), permit.tenant().to_owned(), owner);
        let kept = keeper.keep(name, &mut *content).await;
        let size_bytes = kept.map_err(|error| ControlError::TooLarge { text: format!("{path}: {error}") })?;
        let mut artifacts = vec![Artifact { path: name.to_owned(), size_bytes, id: None, sha256: None }];
        let mut warnings = Vec::new();
        keeper.settle_into(&mut artifacts, &mut warnings).await;
        let id = artifacts.pop().and_then(|artifact| artifact.id);
        let id = id.ok_or_else(|| ControlError::Unavailable(warnings.join("; ")))?;
        let found = self.parts.store.artifact(permit.tenant(), &id).await?;
        found.ok_or(ControlError::NotFound { what: "artifact" })
    }
}
