//! Artifacts as files of a job: whoever submits the job has to be allowed to read them, and they have to be there.

use crate::terms::Input;
use crate::{Control, Result};
use cofferdam_api::InlineFile;
use cofferdam_core::{ArtifactId, InvalidValue};
use cofferdam_policy::{Action, Permit};
use cofferdam_proof::Digest;
use cofferdam_store::ArtifactState;
use std::collections::BTreeMap;

/// Each is looked up before the job is kept.
const MAX_INPUTS: usize = 100;

impl Control {
    /// The artifacts that a request for a job or a step names, by their ids. One that the tenant does not have is refused;
    /// another's is no different.
    pub(crate) async fn check_inputs(
        &self,
        permit: &Permit,
        files: &[InlineFile],
    ) -> Result<BTreeMap<String, Input>> {
        let mut inputs = BTreeMap::new();
        let named = || {
            let files = files.iter().enumerate();
            files.filter_map(|(i, file)| file.artifact.as_deref().map(|artifact| (i, artifact)))
        };
        let count = named().count();
        if count == 0 {
            return Ok(inputs);
        }
        if count > MAX_INPUTS {
            let fix = format!("at most {MAX_INPUTS} files may be artifacts");
            return Err(InvalidValue::new("files", count.to_string(), fix).into());
        }
        self.artifacts()?;
        self.permit(permit.principal(), Action::ArtifactGet, permit.tenant(), None).await?;
        for (i, id) in named() {
            let field = format!("files[{i}].artifact");
            ArtifactId::parse(&field, id)?;
            let found = self.parts.store.artifact(permit.tenant(), id).await?;
            let Some(found) = found.filter(|artifact| artifact.state == ArtifactState::Ready) else {
                return Err(InvalidValue::new(&field, id, "there is no such artifact that is ready").into());
            };
            let sha256 = found.sha256.as_deref().and_then(|text| Digest::parse(text).ok());
            inputs.insert(id.to_owned(), Input { sha256, size_bytes: found.size_bytes as u64 });
        }
        Ok(inputs)
    }
}
