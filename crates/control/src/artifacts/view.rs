//! An artifact as it is shown.

use crate::timestamp;
use cofferdam_api::Artifact;
use cofferdam_store::ArtifactRecord;

pub fn artifact_view(record: ArtifactRecord) -> Artifact {
    let ArtifactRecord {
        id,
        tenant: _,
        job,
        session,
        step,
        name,
        content_type,
        size_bytes,
        sha256,
        state,
        attempt: _,
        stored_sha256: _,
        created_at_ms,
        expires_at_ms,
    } = record;
    Artifact {
        id,
        job_id: job,
        session_id: session,
        step_id: step,
        name,
        size_bytes: size_bytes.max(0) as u64,
        sha256,
        content_type,
        state: state.as_str().to_owned(),
        created_at: timestamp(created_at_ms),
        expires_at: timestamp(expires_at_ms),
    }
}
