//! A rotation is done by a command on the folder of the keys, which may know nothing of the store. So the server writes
//! it down: when it sees the new key, or at its next start.

use crate::{Control, FIRST_TENANT, Result, now_ms};
use cofferdam_core::parse_timestamp;
use cofferdam_store::{AuditEvent, AuditFilter};
use serde_json::json;
use std::time::Duration;

/// How often is looked whether the keys were replaced.
const LOOK: Duration = Duration::from_secs(2);

const KIND: &str = "signing_key.rotated";

/// One that is older was noted long ago, in entries that may be gone by now.
const RECENT_MS: i64 = 30 * 24 * 3600 * 1000;

impl Control {
    /// Starts the task that notes rotations, for as long as the process lives.
    pub(crate) fn spawn_signing_watch(&self) {
        let control = self.clone();
        if self.parts.settings.signing.folder.is_none() {
            return;
        }
        tokio::spawn(async move {
            let mut seen = None;
            loop {
                // Keys that cannot be read are told of where they are needed; a store that is away is asked again.
                if let Ok(keys) = control.signing() {
                    let current = keys.current.id();
                    if seen.as_ref() != Some(&current) && control.note_rotations().await.is_ok() {
                        seen = Some(current);
                    }
                }
                tokio::time::sleep(LOOK).await;
            }
        });
    }

    /// Notes in the operator's chain each key that took another's place, unless that was done.
    async fn note_rotations(&self) -> Result<()> {
        let keys = self.signing()?;
        let store = &self.parts.store;
        let Some(tenant) = store.find_tenant(FIRST_TENANT).await? else { return Ok(()) };
        for pair in keys.list.keys().windows(2) {
            let [before, key] = pair else { continue };
            if parse_timestamp("created_at", &key.created_at)? < now_ms() - RECENT_MS {
                continue;
            }
            let resource = key.keyid.to_string();
            let (kind, named) = (Some(KIND.to_owned()), Some(resource.clone()));
            let filter = AuditFilter { kind, resource: named, limit: 1, ..AuditFilter::default() };
            if store.audit_list(&tenant, &filter).await?.is_empty() {
                let details = json!({
                    "retired": before.keyid.to_string(),
                    "leaked": before.leaked_at.is_some(),
                    "rotated_at": key.created_at,
                });
                let actor = "system".to_owned();
                let event = AuditEvent { at_ms: now_ms(), kind: KIND, actor, resource, details };
                store.note(tenant.clone(), event).await?;
            }
        }
        Ok(())
    }
}
