//! What a request says of its webhook.

use crate::{Control, Result, ids};
use cofferdam_api::{JobRequest, WebhookEvent, WebhookMade};
use cofferdam_core::InvalidValue;
use cofferdam_store::NewWebhook;
use cofferdam_webhook::check_url;

/// Shorter ones can be guessed from one message; longer ones are a mistake.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 16..=256;

impl Control {
    /// Takes the secret out of a request, which is kept as it is, and returns what is kept apart from it.
    pub(crate) fn take_webhook(&self, request: &mut JobRequest) -> Result<Option<(NewWebhook, WebhookMade)>> {
        let Some(wanted) = &mut request.webhook else { return Ok(None) };
        check_url(&wanted.url, self.parts.settings.webhooks.plain_http)
            .map_err(|fix| InvalidValue::new("webhook.url", wanted.url.as_str(), fix))?;
        let events = wanted.events.clone().unwrap_or_else(|| vec![WebhookEvent::Finished]);
        if events.is_empty() || events.len() > 3 {
            let fix = "name at least one of accepted, running and finished, each once";
            return Err(InvalidValue::new("webhook.events", format!("{} events", events.len()), fix).into());
        }
        let (secret, made) = match wanted.secret.take() {
            // The value itself is not said again, not even in an error.
            Some(secret) if !SECRET_BYTES.contains(&secret.len()) => {
                let value = format!("{} bytes", secret.len());
                return Err(InvalidValue::new("webhook.secret", value, "it must have 16 to 256 bytes").into());
            }
            Some(secret) => (secret, None),
            None => {
                let bytes: [u8; 32] = ids::random()?;
                let secret: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                (secret.clone(), Some(secret))
            }
        };
        let names: Vec<_> = events.iter().map(|event| event.as_str()).collect();
        let hook = NewWebhook { url: wanted.url.clone(), secret, events: names.join(" ") };
        Ok(Some((hook, WebhookMade { secret: made, events })))
    }
}
