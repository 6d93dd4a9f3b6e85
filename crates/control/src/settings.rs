//! What an operator decides. Each topic is a field with defaults of its own.

use crate::SigningSettings;
use crate::WebhookSettings;
use crate::artifacts::ArtifactSettings;
use crate::limits::LimitSettings;
use crate::quota::Quotas;
use crate::retention::Retention;
use cofferdam_identity::JwtSettings;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// For this long a claim on a job is believed without another word.
    pub lease: Duration,
    pub retention: Retention,
    pub limits: LimitSettings,
    /// For tenants that have none of their own.
    pub quotas: Quotas,
    /// Whose tokens are taken besides keys.
    pub jwt: Option<JwtSettings>,
    /// Whether requests without a key may do everything in the first tenant. For development, on loopback.
    pub dev_no_auth: bool,
    pub artifacts: ArtifactSettings,
    pub webhooks: WebhookSettings,
    pub signing: SigningSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            retention: Retention::default(),
            artifacts: ArtifactSettings::default(),
            limits: LimitSettings::default(),
            quotas: Quotas::default(),
            jwt: None,
            dev_no_auth: false,
            webhooks: WebhookSettings::default(),
            signing: SigningSettings::default(),
        }
    }
}
