//! What an operator decides. Each topic is a field with defaults of its own.

use crate::WebhookSettings;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// For this long a claim on a job is believed without another word.
    pub lease: Duration,
    pub webhooks: WebhookSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self { lease: Duration::from_secs(30), webhooks: WebhookSettings::default() }
    }
}
