//! Working without keys, for development. Off unless it is asked for; whoever turns it on also sees to it that only
//! this machine can reach the server.
//!
//! Each use is audited, but a use is not worth a commit of its own: the first is noted at once, from then on one entry
//! a minute has their number, and the last comes at the stop. A crash loses the count of the last minute at most; what
//! was done by then is in the audit as ever, under the name of the bypass.

use crate::{Control, Result, now_ms};
use cofferdam_policy::Principal;
use cofferdam_store::AuditEvent;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How often the uses since the last entry are noted.
const NOTE_EVERY: Duration = Duration::from_secs(60);

/// As it is noted.
const ACTOR: &str = "dev-no-auth";

#[derive(Debug)]
pub(crate) struct Bypass {
    tenant: String,
    uses: AtomicU64,
    is_noted: AtomicBool,
}

impl Bypass {
    pub(crate) fn new(tenant: String) -> Self {
        Self { tenant, uses: AtomicU64::new(0), is_noted: AtomicBool::new(false) }
    }
}

impl Control {
    pub fn is_open_to_all(&self) -> bool {
        self.parts.bypass.is_some()
    }

    /// Someone without a key, where that is allowed: everything in the first tenant, and nothing of an operator's.
    pub async fn without_key(&self) -> Result<Option<Principal>> {
        let Some(bypass) = &self.parts.bypass else { return Ok(None) };
        bypass.uses.fetch_add(1, Ordering::Relaxed);
        if !bypass.is_noted.swap(true, Ordering::Relaxed) {
            self.note_bypass().await?;
        }
        self.quotas(&bypass.tenant).await?;
        let scopes = vec!["*".to_owned()];
        Ok(Some(Principal { tenant: bypass.tenant.clone(), actor: ACTOR.to_owned(), agent: None, scopes }))
    }

    /// Notes the uses since the last entry.
    pub(crate) async fn note_bypass(&self) -> Result<()> {
        let Some(bypass) = &self.parts.bypass else { return Ok(()) };
        let uses = bypass.uses.swap(0, Ordering::Relaxed);
        if uses == 0 {
            return Ok(());
        }
        let event = AuditEvent {
            at_ms: now_ms(),
            kind: "auth.bypassed",
            actor: ACTOR.to_owned(),
            resource: bypass.tenant.clone(),
            details: serde_json::json!({"uses": uses}),
        };
        let noted = self.parts.store.note(bypass.tenant.clone(), event).await;
        if noted.is_err() {
            bypass.uses.fetch_add(uses, Ordering::Relaxed);
        }
        Ok(noted?)
    }

    pub(crate) fn spawn_bypass_notes(&self) {
        if !self.is_open_to_all() {
            return;
        }
        let control = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(NOTE_EVERY).await;
                // What could not be noted is noted with the next.
                let _ = control.note_bypass().await;
            }
        });
    }
}
