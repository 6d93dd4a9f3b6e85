//! What an operator decides. Each topic is a field with defaults of its own.

use crate::{SigningSettings, WebhookSettings};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// For this long a claim on a job is believed without another word.
    pub lease: Duration,
    pub webhooks: WebhookSettings,
    pub signing: SigningSettings,
}

impl Default for Settings {
    fn default() -> Self {
        let (webhooks, signing) = (WebhookSettings::default(), SigningSettings::default());
        Self { lease: Duration::from_secs(30), webhooks, signing }
    }
}
