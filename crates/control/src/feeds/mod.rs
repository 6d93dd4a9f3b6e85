//! What is followed, and the one task that looks for it. What this process writes is told at once; what others write
//! to the same store is found by one query for all followers, a few times a second, and only while there are any.

mod events;
mod output;
mod topic;

pub use events::EventFollower;
pub use output::{Followed, Follower};

use crate::{Control, Result};
use cofferdam_store::{AuditEntry, OutputEvent};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};
pub(crate) use topic::Topic;

/// How often other processes' writes are looked for.
const LOOK: Duration = Duration::from_millis(250);

/// And our own, at the most: commits come by the hundred.
const AT_MOST: Duration = Duration::from_millis(5);

/// So many at a time.
pub(crate) const BATCH: i64 = 256;

type Topics<T> = Mutex<HashMap<String, Weak<Topic<T>>>>;

/// The topics that somebody follows.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    jobs: Topics<OutputEvent>,
    tenants: Topics<AuditEntry>,
    /// Somebody began to follow.
    begun: Notify,
}

fn followed<T>(topics: &Topics<T>) -> Vec<(String, Arc<Topic<T>>)> {
    let mut topics = topics.lock().unwrap_or_else(PoisonError::into_inner);
    topics.retain(|_, topic| topic.strong_count() > 0);
    topics.iter().filter_map(|(name, topic)| Some((name.clone(), topic.upgrade()?))).collect()
}

fn find<T>(topics: &Topics<T>, name: &str) -> Option<Arc<Topic<T>>> {
    topics.lock().unwrap_or_else(PoisonError::into_inner).get(name)?.upgrade()
}

impl Feeds {
    fn join<T>(&self, topics: &Topics<T>, name: &str, seq: i64) -> Arc<Topic<T>> {
        let mut all = topics.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(topic) = all.get(name).and_then(Weak::upgrade) {
            return topic;
        }
        let topic = Arc::new(Topic::new(seq));
        all.insert(name.to_owned(), Arc::downgrade(&topic));
        drop(all);
        self.begun.notify_one();
        topic
    }

    pub(crate) fn job(&self, id: &str) -> Arc<Topic<OutputEvent>> {
        self.join(&self.jobs, id, 0)
    }

    fn tenant(&self, tenant: &str, seq: i64) -> Arc<Topic<AuditEntry>> {
        self.join(&self.tenants, tenant, seq)
    }

    /// Tells of output that is on the disk. Costs nothing to speak of where nobody follows.
    pub(crate) fn tell_output(&self, id: &str, events: &[OutputEvent]) {
        if let Some(topic) = find(&self.jobs, id) {
            topic.publish(events.iter().map(|event| (event.seq, event.clone())));
        }
    }

    /// Tells that a job's end is on the disk, with everything before it.
    pub(crate) fn tell_end(&self, id: &str) {
        if let Some(topic) = find(&self.jobs, id) {
            topic.end();
        }
    }
}

impl Control {
    /// Starts the task that feeds followers, for as long as the process lives.
    pub(crate) fn spawn_feeds(&self) {
        let control = self.clone();
        tokio::spawn(async move { control.feed().await });
    }

    async fn feed(&self) {
        let feeds = &self.parts.feeds;
        let mut commits = self.parts.store.commits();
        let mut next_look = Instant::now();
        loop {
            let (jobs, tenants) = (followed(&feeds.jobs), followed(&feeds.tenants));
            if jobs.is_empty() && tenants.is_empty() {
                feeds.begun.notified().await;
                continue;
            }
            let began = Instant::now();
            let is_look = began >= next_look;
            if is_look {
                next_look = began + LOOK;
            }
            commits.mark_unchanged();
            // A store that fails is tried again; followers have lost nothing.
            if self.feed_tenants(&tenants).await.is_err() | (is_look && self.feed_jobs(&jobs).await.is_err())
            {
                tracing::debug!("followers wait for the store");
            }
            drop((jobs, tenants));
            sleep_until(began + AT_MOST).await;
            let _ = timeout_at(next_look, async {
                tokio::select! {
                    _ = commits.changed() => commits.mark_changed(),
                    () = feeds.begun.notified() => {}
                }
            })
            .await;
        }
    }

    async fn feed_tenants(&self, tenants: &[(String, Arc<Topic<AuditEntry>>)]) -> Result<()> {
        let names: Vec<&str> = tenants.iter().map(|(name, _)| name.as_str()).collect();
        let heads = self.parts.store.audit_heads(&names).await?;
        for (tenant, topic) in tenants {
            let head = heads.get(tenant).copied().unwrap_or(0);
            while topic.head().seq < head {
                let entries = self.parts.store.audit(tenant, topic.head().seq, BATCH).await?;
                if entries.is_empty() {
                    break;
                }
                topic.publish(entries.into_iter().map(|entry| (entry.seq, entry)));
            }
        }
        Ok(())
    }

    /// Jobs that this process does not run, whether another does or they wait.
    async fn feed_jobs(&self, jobs: &[(String, Arc<Topic<OutputEvent>>)]) -> Result<()> {
        let others =
            jobs.iter().filter(|(id, topic)| !topic.head().is_ended && self.parts.running.get(id).is_none());
        let others: HashMap<&str, _> = others.map(|(id, topic)| (id.as_str(), topic)).collect();
        let ids: Vec<&str> = others.keys().copied().collect();
        for progress in self.parts.store.progress(&ids).await? {
            let Some(topic) = others.get(progress.id.as_str()) else { continue };
            while topic.head().seq < progress.last_seq {
                let events = self.parts.store.output(&progress.id, topic.head().seq, BATCH).await?;
                if events.is_empty() {
                    break;
                }
                topic.publish(events.into_iter().map(|event| (event.seq, event)));
            }
            if progress.state.is_final() {
                topic.end();
            }
        }
        Ok(())
    }
}
