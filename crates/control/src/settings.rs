//! What an operator decides. Each topic is a field with defaults of its own.

use crate::SigningSettings;
use crate::WebhookSettings;
use crate::artifacts::ArtifactSettings;
use crate::backends::BackendSettings;
use crate::limits::LimitSettings;
use crate::quota::Quotas;
use crate::retention::Retention;
use crate::sessions::SessionSettings;
use cofferdam_identity::JwtSettings;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// For this long a claim on a job is believed without another word. After twice as long its run is over, wherever
    /// it was.
    pub lease: Duration,
    pub retention: Retention,
    pub limits: LimitSettings,
    /// For tenants that have none of their own.
    pub quotas: Quotas,
    /// Whose tokens are taken besides keys.
    pub jwt: Option<JwtSettings>,
    /// Whether requests without a key may do everything in the first tenant. For development, on loopback.
    pub dev_no_auth: bool,
    pub node: Node,
    pub artifacts: ArtifactSettings,
    pub webhooks: WebhookSettings,
    pub signing: SigningSettings,
    pub sessions: SessionSettings,
    /// Rules in Rego in the place of the built-in ones. Nothing sets it but tests: managing rules is not built.
    #[doc(hidden)]
    pub rules: Option<String>,
    pub backends: BackendSettings,
}

/// Which of the processes that share a store this one is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// The same at every start on the same data folder, and nobody else's: what an earlier process of this name ran is
    /// known to have no owner. Empty for a process that is new each time.
    pub name: String,
    /// No other process has the store open, so nobody else can take a job away, however long the store fails.
    pub is_alone: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(10),
            node: Node::default(),
            retention: Retention::default(),
            artifacts: ArtifactSettings::default(),
            limits: LimitSettings::default(),
            quotas: Quotas::default(),
            jwt: None,
            dev_no_auth: false,
            webhooks: WebhookSettings::default(),
            signing: SigningSettings::default(),
            sessions: SessionSettings::default(),
            rules: None,
            backends: BackendSettings::default(),
        }
    }
}
