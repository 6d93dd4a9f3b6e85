//! When kept jobs run, where, and how many at once: never more than a worker has room for, and never more of a tenant's
//! than it may have. Which of them is next is decided in `fair`, and which worker it goes to in `placement`.

use crate::fair::{Amount, Fairness, Ticket, Waiting};
use crate::fleet::{self, Fleet, signed};
use crate::jobs::{Attempt, demand};
use crate::placement::Demand;
use crate::quota::Quotas;
use crate::{Control, Phase, now_ms};
use cofferdam_api::JobRequest;
use cofferdam_store::{AuditEvent, Claim, JobRecord, StoreError};
use cofferdam_telemetry::{TRACE, continue_trace};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often the queue is looked at without being told to.
const SWEEP: Duration = Duration::from_secs(1);

/// Where a tenant's oldest job wants certain workers, others are looked for behind it, so many at first.
const LOOK: i64 = 64;

/// And so many at most.
const MOST_LOOK: i64 = 4096;

/// Who has what, and who waits.
#[derive(Debug, Default)]
pub(crate) struct Dispatcher {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tenants: HashMap<String, Amount>,
    fairness: Fairness,
    /// The worker on which room is held.
    reserved: Option<String>,
    /// Whether a job waits for room: then nobody may go past it.
    has_queue: bool,
    /// Tenants whose jobs wait for their own to end: only they may not go past them.
    at_quota: HashSet<String>,
    /// How many that have just come were sent to the queue.
    sent_to_queue: u64,
}

/// A part of a worker's room, given back when it is dropped.
pub(crate) struct Room {
    parts: Arc<crate::Parts>,
    tenant: String,
    needs: Amount,
    /// None for what was begun by another process.
    ticket: Option<Ticket>,
    /// How many the tenant may have, as it was when this was taken.
    most_running: u64,
    /// On the worker. It is dropped last, and tells that there is room.
    pub(crate) at: fleet::Room,
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut state = self.parts.dispatcher.state();
        if let Some(ticket) = self.ticket {
            state.fairness.ended(ticket);
        }
        if let Some(own) = state.tenants.get_mut(&self.tenant) {
            *own = own.minus(self.needs);
            if own.slots == 0 {
                state.tenants.remove(&self.tenant);
            }
        }
    }
}

impl std::fmt::Debug for crate::Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("instance", &self.instance).finish_non_exhaustive()
    }
}

/// The tenant has as many sandboxes as it may.
pub(crate) fn over_running(quotas: &Quotas) -> crate::ControlError {
    let (most, retry_after) = (quotas.max_running, Duration::from_secs(1));
    crate::ControlError::OverQuota { quota: "max_running", most, retry_after }
}

