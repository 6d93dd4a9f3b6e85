//! `event.list`: what happens to a tenant's jobs, as it happens. It is read off the tenant's audit, which is written
//! together with what it is about: so there is no event that did not happen, and none that is missing.

use super::{BATCH, Topic};
use crate::{Control, Result};
use cofferdam_policy::Permit;
use cofferdam_store::AuditEntry;
use std::sync::Arc;

/// Someone who follows a tenant's jobs.
#[derive(Debug)]
pub struct EventFollower {
    control: Control,
    topic: Arc<Topic<AuditEntry>>,
    tenant: String,
    last_seq: i64,
    /// Whether to wait for what is yet to come.
    waits: bool,
}

impl Control {
    /// Follows from after a number, or from now on; without end or, where it is not to wait, to what there is now.
    pub async fn follow_events(
        &self,
        permit: &Permit,
        after_seq: Option<i64>,
        waits: bool,
    ) -> Result<EventFollower> {
        let tenant = permit.tenant().to_owned();
        let head = self.parts.store.audit_heads(&[&tenant]).await?.get(&tenant).copied().unwrap_or(0);
        let topic = self.parts.feeds.tenant(&tenant, head);
        self.parts.metrics.followers.add(1);
        let last_seq = after_seq.unwrap_or(head);
        Ok(EventFollower { control: self.clone(), topic, tenant, last_seq, waits })
    }
}

impl Drop for EventFollower {
    fn drop(&mut self) {
        self.control.parts.metrics.followers.add(-1);
    }
}

impl EventFollower {
    /// Where it stands: everything up to this number was seen.
    pub fn last_seq(&self) -> i64 {
        self.last_seq
    }

    /// The next entries about jobs; none where the server is about to stop, or nothing is to be waited for.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<AuditEntry>>>> {
        let mut stopped = self.control.parts.stopped.subscribe();
        let mut news = self.topic.subscribe();
        loop {
            news.mark_unchanged();
            let in_memory = if self.waits { self.topic.after(self.last_seq) } else { None };
            let entries = match in_memory {
                Some(entries) => entries,
                None => self.read().await?,
            };
            if let Some(last) = entries.last() {
                self.last_seq = last.seq;
                let about_jobs: Vec<_> =
                    entries.into_iter().filter(|entry| entry.kind.starts_with("job.")).collect();
                if !about_jobs.is_empty() {
                    return Ok(Some(about_jobs));
                }
                continue;
            }
            if !self.waits {
                return Ok(None);
            }
            tokio::select! {
                _ = news.changed() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return Ok(None),
            }
        }
    }

    async fn read(&self) -> Result<Vec<Arc<AuditEntry>>> {
        let entries = self.control.parts.store.audit(&self.tenant, self.last_seq, BATCH).await?;
        Ok(entries.into_iter().map(Arc::new).collect())
    }
}
