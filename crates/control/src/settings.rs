//! What an operator decides. Each topic is a field with defaults of its own.

use crate::SigningSettings;
use crate::artifacts::ArtifactSettings;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// For this long a claim on a job is believed without another word.
    pub lease: Duration,
    pub artifacts: ArtifactSettings,
    pub signing: SigningSettings,
}

impl Default for Settings {
    fn default() -> Self {
        let (artifacts, signing) = (ArtifactSettings::default(), SigningSettings::default());
        Self { lease: Duration::from_secs(30), artifacts, signing }
    }
}
