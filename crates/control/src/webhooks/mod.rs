//! Webhooks: a job's owner hears of what becomes of it. What is to be told lies in the store, written together with
//! what it tells of; the task here sends it, at least once, and gives up in the end.

mod request;
mod secret;
mod sweep;

pub(crate) use secret::{SEALED, about as webhook_about};

use crate::{ControlError, Result};
use cofferdam_webhook::{Lookup, Network, Sender, SystemLookup};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// What an operator decides about webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Addresses that may be told although they are not public.
    pub allowed: Vec<Network>,
    /// Whether URLs without TLS are taken.
    pub plain_http: bool,
    /// How often a message is tried before it is given up.
    pub attempts: u32,
    /// The pause after the first attempt; each after that is twice as long, up to the longest, less some luck.
    pub first_pause: Duration,
    pub longest_pause: Duration,
    /// For one attempt, from the lookup of the name to the head of the answer.
    pub timeout: Duration,
    /// How long messages that were delivered or given up are kept.
    pub keep: Duration,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            allowed: Vec::new(),
            plain_http: false,
            attempts: 15,
            first_pause: Duration::from_secs(2),
            longest_pause: Duration::from_secs(3600),
            timeout: Duration::from_secs(10),
            keep: Duration::from_secs(7 * 24 * 3600),
        }
    }
}

/// What sends them.
#[derive(Debug)]
pub(crate) struct Deliveries {
    sender: Sender,
    due: Notify,
}

impl Deliveries {
    pub(crate) fn new(settings: &WebhookSettings) -> Result<Self> {
        Self::with_lookup(settings, Arc::new(SystemLookup))
    }

    fn with_lookup(settings: &WebhookSettings, lookup: Arc<dyn Lookup>) -> Result<Self> {
        let WebhookSettings { allowed, plain_http, timeout, .. } = settings;
        let sender = Sender::new(lookup, allowed.clone(), *plain_http, *timeout);
        Ok(Self { sender: sender.map_err(ControlError::Unavailable)?, due: Notify::new() })
    }

    /// Something is to be told now.
    pub(crate) fn wake(&self) {
        self.due.notify_one();
    }
}
