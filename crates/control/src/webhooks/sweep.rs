//! The task that tells what is to be told.

use crate::{Control, Result, ids, now_ms, timestamp};
use cofferdam_api::WebhookBody;
use cofferdam_core::JobState;
use cofferdam_store::{AuditEvent, Delivery};
use cofferdam_webhook::Message;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// How often is looked for what is due: an attempt of before, or what another process has written.
const LOOK: Duration = Duration::from_secs(1);

/// So many are sent at once.
const AT_ONCE: usize = 16;

/// How often what is too old is removed.
const FORGET: Duration = Duration::from_secs(600);

/// An error's text may quote what a guest wrote.
const MAX_ERROR_BYTES: usize = 1024;

impl Control {
    /// Starts the task that sends webhooks, for as long as the process lives.
    pub(crate) fn spawn_webhooks(&self) {
        let control = self.clone();
        tokio::spawn(async move {
            let mut forgotten: Option<Instant> = None;
            loop {
                if forgotten.is_none_or(|when| when.elapsed() >= FORGET) {
                    let before = now_ms() - control.parts.settings.webhooks.keep.as_millis() as i64;
                    let _ = control.parts.store.deliveries_forget(before).await;
                    forgotten = Some(Instant::now());
                }
                // An error here is the store's: what is due is still there in a second.
                let _ = control.deliver_due().await;
                let _ = timeout(LOOK, control.parts.deliveries.due.notified()).await;
            }
        });
    }

    async fn deliver_due(&self) -> Result<()> {
        let mut sending = JoinSet::new();
        loop {
            let due = self.parts.store.deliveries_due(now_ms(), AT_ONCE as i64).await?;
            if due.is_empty() {
                break;
            }
            for delivery in due {
                // One that another process has taken, or whose attempt was never heard of, is due again later.
                let again_at_ms =
                    now_ms() + 3 * self.parts.settings.webhooks.timeout.as_millis() as i64 + 1000;
                let (id, attempts) = (delivery.event_id.clone(), delivery.attempts);
                if !self.parts.store.delivery_take(id, attempts, again_at_ms).await? {
                    continue;
                }
                let control = self.clone();
                sending.spawn(async move { control.deliver(delivery).await });
                if sending.len() >= AT_ONCE {
                    sending.join_next().await;
                }
            }
        }
        while sending.join_next().await.is_some() {}
        Ok(())
    }

    /// One attempt, and what comes of it.
    async fn deliver(&self, delivery: Delivery) {
        let (event_id, url) = (&delivery.event_id, &delivery.url);
        let body = body(&delivery);
        let timestamp_seconds = now_ms() / 1000;
        let sent = match self.open_webhook(url, &delivery.secret) {
            Ok(secret) => {
                let message = Message { url, secret: &secret, event_id, timestamp_seconds, body };
                self.parts.deliveries.sender.send(message).await.map_err(|error| error.to_string())
            }
            // The master key may be put back; until then nothing can be signed.
            Err(error) => Err(error.to_string()),
        };
        let attempts = delivery.attempts + 1;
        let settings = &self.parts.settings.webhooks;
        let written = match sent {
            Ok(()) => {
                self.parts.metrics.webhooks.one("delivered");
                self.parts.store.delivery_end(&delivery, now_ms(), None).await
            }
            Err(error) if attempts >= i64::from(settings.attempts) => {
                self.parts.metrics.webhooks.one("given_up");
                let event = given_up(&delivery, attempts, &error);
                tracing::warn!(event_id, job_id = delivery.job, attempts, %error, "a webhook was given up");
                self.parts.store.delivery_end(&delivery, now_ms(), Some((error, event))).await
            }
            Err(error) => {
                self.parts.metrics.webhooks.one("failed");
                let pause = pause(settings.first_pause, settings.longest_pause, attempts, luck());
                let next_at_ms = now_ms() + pause.as_millis() as i64;
                self.parts.store.delivery_postpone(event_id.clone(), next_at_ms, error).await
            }
        };
        if let Err(error) = written {
            // It will be sent once more, with the same id.
            tracing::warn!(event_id, %error, "what came of a webhook was not kept");
        }
    }
}

fn given_up(delivery: &Delivery, attempts: i64, error: &str) -> AuditEvent {
    AuditEvent {
        at_ms: now_ms(),
        kind: "webhook.given_up",
        actor: "system".to_owned(),
        resource: delivery.job.clone(),
        details: json!({"event_id": delivery.event_id, "attempts": attempts, "error": error}),
    }
}

/// The same bytes for every attempt.
fn body(delivery: &Delivery) -> Vec<u8> {
    let facts: Value = serde_json::from_str(&delivery.facts).unwrap_or_default();
    let outcome = Some(facts["outcome"].clone()).filter(|outcome| !outcome.is_null());
    let is_ours = outcome.as_ref().is_some_and(|outcome| outcome["kind"] == "failed");
    let error = outcome.as_ref().filter(|_| is_ours).and_then(|outcome| outcome["message"].as_str());
    let error = error.map(|text| text.chars().take(MAX_ERROR_BYTES / 4).collect());
    let outcome = match outcome {
        Some(outcome) if is_ours => Some(json!({"kind": "failed", "code": outcome["code"]})),
        other => other,
    };
    let body = WebhookBody {
        event_id: delivery.event_id.clone(),
        job_id: delivery.job.clone(),
        attempt: facts["attempt"].as_i64().unwrap_or(0),
        state: facts["state"].as_str().and_then(JobState::from_name).unwrap_or(JobState::Errored),
        container_id: facts["container_id"].as_str().map(str::to_owned),
        exit_code: facts["exit_code"].as_i64(),
        outcome,
        error,
        at: timestamp(facts["at_ms"].as_i64().unwrap_or(delivery.created_at_ms)),
    };
    serde_json::to_vec(&body).unwrap_or_default()
}

/// From 0 up to 1, for pauses of which no two are the same.
fn luck() -> f64 {
    ids::random::<4>().map_or(0.5, |bytes| f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX))
}

/// Twice as long each time, and from half of that to all of it.
fn pause(first: Duration, longest: Duration, attempts: i64, luck: f64) -> Duration {
    let doublings = attempts.clamp(1, 32) as u32 - 1;
    let whole = first.saturating_mul(1 << doublings.min(30)).min(longest);
    whole.mul_f64(0.5 + luck / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_are_never_all_the_same() {
        let at = |attempts, luck| {
            pause(Duration::from_secs(2), Duration::from_secs(60), attempts, luck).as_secs_f64()
        };
        assert_eq!(
            (at(1, 1.0), at(2, 1.0), at(3, 1.0), at(20, 1.0), at(1000, 1.0)),
            (2.0, 4.0, 8.0, 60.0, 60.0)
        );
        assert_eq!((at(1, 0.0), at(20, 0.0)), (1.0, 30.0));
    }
}
