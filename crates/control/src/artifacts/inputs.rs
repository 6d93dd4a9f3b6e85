//! Artifacts as files of a job: whoever submits the job has to be allowed to read them, and they have to be there.

use crate::terms::Input;
use crate::{Control, Result};
use cofferdam_api::{InlineFile, JobRequest};
use cofferdam_core::{ArtifactId, InvalidValue};
use cofferdam_policy::{Action, Permit};
use cofferdam_proof::Digest;
use cofferdam_store::ArtifactState;
use std::collections::BTreeMap;

/// Each is looked up before the job is kept.
const MAX_INPUTS: usize = 100;

/// The artifacts that files of a request name, each with its field.
pub(crate) fn named<'r>(field: &str, files: &'r [InlineFile]) -> Vec<(String, &'r str)> {
    let files = files.iter().enumerate();
    let artifact = |(i, file): (usize, &'r InlineFile)| {
        Some((format!("{field}[{i}].artifact"), file.artifact.as_deref()?))
    };
    files.filter_map(artifact).collect()
}

/// All that a request for a job names.
pub(crate) fn named_by(request: &JobRequest) -> Vec<(String, &str)> {
    let mut all = named("files", &request.files);
    all.extend(named("expect", &request.expect));
    let project = request.runner.as_ref().and_then(|runner| runner.project.as_deref());
    all.extend(project.map(|id| ("runner.project".to_owned(), id)));
    all
}

impl Control {
    /// The artifacts that a request for a job or a step names, by their ids. One that the tenant does not have is refused;
    /// another's is no different.
    pub(crate) async fn check_inputs(
        &self,
        permit: &Permit,
        named: &[(String, &str)],
    ) -> Result<BTreeMap<String, Input>> {
        let mut inputs = BTreeMap::new();
        let count = named.len();
        if count == 0 {
            return Ok(inputs);
        }
        if count > MAX_INPUTS {
            let fix = format!("at most {MAX_INPUTS} files may be artifacts");
            return Err(InvalidValue::new("files", count.to_string(), fix).into());
        }
        self.artifacts()?;
        self.permit(permit.principal(), Action::ArtifactGet, permit.tenant(), None).await?;
        for (field, id) in named {
            ArtifactId::parse(field, id)?;
            let found = self.parts.store.artifact(permit.tenant(), id).await?;
            let Some(found) = found.filter(|artifact| artifact.state == ArtifactState::Ready) else {
                return Err(InvalidValue::new(field, *id, "there is no such artifact that is ready").into());
            };
            let sha256 = found.sha256.as_deref().and_then(|text| Digest::parse(text).ok());
            inputs.insert((*id).to_owned(), Input { sha256, size_bytes: found.size_bytes as u64 });
        }
        Ok(inputs)
    }
}
