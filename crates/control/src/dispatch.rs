//! When kept jobs run, and how many at once: never more than the worker has room for, and never more of a tenant's
//! than it may have. Which of them is next is decided in `fair`.

use crate::fair::{Amount, Fairness, Ticket, Waiting};
use crate::quota::Quotas;
use crate::worker::Capacity;
use crate::{Control, Phase, now_ms};
use cofferdam_api::JobRequest;
use cofferdam_store::{AuditEvent, Claim, JobRecord};
use cofferdam_telemetry::{TRACE, continue_trace};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How often the queue is looked at without being told to.
const SWEEP: Duration = Duration::from_secs(1);

/// Room on the worker.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    capacity: Amount,
    state: Mutex<State>,
    pub(crate) changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    used: Amount,
    tenants: HashMap<String, Amount>,
    fairness: Fairness,
    /// Whether a job waits for room: then nobody may go past it.
    has_queue: bool,
    /// Tenants whose jobs wait for their own to end: only they may not go past them.
    at_quota: HashSet<String>,
    /// How many that have just come were sent to the queue.
    sent_to_queue: u64,
}

/// A part of the worker's room, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    parts: Arc<crate::Parts>,
    tenant: String,
    needs: Amount,
    ticket: Ticket,
}

impl Drop for Room {
    fn drop(&mut self) {
        let dispatcher = &self.parts.dispatcher;
        {
            let mut state = dispatcher.state();
            state.used = state.used.minus(self.needs);
            state.fairness.ended(self.ticket);
            if let Some(own) = state.tenants.get_mut(&self.tenant) {
                *own = own.minus(self.needs);
                if own.slots == 0 {
                    state.tenants.remove(&self.tenant);
                }
            }
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
        let capacity = Amount { slots: capacity.slots as u64, memory_bytes: capacity.memory_bytes };
        Self { capacity, state: Mutex::default(), changed: Notify::new() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a job does not start now.
enum Full {
    /// The tenant has as many as it may.
    Quota,
    Room,
}

impl State {
    /// Takes room for a job, or says what is missing.
    fn take(
        &mut self,
        capacity: Amount,
        tenant: &str,
        job: &str,
        needs: Amount,
        quotas: &Quotas,
    ) -> Result<Ticket, Full> {
        let own = self.tenants.get(tenant).copied().unwrap_or_default();
        if own.slots >= quotas.max_running {
            return Err(Full::Quota);
        }
        if !self.used.plus(needs).fits(capacity) || !self.fairness.may_start(capacity, job, needs) {
            return Err(Full::Room);
        }
        self.used = self.used.plus(needs);
        self.tenants.insert(tenant.to_owned(), own.plus(needs));
        Ok(self.fairness.started(tenant, job, needs))
    }
}

impl Control {
    /// Takes room for a job that has just come, if there is any and nobody else waits for it.
    pub(crate) fn take_room(
        &self,
        tenant: &str,
        job: &str,
        memory_bytes: u64,
        quotas: &Quotas,
    ) -> Option<Room> {
        if self.parts.is_draining.load(Ordering::Relaxed) {
            return None;
        }
        let dispatcher = &self.parts.dispatcher;
        let mut state = dispatcher.state();
        if state.has_queue || state.at_quota.contains(tenant) {
            state.sent_to_queue += 1;
            return None;
        }
        let needs = Amount::job(memory_bytes);
        match state.take(dispatcher.capacity, tenant, job, needs, quotas) {
            Ok(ticket) => Some(self.room(tenant, needs, ticket)),
            Err(Full::Quota) => {
                state.at_quota.insert(tenant.to_owned());
                state.sent_to_queue += 1;
                None
            }
            Err(Full::Room) => {
                state.has_queue = true;
                state.sent_to_queue += 1;
                None
            }
        }
    }

    fn room(&self, tenant: &str, needs: Amount, ticket: Ticket) -> Room {
        Room { parts: Arc::clone(&self.parts), tenant: tenant.to_owned(), needs, ticket }
    }

    /// The slots and the memory that are taken.
    pub(crate) fn room_used(&self) -> (u64, u64) {
        let used = self.parts.dispatcher.state().used;
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
            let mut heads = Heads::default();
            loop {
                // An error here is the store's: the queue is still there in a second.
                let _ = control.dispatch(&mut heads).await;
                let _ = tokio::time::timeout(SWEEP, control.parts.dispatcher.changed.notified()).await;
            }
        });
    }

    /// Starts what can be started. Of each tenant that waits only the oldest job is looked at, and of that only what
    /// it needs is remembered, so a long queue costs no more than a short one.
    async fn dispatch(&self, heads: &mut Heads) -> crate::Result<()> {
        let seen = self.parts.dispatcher.state().sent_to_queue;
        let mut waiting = Vec::new();
        for (tenant, oldest) in self.parts.store.waiting_tenants().await? {
            // It may have been cancelled since it was looked at.
            heads.0.retain(|known, head| *known != tenant || head.job == oldest);
            waiting.extend(self.head(heads, &tenant).await?);
        }
        heads.keep_only(&waiting);
        self.parts.dispatcher.state().fairness.keep_only(&waiting);
        while !self.is_draining() {
            let Some((at, room)) = self.choose(&mut waiting, seen).await? else { return Ok(()) };
            let Waiting { tenant, job, .. } = waiting.swap_remove(at);
            heads.forget(&tenant);
            if let Some(job) = self.parts.store.job(&tenant, &job).await? {
                self.start_queued(job, room).await;
                self.parts.tenants.started(&tenant, Instant::now());
            }
            waiting.extend(self.head(heads, &tenant).await?);
        }
        Ok(())
    }

    /// The job that is next and may start, with room for it. Where there is none, notes who waits for what.
    async fn choose(&self, waiting: &mut [Waiting], seen: u64) -> crate::Result<Option<(usize, Room)>> {
        let mut quotas = Vec::with_capacity(waiting.len());
        for next in &*waiting {
            quotas.push(self.quotas(&next.tenant).await?);
        }
        let dispatcher = &self.parts.dispatcher;
        let mut state = dispatcher.state();
        for next in waiting.iter_mut() {
            next.running = state.tenants.get(&next.tenant).copied().unwrap_or_default();
        }
        let (mut passed, mut at_quota) = (Vec::new(), HashSet::new());
        for at in state.fairness.order(dispatcher.capacity, waiting) {
            let next = &waiting[at];
            match state.take(dispatcher.capacity, &next.tenant, &next.job, next.needs, &quotas[at]) {
                Ok(ticket) => {
                    passed.iter().for_each(|&at: &usize| state.fairness.passed_over(&waiting[at]));
                    return Ok(Some((at, self.room(&next.tenant, next.needs, ticket))));
                }
                Err(Full::Quota) => drop(at_quota.insert(next.tenant.clone())),
                Err(Full::Room) => passed.push(at),
            }
        }
        // Whoever was sent to the queue since it was read is not seen here. Until the next look nobody goes past.
        if state.sent_to_queue == seen {
            (state.has_queue, state.at_quota) = (!passed.is_empty(), at_quota);
        } else {
            state.has_queue = true;
        }
        Ok(None)
    }

    /// A tenant's oldest waiting job, and what it needs.
    async fn head(&self, heads: &mut Heads, tenant: &str) -> crate::Result<Option<Waiting>> {
        if let Some(head) = heads.0.get(tenant) {
            return Ok(Some(head.clone()));
        }
        let Some(job) = self.parts.store.queued_of(tenant, 1).await?.into_iter().next() else {
            return Ok(None);
        };
        let request: Option<JobRequest> = serde_json::from_str(&job.spec).ok();
        let limits = request.and_then(|request| self.parts.worker.check(&request).ok());
        let needs = Amount::job(limits.map_or(0, |limits| limits.memory_bytes));
        let head = Waiting { tenant: tenant.to_owned(), job: job.id, needs, running: Amount::default() };
        heads.0.insert(tenant.to_owned(), head.clone());
        Ok(Some(head))
    }

    /// Starts a queued job in the room that was taken for it.
    async fn start_queued(&self, job: JobRecord, room: Room) {
        let request: Result<JobRequest, _> = serde_json::from_str(&job.spec);
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
    }
}

/// What the oldest waiting job of each tenant needs, so that it is read once and not at every look.
#[derive(Debug, Default)]
struct Heads(HashMap<String, Waiting>);

impl Heads {
    fn forget(&mut self, tenant: &str) {
        self.0.remove(tenant);
    }

    fn keep_only(&mut self, waiting: &[Waiting]) {
        self.0.retain(|tenant, _| waiting.iter().any(|other| other.tenant == *tenant));
    }
}