impl Dispatcher {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a job does not start now.
enum Full {
    /// The tenant has as many as it may.
    Quota,
    Room,
}

fn needs(demand: &Demand) -> Amount {
    Amount::job(demand.cpus_millis, demand.memory_bytes)
}

impl State {
    /// Takes room for a job, or says what is missing.
    fn take(
        &mut self,
        fleet: &Arc<Fleet>,
        tenant: &str,
        job: &str,
        demand: &Demand,
        quotas: &Quotas,
    ) -> Result<(Ticket, fleet::Room), Full> {
        let own = self.tenants.get(tenant).copied().unwrap_or_default();
        if own.slots >= quotas.max_running {
            return Err(Full::Quota);
        }
        let needs = needs(demand);
        let is_others = self.fairness.held_job().is_some_and(|held| held != job);
        let reserved = self.reserved.as_deref().filter(|_| is_others);
        let (ticket, room) = match (fleet.take(demand, reserved), reserved) {
            (Some(room), Some(_)) => (self.fairness.started_aside(tenant, job, needs), room),
            (Some(room), None) => (self.fairness.started(tenant, job, needs), room),
            // Only into what the one that waits leaves free.
            (None, Some(worker)) if self.fairness.may_start(fleet.whole_of(worker), job, needs) => {
                let room = fleet.take_on(worker, demand).ok_or(Full::Room)?;
                (self.fairness.started(tenant, job, needs), room)
            }
            (None, _) => return Err(Full::Room),
        };
        self.tenants.insert(tenant.to_owned(), own.plus(needs));
        Ok((ticket, room))
    }
}

/// A job that waits, and what it wants.
#[derive(Debug, Clone)]
struct Head {
    waiting: Waiting,
    demand: Demand,
}

impl Head {
    /// It wants certain workers, so others may go past it.
    fn is_picky(&self) -> bool {
        !self.demand.labels.is_empty()
    }
}

impl Control {
    /// Takes room for a job that has just come, if there is any and nobody else waits for it.
    pub(crate) fn take_room(
        &self,
        tenant: &str,
        job: &str,
        demand: &Demand,
        quotas: &Quotas,
    ) -> Option<Room> {
        if self.parts.is_draining.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.parts.dispatcher.state();
        // What wants certain workers is always queued, where its order is known.
        if state.has_queue || state.at_quota.contains(tenant) || !demand.labels.is_empty() {
            state.sent_to_queue += 1;
            return None;
        }
        match state.take(&self.parts.fleet, tenant, job, demand, quotas) {
            Ok((ticket, at)) => Some(self.room(tenant, demand, ticket, quotas, at)),
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

    /// Takes room for a session, now or not at all: nobody wants one that comes later. Whoever waits is not passed.
    pub(crate) fn take_session_room(
        &self,
        tenant: &str,
        session: &str,
        demand: &Demand,
        quotas: &Quotas,
    ) -> crate::Result<Room> {
        let mut state = self.parts.dispatcher.state();
        let taken = match state.has_queue {
            true => Err(Full::Room),
            false => state.take(&self.parts.fleet, tenant, session, demand, quotas),
        };
        match taken {
            Ok((ticket, at)) => Ok(self.room(tenant, demand, ticket, quotas, at)),
            Err(Full::Quota) => Err(over_running(quotas)),
            Err(Full::Room) => {
                let why = "no worker has room for another session now";
                Err(crate::ControlError::Unavailable(why.to_owned()))
            }
        }
    }

    fn room(&self, tenant: &str, demand: &Demand, ticket: Ticket, quotas: &Quotas, at: fleet::Room) -> Room {
        Room {
            parts: Arc::clone(&self.parts),
            tenant: tenant.to_owned(),
            needs: needs(demand),
            ticket: Some(ticket),
            most_running: quotas.max_running,
            at,
        }
    }

    /// The room of a job that runs already. It counts as its tenant's, whatever that may have.
    pub(crate) fn room_taken_over(&self, tenant: &str, demand: &Demand, at: fleet::Room) -> Room {
        let needs = needs(demand);
        let mut state = self.parts.dispatcher.state();
        let own = state.tenants.entry(tenant.to_owned()).or_default();
        *own = own.plus(needs);
        let (parts, tenant) = (Arc::clone(&self.parts), tenant.to_owned());
        Room { parts, tenant, needs, ticket: None, most_running: u64::MAX, at }
    }

    pub(crate) fn new_claim(&self, room: &Room) -> Claim {
        let is_shared = room.at.shared.is_some();
        Claim {
            owner: self.parts.instance.clone(),
            worker: room.at.worker_id.clone(),
            lease_ms: self.lease_ms(),
            room: room.at.shared,
            // Where others start jobs, too, what was counted here is not all.
            most_running: is_shared.then(|| signed(room.most_running)),
        }
    }

    /// Starts the task that gives queued jobs to workers, for as long as the process lives.
    pub(crate) fn spawn_dispatch(&self) {
        let control = self.clone();
        tokio::spawn(async move {
            let mut heads = Heads::default();
            loop {
                // An error here is the store's: the queue is still there in a second.
                let _ = control.dispatch(&mut heads).await;
                let _ = tokio::time::timeout(SWEEP, control.parts.fleet.changed.notified()).await;
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
            heads.0.retain(|known, head| *known != tenant || head.waiting.job == oldest);
            waiting.extend(self.heads(heads, &tenant).await?);
        }
        heads.keep_only(&waiting);
        self.keep_holds(&waiting);
        while !self.is_draining() {
            let Some((at, room)) = self.choose(&mut waiting, seen).await? else { return Ok(()) };
            let Head { waiting: Waiting { tenant, job, .. }, demand } = waiting.swap_remove(at);
            heads.0.remove(&tenant);
            waiting.retain(|head| head.waiting.tenant != tenant);
            let has_moved = match self.parts.store.job(&tenant, &job).await? {
                None => true,
                Some(job) => {
                    self.parts.tenants.started(&tenant, Instant::now());
                    self.start_queued(job, &demand, room).await?
                }
            };
            // One that could not be started after all is tried again at the next look.
            if has_moved {
                waiting.extend(self.heads(heads, &tenant).await?);
            }
        }
        Ok(())
    }

    /// Forgets what was held or counted for jobs that wait no more, or that no worker that is there could run.
    fn keep_holds(&self, waiting: &[Head]) {
        let fleet = &self.parts.fleet;
        let has_worker = |head: &&Head| fleet.reserve(&head.demand, None).is_some();
        let kept: Vec<Waiting> = waiting.iter().filter(has_worker).map(|head| head.waiting.clone()).collect();
        self.parts.dispatcher.state().fairness.keep_only(&kept);
    }

    /// The job that is next and may start, with room for it. Where there is none, notes who waits for what.
    async fn choose(&self, waiting: &mut [Head], seen: u64) -> crate::Result<Option<(usize, Room)>> {
        let mut quotas = Vec::with_capacity(waiting.len());
        for next in &*waiting {
            quotas.push(self.quotas(&next.waiting.tenant).await?);
        }
        let fleet = &self.parts.fleet;
        let mut state = self.parts.dispatcher.state();
        let mut plain = Vec::with_capacity(waiting.len());
        for next in waiting.iter_mut() {
            next.waiting.running = state.tenants.get(&next.waiting.tenant).copied().unwrap_or_default();
            plain.push(next.waiting.clone());
        }
        let held = waiting.iter().find(|next| state.fairness.held_job() == Some(&next.waiting.job));
        state.reserved = held.and_then(|next| fleet.reserve(&next.demand, state.reserved.as_deref()));
        let (mut passed, mut at_quota) = (Vec::new(), HashSet::new());
        for at in state.fairness.order(fleet.whole(), &plain) {
            let Head { waiting: next, demand } = &waiting[at];
            match state.take(fleet, &next.tenant, &next.job, demand, &quotas[at]) {
                Ok((ticket, room)) => {
                    for at in passed {
                        let Head { waiting: other, demand }: &Head = &waiting[at];
                        // Room for what nobody there can run would be held for nothing.
                        if fleet.reserve(demand, None).is_some() {
                            state.fairness.passed_over(other);
                        }
                    }
                    return Ok(Some((at, self.room(&next.tenant, demand, ticket, &quotas[at], room))));
                }
                Err(Full::Quota) => drop(at_quota.insert(next.tenant.clone())),
                Err(Full::Room) => passed.push(at),
            }
        }
        // Whoever was sent to the queue since it was read is not seen here. Until the next look nobody goes past.
        if state.sent_to_queue == seen {
            let is_full = passed.iter().any(|&at| !waiting[at].is_picky());
            (state.has_queue, state.at_quota) = (is_full, at_quota);
        } else {
            state.has_queue = true;
        }
        Ok(None)
    }

    /// A tenant's oldest waiting job, and what it needs. Where that wants certain workers, also the oldest of each
    /// other wish behind it, up to the first that has none.
    async fn heads(&self, heads: &mut Heads, tenant: &str) -> crate::Result<Vec<Head>> {
        if let Some(head) = heads.0.get(tenant) {
            return Ok(vec![head.clone()]);
        }
        let mut look = 1;
        loop {
            let queued = self.parts.store.queued_of(tenant, look).await?;
            let is_all = (queued.len() as i64) < look;
            let mut found: Vec<Head> = Vec::new();
            for job in queued {
                let head = self.head(job);
                let is_last = !head.is_picky();
                if found.iter().all(|other| other.demand.labels != head.demand.labels) {
                    found.push(head);
                }
                if is_last {
                    // What is only behind others is not remembered: these may go before it, or away.
                    if let [only] = found.as_slice() {
                        heads.0.insert(tenant.to_owned(), only.clone());
                    }
                    return Ok(found);
                }
            }
            if is_all || look >= MOST_LOOK {
                return Ok(found);
            }
            look = (look * 2).max(LOOK);
        }
    }

    fn head(&self, job: JobRecord) -> Head {
        let request: Option<JobRequest> = serde_json::from_str(&job.spec).ok();
        let demand = self.demand_of(request.as_ref());
        let (tenant, needs) = (job.tenant, needs(&demand));
        Head { waiting: Waiting { tenant, job: job.id, needs, running: Amount::default() }, demand }
    }

    /// Starts a queued job in the room that was taken for it. Says whether it is in the queue no more.
    async fn start_queued(&self, job: JobRecord, demand: &Demand, mut room: Room) -> crate::Result<bool> {
        loop {
            let attempt = job.starts + 1;
            let event = AuditEvent {
                at_ms: now_ms(),
                kind: "job.running",
                actor: "system".to_owned(),
                resource: job.id.clone(),
                details: serde_json::json!({"worker": room.at.worker_id, "attempt": attempt}),
            };
            let claim = self.new_claim(&room);
            let handle = self.parts.running.add(&job.id);
            match self.parts.store.claim(job.id.clone(), claim, event).await {
                Ok(fence) => {
                    let waited = (now_ms() - job.created_at_ms).max(0) as u64;
                    self.parts.metrics.phase(Phase::WaitForRoom, Duration::from_millis(waited));
                    let span = tracing::info_span!(target: TRACE, "job.dispatch");
                    continue_trace(&span, job.traceparent.as_deref().unwrap_or_default());
                    let request: Option<JobRequest> = serde_json::from_str(&job.spec).ok();
                    let JobRecord { id, tenant, task_id, .. } = job;
                    let is_begun = false;
                    let attempt =
                        Attempt { id, tenant, task_id, fence, attempt, request, handle, room, is_begun };
                    span.in_scope(|| self.spawn_run(attempt));
                    return Ok(true);
                }
                // Others' jobs have taken what looked free: another worker may have room.
                Err(StoreError::Full { worker }) => {
                    self.parts.running.remove(&job.id, &handle);
                    self.parts.fleet.mark_full(&worker);
                    drop(room);
                    let quotas = self.quotas(&job.tenant).await?;
                    let taken = {
                        let mut state = self.parts.dispatcher.state();
                        state.take(&self.parts.fleet, &job.tenant, &job.id, demand, &quotas)
                    };
                    match taken {
                        Ok((ticket, at)) => room = self.room(&job.tenant, demand, ticket, &quotas, at),
                        Err(_) => return Ok(false),
                    }
                }
                Err(error) => {
                    self.parts.running.remove(&job.id, &handle);
                    // Otherwise somebody was quicker, or it was cancelled meanwhile.
                    return Ok(!matches!(error, StoreError::AtQuota { .. } | StoreError::Failed(_)));
                }
            }
        }
    }

    /// What a kept job wants. One that cannot be read any more wants nothing, and will end with the reason.
    pub(crate) fn demand_of(&self, request: Option<&JobRequest>) -> Demand {
        let limits = request.and_then(|request| self.parts.checker.check(request).ok());
        match (request, limits) {
            (Some(request), Some(limits)) => demand(request, &limits),
            _ => Demand { backend: "native".into(), ..Demand::default() },
        }
    }
}

/// What the oldest waiting job of each tenant needs, so that it is read once and not at every look.
#[derive(Debug, Default)]
struct Heads(HashMap<String, Head>);

impl Heads {
    fn keep_only(&mut self, waiting: &[Head]) {
        self.0.retain(|tenant, _| waiting.iter().any(|other| other.waiting.tenant == *tenant));
    }
}
