//! A file a resource.

pub(crate) mod artifact_content;
pub(crate) mod artifacts;
pub(crate) mod audit;
pub(crate) mod health;
pub(crate) mod jobs;
pub(crate) mod keys;
