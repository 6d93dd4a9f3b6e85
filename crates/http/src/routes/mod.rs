//! A file a resource.

pub(crate) mod audit;
pub(crate) mod health;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod workers;
