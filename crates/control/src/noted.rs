//! Things that may happen a thousand times a second and are noted once an hour: that a key was used, that the audit
//! was read. Who, what and in which hour is what an audit is asked for; a row for each time would bury the rest.

use crate::{Control, Result, now_ms};
use cofferdam_policy::Permit;
use cofferdam_store::{AuditEvent, KeyRecord};
use serde_json::json;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

const HOUR_MS: i64 = 3_600_000;

/// More than are at it within an hour. If not, some of it is noted again.
const MOST: usize = 4096;

/// What this process has noted in the current hour.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    hours: Mutex<HashMap<(String, &'static str, String), i64>>,
}

impl Noted {
    fn hours(&self) -> std::sync::MutexGuard<'_, HashMap<(String, &'static str, String), i64>> {
        self.hours.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was not noted in this hour. From now on it counts as noted.
    fn is_new(&self, actor: &str, kind: &'static str, resource: &str, hour: i64) -> bool {
        let mut hours = self.hours();
        let name = (actor.to_owned(), kind, resource.to_owned());
        if hours.get(&name) == Some(&hour) {
            return false;
        }
        if hours.len() >= MOST {
            hours.clear();
        }
        hours.insert(name, hour);
        true
    }

    fn forget(&self, actor: &str, kind: &'static str, resource: &str) {
        self.hours().remove(&(actor.to_owned(), kind, resource.to_owned()));
    }
}

fn hour(now: i64) -> i64 {
    now - now.rem_euclid(HOUR_MS)
}

impl Control {
    /// Notes that something was read, before it is shown: what cannot be noted is not shown.
    pub(crate) async fn note_read(&self, permit: &Permit, kind: &'static str, resource: &str) -> Result<()> {
        let (actor, noted) = (permit.actor(), &self.parts.noted);
        if !noted.is_new(actor, kind, resource, hour(now_ms())) {
            return Ok(());
        }
        let event = self.event(permit, kind, resource, json!({}));
        let done = self.parts.store.note(permit.tenant().to_owned(), event).await;
        if done.is_err() {
            noted.forget(actor, kind, resource);
        }
        Ok(done?)
    }

    /// Notes that a key was used, beside the request that uses it: nobody waits for it. What the request does is
    /// noted under the key's name anyway.
    pub(crate) fn note_key_use(&self, key: &KeyRecord) {
        const KIND: &str = "key.used";
        let now = now_ms();
        let since = hour(now);
        let is_known = key.last_used_at_ms.is_some_and(|last| last >= since);
        if is_known || !self.parts.noted.is_new(&key.id, KIND, "", since) {
            return;
        }
        let (control, tenant, id) = (self.clone(), key.tenant.clone(), key.id.clone());
        let event = AuditEvent {
            at_ms: now,
            kind: KIND,
            actor: id.clone(),
            resource: id.clone(),
            details: json!({}),
        };
        tokio::spawn(async move {
            let done = control.parts.store.note_key_use(tenant, id.clone(), since, event).await;
            if done.is_err() {
                // The next use tries again.
                control.parts.noted.forget(&id, KIND, "");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_new_once_an_hour() {
        let noted = Noted::default();
        assert!(noted.is_new("key", "audit.read", "a", 0));
        assert!(!noted.is_new("key", "audit.read", "a", 0));
        assert!(noted.is_new("key", "audit.read", "b", 0) && noted.is_new("other", "audit.read", "a", 0));
        assert!(noted.is_new("key", "audit.read", "a", HOUR_MS));
        noted.forget("key", "audit.read", "a");
        assert!(noted.is_new("key", "audit.read", "a", HOUR_MS));
        assert_eq!((hour(HOUR_MS + 5), hour(HOUR_MS - 1)), (HOUR_MS, 0));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let noted = Noted::default();
        for i in 0..3 * MOST {
            assert!(noted.is_new(&i.to_string(), "receipt.read", "", 0));
        }
        assert!(noted.hours().len() <= MOST);
    }
}
