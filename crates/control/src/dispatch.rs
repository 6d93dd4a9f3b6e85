//! Which of the kept jobs runs next, and how many at once: never more than the worker has room for.

use crate::worker::Capacity;
use crate::{Control, Phase, now_ms};
use cofferdam_api::JobRequest;
use cofferdam_store::{AuditEvent, Claim, JobRecord};
use cofferdam_telemetry::{TRACE, continue_trace};
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How often the queue is looked at without being told to.
const SWEEP: Duration = Duration::from_secs(1);

/// As many queued jobs as are looked at in one go.
const LOOK: i64 = 64;

/// Room on the worker.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    capacity: Capacity,
    used: Mutex<Used>,
    pub(crate) changed: Notify,
}

#[derive(Debug, Default)]
struct Used {
    slots: usize,
    memory_bytes: u64,
    /// Whether a job waits: then nobody may go past it.
    has_queue: bool,
}

/// A part of the worker's room, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    dispatcher: Arc<crate::Parts>,
    memory_bytes: u64,
}

impl Drop for Room {
    fn drop(&mut self) {
        let dispatcher = &self.dispatcher.dispatcher;
        {
            let mut used = dispatcher.used();
            used.slots -= 1;
            used.memory_bytes -= self.memory_bytes;
        }
        dispatcher.changed.notify_one();
    }
}

impl std::fmt::Debug for crate::Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("instance", &self.instance).finish_non_exhaustive()
    }
}

impl Dispatcher {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self { capacity, used: Mutex::default(), changed: Notify::new() }
    }

    fn used(&self) -> std::sync::MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Control {
    /// Takes room for a job, if there is any and nobody else waits for it.
    pub(crate) fn take_room(&self, memory_bytes: u64, is_new: bool) -> Option<Room> {
        let dispatcher = &self.parts.dispatcher;
        let mut used = dispatcher.used();
        let fits = used.slots < dispatcher.capacity.slots
            && used.memory_bytes + memory_bytes <= dispatcher.capacity.memory_bytes;
        if !fits || (is_new && used.has_queue) || self.parts.is_draining.load(Ordering::Relaxed) {
            used.has_queue |= is_new;
            return None;
        }
        used.slots += 1;
        used.memory_bytes += memory_bytes;
        Some(Room { dispatcher: Arc::clone(&self.parts), memory_bytes })
    }

    /// The slots and the memory that are taken.
    pub(crate) fn room_used(&self) -> (usize, u64) {
        let used = self.parts.dispatcher.used();
        (used.slots, used.memory_bytes)
    }

    pub(crate) fn new_claim(&self) -> Claim {
        let lease_until_ms = now_ms() + self.parts.settings.lease.as_millis() as i64;
        Claim { worker: self.parts.instance.clone(), lease_until_ms }
    }

    /// Whether a job of that size could run at all.
    pub(crate) fn could_fit(&self, memory_bytes: u64) -> bool {
        memory_bytes <= self.parts.dispatcher.capacity.memory_bytes
    }

    /// Starts the task that gives queued jobs to the worker, for as long as the process lives.
    pub(crate) fn spawn_dispatch(&self) {
        let control = self.clone();
        tokio::spawn(async move {
            loop {
                // An error here is the store's: the queue is still there in a second.
                let _ = control.dispatch().await;
                let _ = tokio::time::timeout(SWEEP, control.parts.dispatcher.changed.notified()).await;
            }
        });
    }

    async fn dispatch(&self) -> crate::Result<()> {
        let mut tried = HashSet::new();
        loop {
            self.parts.dispatcher.used().has_queue = false;
            let queued = self.parts.store.queued(LOOK).await?;
            let mut went_on = false;
            for job in queued {
                if !tried.insert(job.id.clone()) {
                    continue;
                }
                if !self.start_queued(job).await? {
                    self.parts.dispatcher.used().has_queue = true;
                    return Ok(());
                }
                went_on = true;
            }
            if !went_on {
                return Ok(());
            }
        }
    }

    /// Starts a queued job; false where there is no room for it now.
    async fn start_queued(&self, job: JobRecord) -> crate::Result<bool> {
        let request: Result<JobRequest, _> = serde_json::from_str(&job.spec);
        let limits = request.as_ref().ok().and_then(|request| self.parts.worker.check(request).ok());
        let memory_bytes = limits.map_or(0, |limits| limits.memory_bytes);
        let Some(room) = self.take_room(memory_bytes, false) else { return Ok(false) };
        let event = AuditEvent {
            at_ms: now_ms(),
            kind: "job.running",
            actor: "system".to_owned(),
            resource: job.id.clone(),
            details: serde_json::json!({"worker": self.parts.instance}),
        };
        let claim = self.new_claim();
        let handle = self.parts.running.add(&job.id);
        match self.parts.store.claim(job.id.clone(), claim, event).await {
            Ok(fence) => {
                let waited = (now_ms() - job.created_at_ms).max(0) as u64;
                self.parts.metrics.phase(Phase::WaitForRoom, Duration::from_millis(waited));
                let span = tracing::info_span!(target: TRACE, "job.dispatch");
                continue_trace(&span, job.traceparent.as_deref().unwrap_or_default());
                let run =
                    || self.spawn_run(job.id, job.tenant, job.task_id, fence, request.ok(), handle, room);
                span.in_scope(run);
            }
            // Somebody was quicker, or it was cancelled meanwhile.
            Err(_) => self.parts.running.remove(&job.id),
        }
        Ok(true)
    }
}
