//! Fresh ids and secrets, from the kernel's randomness.

use crate::{ControlError, Result};
use cofferdam_core::{ArtifactId, JobId, KeyId, SessionId, StepId, TenantId, encode_id};
use rustix::rand::{GetRandomFlags, getrandom};

pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(n) if n == N => Ok(bytes),
        _ => Err(ControlError::Unavailable("the kernel gives no random bytes".to_owned())),
    }
}

pub(crate) fn job() -> Result<JobId> {
    random().map(JobId::from_random)
}

pub(crate) fn session() -> Result<SessionId> {
    random().map(SessionId::from_random)
}

pub(crate) fn snapshot() -> Result<String> {
    random().map(|bytes| encode_id("snp", bytes))
}

pub(crate) fn image() -> Result<String> {
    random().map(|bytes| encode_id("img", bytes))
}

pub(crate) fn step() -> Result<StepId> {
    random().map(StepId::from_random)
}

pub(crate) fn artifact() -> Result<ArtifactId> {
    random().map(ArtifactId::from_random)
}

pub(crate) fn key() -> Result<KeyId> {
    random().map(KeyId::from_random)
}

pub(crate) fn tenant() -> Result<TenantId> {
    random().map(TenantId::from_random)
}

/// A name for a process that serves: of a worker, or of a node.
pub fn instance() -> Result<String> {
    random().map(|bytes| encode_id("wrk", bytes))
}
