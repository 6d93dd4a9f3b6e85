//! Who answers for a running job. Its owner renews the lease in the store; a sweep looks for jobs that nobody renews,
//! and takes them over where their run goes on, or gives them up.
//!
//! A run is ended by whoever has it when its lease was not renewed for twice its length, and is given up by others only
//! after that. So two attempts at a job run at once only where whoever has the first cannot act at all, because its
//! process is stopped; and even then the first writes nothing any more.

use crate::dispatch::Room;
use crate::fleet::OUT_AFTER_MS;
use crate::jobs::{Attempt, give_up};
use crate::{Control, now_ms};
use cofferdam_api::{JobRequest, RetryCause};
use cofferdam_store::{Abandoned, JobRecord};
use cofferdam_turns::{Found, LeaseTimes, Renewed, Verdict, renewed, verdict};
use std::time::{Duration, Instant};

/// How often the store is looked at for what is due.
const SWEEP: Duration = Duration::from_secs(1);

/// So many at a time; the rest comes a second later.
const LOOK: i64 = 256;

/// What the two sides' clocks and calls may differ by before a run is given up.
const MARGIN_MS: i64 = 1_000;

/// Workers that were not heard of for so long are forgotten.
const FORGET_MS: i64 = 3_600_000;

impl Control {
    pub(crate) fn lease_ms(&self) -> i64 {
        self.parts.settings.lease.as_millis() as i64
    }

    /// Starts the task that renews what runs here, for as long as the process lives.
    pub(crate) fn spawn_renewals(&self) {
        let control = self.clone();
        tokio::spawn(async move {
            let every = control.parts.settings.lease / 3;
            let mut last = Instant::now();
            loop {
                tokio::time::sleep(every).await;
                control.renew(every, &mut last).await;
            }
        });
    }

    async fn renew(&self, every: Duration, last: &mut Instant) {
        // A store that is gone keeps others from taking this process for gone, too.
        let _ = self.say_that_it_is_there().await;
        // What is younger than the period has a lease for longer than until the next one.
        let jobs = self.parts.running.claimed(every);
        let since = last.elapsed();
        if jobs.is_empty() {
            *last = Instant::now();
            return;
        }
        let said = match self.parts.store.renew(jobs.clone(), self.lease_ms()).await {
            Ok(refused) => {
                *last = Instant::now();
                Renewed::But(jobs.iter().filter(|(id, _)| refused.contains(id)).cloned().collect())
            }
            Err(_) => Renewed::Unanswered { since },
        };
        let (lease, is_alone) = (self.parts.settings.lease, self.parts.settings.node.is_alone);
        renewed(&self.parts.running, &jobs, &said, lease, is_alone);
    }

    /// Starts the task that looks for what is due, for as long as the process lives.
    pub(crate) fn spawn_due(&self) {
        let control = self.clone();
        tokio::spawn(async move {
            let mut count = 0u64;
            loop {
                // An error here is the store's: what is due is still due in a second.
                let _ = control.attend_due().await;
                if control.parts.fleet.takes_others() {
                    let _ = control.attend_sessions().await;
                }
                if control.parts.fleet.takes_others() && count.is_multiple_of(600) {
                    let _ = control.parts.store.forget_workers(FORGET_MS).await;
                }
                count += 1;
                tokio::time::sleep(SWEEP).await;
            }
        });
    }

    /// Looks which workers there are elsewhere.
    pub(crate) async fn refresh_fleet(&self) -> crate::Result<()> {
        let parts = &self.parts;
        if parts.fleet.takes_others() {
            parts.fleet.refresh(parts.store.workers(FORGET_MS).await?);
        }
        Ok(())
    }

    pub(crate) async fn attend_due(&self) -> crate::Result<()> {
        let parts = &self.parts;
        if parts.fleet.takes_others() {
            self.refresh_fleet().await?;
            // Whoever sees a worker in the list may give it work.
            self.note_worker(parts.fleet.health().await);
            parts.fleet.changed.notify_one();
        }
        parts.store.expire_queued(now_ms()).await?;
        for (id, by) in parts.store.cancelled_of(&parts.instance).await? {
            if let Some(handle) = parts.running.get(&id) {
                handle.cancel.send_if_modified(|known| {
                    let is_news = known.is_none();
                    known.get_or_insert(by);
                    is_news
                });
            }
        }
        // Whoever is about to stop takes nothing over.
        let abandoned = if self.is_draining() { Vec::new() } else { parts.store.abandoned(LOOK).await? };
        for abandoned in abandoned {
            self.settle(abandoned).await?;
        }
        Ok(())
    }

    /// Takes over a job that nobody renews, or gives it up.
    async fn settle(&self, abandoned: Abandoned) -> crate::Result<()> {
        let Abandoned { job, over_ms } = abandoned;
        let owner = job.owner.clone().unwrap_or_default();
        let worker = job.worker.clone().unwrap_or_default();
        let found = Found {
            id: &job.id,
            owner: &owner,
            worker: &worker,
            over_ms: (job.lease_until_ms != Some(0)).then_some(over_ms),
        };
        let times = LeaseTimes {
            lease_ms: self.lease_ms(),
            margin_ms: MARGIN_MS,
            out_after_ms: OUT_AFTER_MS,
            there_for: self.parts.began.elapsed(),
        };
        let verdict = verdict(&self.parts.running, &self.parts.instance, found, times);
        if let Verdict::Elsewhere { .. } = verdict {
            let request: Option<JobRequest> = serde_json::from_str(&job.spec).ok();
            let demand = self.demand_of(request.as_ref());
            if let Some(at) = self.parts.fleet.take_at(&worker, &demand) {
                let room = self.room_taken_over(&job.tenant, &demand, at);
                return self.take_over(job, request, room).await;
            }
        }
        if matches!(verdict, Verdict::GiveUp | Verdict::Elsewhere { give_up: true }) {
            let (given_up, event) =
                give_up(&job, RetryCause::Lost, "worker_gone", "its worker went away while it ran");
            // Somebody else may have been quicker.
            let _ = self.parts.store.give_up(given_up, Vec::new(), event).await;
            self.parts.fleet.changed.notify_one();
        }
        Ok(())
    }

    async fn take_over(&self, job: JobRecord, request: Option<JobRequest>, room: Room) -> crate::Result<()> {
        let handle = self.parts.running.add(&job.id);
        let fence = match self.parts.store.adopt(&job, self.parts.instance.clone(), self.lease_ms()).await {
            Ok(fence) => fence,
            Err(_) => {
                self.parts.running.remove(&job.id, &handle);
                return Ok(());
            }
        };
        if let Some(by) = &job.cancelled_by {
            handle.cancel.send_replace(Some(by.clone()));
        }
        let JobRecord { id, tenant, task_id, starts: attempt, .. } = job;
        self.spawn_run(Attempt {
            id,
            tenant,
            task_id,
            fence,
            attempt,
            request,
            handle,
            room,
            is_begun: true,
        });
        Ok(())
    }
}
