//! Gives the kept jobs to workers, in their order: never more than a worker has room for.

use crate::fleet::Room;
use crate::jobs::{Attempt, demand};
use crate::placement::Demand;
use crate::{Control, now_ms};
use cofferdam_api::JobRequest;
use cofferdam_store::{AuditEvent, Claim, JobRecord, StoreError};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often the queue is looked at without being told to.
const SWEEP: Duration = Duration::from_secs(1);

/// As many queued jobs as are looked at in one go.
const LOOK: i64 = 64;

/// Where jobs that want a certain worker are waiting, others are looked for behind them, up to here.
const MOST_LOOK: i64 = 4096;

/// What became of a queued job.
enum Placed {
    /// It runs, or somebody else was quicker.
    Gone,
    NoRoom {
        /// It wants certain workers, so others may go past it.
        is_picky: bool,
    },
}

impl Control {
    /// Takes room for a job, if there is any and nobody else waits for it.
    pub(crate) fn take_room(&self, demand: &Demand, is_new: bool) -> Option<Room> {
        let parts = &self.parts;
        if parts.is_draining.load(Ordering::Relaxed) {
            return None;
        }
        // A new one goes past nobody: what wants certain workers is always queued, where its order is known.
        if is_new && (parts.has_queue.load(Ordering::Relaxed) || !demand.labels.is_empty()) {
            return None;
        }
        let room = parts.fleet.take(demand);
        if room.is_none() && is_new {
            parts.has_queue.store(true, Ordering::Relaxed);
        }
        room
    }

    pub(crate) fn new_claim(&self, room: &Room) -> Claim {
        Claim {
            owner: self.parts.instance.clone(),
            worker: room.worker_id.clone(),
            lease_ms: self.lease_ms(),
            room: room.shared,
        }
    }

    /// Starts the task that gives queued jobs to workers, for as long as the process lives.
    pub(crate) fn spawn_dispatch(&self) {
        let control = self.clone();
        tokio::spawn(async move {
            loop {
                // An error here is the store's: the queue is still there in a second.
                let _ = control.dispatch().await;
                let _ = tokio::time::timeout(SWEEP, control.parts.fleet.changed.notified()).await;
            }
        });
    }

    async fn dispatch(&self) -> crate::Result<()> {
        let (mut tried, mut look) = (HashSet::new(), LOOK);
        loop {
            self.parts.has_queue.store(false, Ordering::Relaxed);
            let queued = self.parts.store.queued(look).await?;
            let is_all = (queued.len() as i64) < look;
            let mut went_on = false;
            for job in queued {
                if !tried.insert(job.id.clone()) {
                    continue;
                }
                went_on = true;
                match self.start_queued(job).await? {
                    Placed::Gone | Placed::NoRoom { is_picky: true } => {}
                    Placed::NoRoom { is_picky: false } => {
                        self.parts.has_queue.store(true, Ordering::Relaxed);
                        return Ok(());
                    }
                }
            }
            if !went_on {
                if is_all || look >= MOST_LOOK {
                    return Ok(());
                }
                look *= 2;
            }
        }
    }

    async fn start_queued(&self, job: JobRecord) -> crate::Result<Placed> {
        let request: Option<JobRequest> = serde_json::from_str(&job.spec).ok();
        let demand = self.demand_of(request.as_ref());
        loop {
            let Some(room) = self.take_room(&demand, false) else {
                return Ok(Placed::NoRoom { is_picky: !demand.labels.is_empty() });
            };
            let event = AuditEvent {
                at_ms: now_ms(),
                kind: "job.running",
                actor: "system".to_owned(),
                resource: job.id.clone(),
                details: serde_json::json!({"worker": room.worker_id, "attempt": job.starts + 1}),
            };
            let claim = self.new_claim(&room);
            let handle = self.parts.running.add(&job.id);
            match self.parts.store.claim(job.id.clone(), claim, event).await {
                Ok(fence) => {
                    let attempt = job.starts + 1;
                    let JobRecord { id, tenant, task_id, .. } = job;
                    let is_begun = false;
                    self.spawn_run(Attempt {
                        id,
                        tenant,
                        task_id,
                        fence,
                        attempt,
                        request,
                        handle,
                        room,
                        is_begun,
                    });
                    return Ok(Placed::Gone);
                }
                Err(StoreError::Full { worker }) => {
                    self.parts.running.remove(&job.id);
                    self.parts.fleet.mark_full(&worker);
                }
                // Somebody was quicker, or it was cancelled meanwhile.
                Err(_) => {
                    self.parts.running.remove(&job.id);
                    return Ok(Placed::Gone);
                }
            }
        }
    }

    /// What a kept job wants. One that cannot be read any more wants nothing, and will end with the reason.
    pub(crate) fn demand_of(&self, request: Option<&JobRequest>) -> Demand {
        let limits = request.and_then(|request| self.parts.checker.check(request).ok());
        match (request, limits) {
            (Some(request), Some(limits)) => demand(request, &limits),
            _ => {
                Demand { labels: BTreeMap::new(), backend: "native".into(), cpus_millis: 0, memory_bytes: 0 }
            }
        }
    }
}
