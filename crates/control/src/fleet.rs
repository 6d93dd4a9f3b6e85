//! The workers that this process knows, and what it has given to each. What other processes have given to them, the
//! store knows: it refuses a claim that would be too much.

use crate::fair::Amount;
use crate::image_shelves::Shelf;
use crate::placement::{Candidate, Demand, could_place, place};
use crate::session_worker::SessionFailure;
use crate::worker::{Capacity, Connector, Health, Offer, Worker, WorkerCounts};
use cofferdam_store::{WorkerRecord, WorkerRoom};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How often a worker says that it is there.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// A worker that missed two is out.
pub(crate) const OUT_AFTER_MS: i64 = 10_000;

/// After a claim that the store refused, others' jobs are given some time to end.
const FULL_FOR: Duration = Duration::from_millis(200);

/// One that was not taken by a worker goes to another, while there is one.
const UNWILLING_FOR: Duration = Duration::from_secs(2);

const NOTHING: Capacity = Capacity { slots: 0, cpus_millis: 0, memory_bytes: 0 };

pub(crate) struct Fleet {
    members: Mutex<Vec<Member>>,
    remote: Option<Arc<dyn Connector>>,
    /// Something may fit now that did not before.
    pub(crate) changed: Notify,
}

#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) id: String,
    /// None for the one in this process.
    pub(crate) url: Option<String>,
    pub(crate) offer: Offer,
    pub(crate) used: Capacity,
    /// What sessions of other processes take of it, as it was last seen.
    others: Capacity,
    pub(crate) is_draining: bool,
    pub(crate) silent_ms: i64,
    /// Why it cannot make sandboxes, by its own word.
    pub(crate) problem: Option<String>,
    worker: Arc<dyn Worker>,
    avoided_until: Option<Instant>,
}

impl Member {
    pub(crate) fn is_out(&self) -> bool {
        self.url.is_some() && self.silent_ms > OUT_AFTER_MS
    }

    /// Whether it takes work, as far as it says.
    fn is_willing(&self) -> bool {
        !self.is_out() && !self.is_draining && self.problem.is_none()
    }

    pub(crate) fn state(&self) -> &'static str {
        match (self.is_out(), self.is_draining, &self.problem) {
            (true, _, _) => "out",
            (false, true, _) => "draining",
            (false, false, Some(_)) => "unhealthy",
            (false, false, None) => "ready",
        }
    }

    fn candidate(&self) -> Candidate<'_> {
        let is_avoided = self.avoided_until.is_some_and(|until| Instant::now() < until);
        let is_open = self.is_willing() && !is_avoided;
        let (used, others) = (self.used, self.others);
        let used = Capacity {
            slots: used.slots.saturating_add(others.slots),
            cpus_millis: used.cpus_millis.saturating_add(others.cpus_millis),
            memory_bytes: used.memory_bytes.saturating_add(others.memory_bytes),
        };
        Candidate { offer: &self.offer, used, is_open }
    }
}

/// A part of a worker's room, given back when it is dropped.
pub(crate) struct Room {
    fleet: Arc<Fleet>,
    pub(crate) worker_id: String,
    pub(crate) worker: Arc<dyn Worker>,
    /// All that the worker has, where others give it work, too.
    pub(crate) shared: Option<WorkerRoom>,
    part: Capacity,
}

impl Drop for Room {
    fn drop(&mut self) {
        {
            let mut members = self.fleet.members();
            if let Some(member) = members.iter_mut().find(|member| member.id == self.worker_id) {
                member.used.slots -= self.part.slots;
                member.used.cpus_millis -= self.part.cpus_millis;
                member.used.memory_bytes -= self.part.memory_bytes;
            }
        }
        self.fleet.changed.notify_one();
    }
}

impl Fleet {
    pub(crate) fn new(
        local: Option<(String, Arc<dyn Worker>, Offer)>,
        remote: Option<Arc<dyn Connector>>,
    ) -> Self {
        let member = local.map(|(id, worker, offer)| Member {
            id,
            url: None,
            offer,
            used: NOTHING,
            others: NOTHING,
            is_draining: false,
            silent_ms: 0,
            problem: None,
            worker,
            avoided_until: None,
        });
        Self { members: Mutex::new(member.into_iter().collect()), remote, changed: Notify::new() }
    }

    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn takes_others(&self) -> bool {
        self.remote.is_some()
    }

    /// Takes over what the store knows of workers elsewhere.
    pub(crate) fn refresh(&self, records: Vec<WorkerRecord>) {
        let Some(remote) = &self.remote else { return };
        let mut members = self.members();
        for record in &records {
            let offer = offer(record);
            match members.iter_mut().find(|member| member.id == record.id) {
                Some(member) => {
                    if member.url.as_deref() != Some(&record.url) {
                        member.worker = remote.connect(&record.id, &record.url);
                        member.url = Some(record.url.clone());
                    }
                    member.offer = offer;
                    member.is_draining = record.is_draining;
                    member.silent_ms = record.silent_ms;
                    member.problem.clone_from(&record.problem);
                }
                None => members.push(Member {
                    id: record.id.clone(),
                    url: Some(record.url.clone()),
                    offer,
                    used: NOTHING,
                    others: NOTHING,
                    is_draining: record.is_draining,
                    silent_ms: record.silent_ms,
                    problem: record.problem.clone(),
                    worker: remote.connect(&record.id, &record.url),
                    avoided_until: None,
                }),
            }
        }
        // Whoever still has something of ours is remembered until it has not.
        members.retain(|member| {
            member.url.is_none()
                || member.used.slots > 0
                || records.iter().any(|record| record.id == member.id)
        });
        for member in members.iter_mut().filter(|member| member.url.is_some()) {
            if !records.iter().any(|record| record.id == member.id) {
                member.silent_ms = i64::MAX;
            }
        }
    }

    /// Takes room for a job anywhere but on one worker, if there is any.
    pub(crate) fn take(self: &Arc<Self>, demand: &Demand, but: Option<&str>) -> Option<Room> {
        self.take_where(demand, |member| but != Some(&member.id))
    }

    /// Takes room for a job on one worker, if there is any.
    pub(crate) fn take_on(self: &Arc<Self>, id: &str, demand: &Demand) -> Option<Room> {
        self.take_where(demand, |member| member.id == id)
    }

    fn take_where(self: &Arc<Self>, demand: &Demand, may: impl Fn(&Member) -> bool) -> Option<Room> {
        let mut members = self.members();
        let candidate = |member| {
            let candidate = Member::candidate(member);
            Candidate { is_open: candidate.is_open && may(member), ..candidate }
        };
        let candidates: Vec<_> = members.iter().map(candidate).collect();
        let at = place(demand, &candidates)?;
        Some(self.part_of(&mut members[at], demand))
    }

    /// The worker on which room is kept free for a job: the same as before while it suits, else the one with the
    /// least on it.
    pub(crate) fn reserve(&self, demand: &Demand, before: Option<&str>) -> Option<String> {
        let members = self.members();
        let suits = |member: &&Member| member.is_willing() && could_place(demand, &[member.candidate()]);
        let fit = || members.iter().filter(suits);
        let same = fit().find(|member| before == Some(&member.id));
        same.or_else(|| fit().min_by_key(|member| member.used.slots)).map(|member| member.id.clone())
    }

    /// All that a worker has.
    pub(crate) fn whole_of(&self, id: &str) -> Amount {
        let members = self.members();
        members
            .iter()
            .find(|member| member.id == id)
            .map(|member| amount(member.offer.capacity))
            .unwrap_or_default()
    }

    /// All that there is.
    pub(crate) fn whole(&self) -> Amount {
        let members = self.members();
        let there = members.iter().filter(|member| !member.is_out());
        there.fold(Amount::default(), |sum, member| sum.plus(amount(member.offer.capacity)))
    }

    /// Takes room on one worker for what runs there already.
    pub(crate) fn take_at(self: &Arc<Self>, id: &str, demand: &Demand) -> Option<Room> {
        let mut members = self.members();
        let member = members.iter_mut().find(|member| member.id == id && member.url.is_some())?;
        if member.is_out() {
            return None;
        }
        Some(self.part_of(member, demand))
    }

    fn part_of(self: &Arc<Self>, member: &mut Member, demand: &Demand) -> Room {
        let part = Capacity { slots: 1, cpus_millis: demand.cpus_millis, memory_bytes: demand.memory_bytes };
        member.used.slots += part.slots;
        member.used.cpus_millis += part.cpus_millis;
        member.used.memory_bytes += part.memory_bytes;
        let all = member.offer.capacity;
        let shared = member.url.as_ref().map(|_| WorkerRoom {
            slots: signed(all.slots),
            cpus_millis: signed(all.cpus_millis),
            memory_bytes: signed(all.memory_bytes),
        });
        let (worker_id, worker) = (member.id.clone(), Arc::clone(&member.worker));
        Room { fleet: Arc::clone(self), worker_id, worker, shared, part }
    }

    /// The way to a worker that was heard of, whether or not it is there just now.
    pub(crate) fn known(&self, id: &str) -> Option<Arc<dyn Worker>> {
        let members = self.members();
        members.iter().find(|member| member.id == id).map(|member| Arc::clone(&member.worker))
    }

    pub(crate) fn is_there(&self, id: &str) -> bool {
        self.members().iter().any(|member| member.id == id && !member.is_out())
    }

    /// Notes what sessions of other processes take of each worker elsewhere.
    pub(crate) fn note_others(&self, others: &HashMap<String, Capacity>) {
        for member in self.members().iter_mut().filter(|member| member.url.is_some()) {
            member.others = others.get(&member.id).copied().unwrap_or(NOTHING);
        }
    }

    /// The store said that others have taken what looked free.
    pub(crate) fn mark_full(&self, id: &str) {
        self.avoid(id, FULL_FOR);
    }

    /// A worker did not take a job, or could not be reached.
    pub(crate) fn mark_unwilling(&self, id: &str) {
        self.avoid(id, UNWILLING_FOR);
    }

    /// The same for a session that could not be made elsewhere, where that is not the request's fault.
    pub(crate) fn mark_unwilling_if(&self, id: &str, failure: &SessionFailure) {
        let is_elsewhere = self.members().iter().any(|member| member.id == id && member.url.is_some());
        if is_elsewhere && !["invalid", "unsupported", "files"].contains(&failure.code.as_str()) {
            self.mark_unwilling(id);
        }
    }

    fn avoid(&self, id: &str, time: Duration) {
        if let Some(member) = self.members().iter_mut().find(|member| member.id == id) {
            member.avoided_until = Some(Instant::now() + time);
        }
    }

    /// Whether anybody is there at all.
    pub(crate) fn has_open(&self) -> bool {
        self.members().iter().any(Member::is_willing)
    }

    /// Whether a job could ever run on a worker that is there.
    pub(crate) fn could_fit(&self, demand: &Demand) -> bool {
        let members = self.members();
        let there = members.iter().filter(|member| !member.is_out());
        could_place(demand, &there.map(Member::candidate).collect::<Vec<_>>())
    }

    /// Whether work can be given to anybody. Workers elsewhere say so by their heartbeats; the one here is asked.
    pub(crate) async fn health(&self) -> Health {
        match self.local() {
            Some(worker) => worker.health().await,
            None if self.has_open() => Health::Ready,
            // One that would take work, if it could: that is to be mended, and not to be started.
            None => self.problem().map_or(Health::NoWorker, Health::BackendUnhealthy),
        }
    }

    fn problem(&self) -> Option<String> {
        let members = self.members();
        let there = members.iter().filter(|member| !member.is_out() && !member.is_draining);
        there.into_iter().find_map(|member| member.problem.clone())
    }

    /// What the pool of this process has done.
    pub(crate) fn counts(&self) -> WorkerCounts {
        self.local().map(|worker| worker.counts()).unwrap_or_default()
    }

    pub(crate) fn local(&self) -> Option<Arc<dyn Worker>> {
        let members = self.members();
        members.iter().find(|member| member.url.is_none()).map(|member| Arc::clone(&member.worker))
    }

    /// The workers that may have images: the one here, and those that say which they have.
    pub(crate) fn shelves(&self) -> Vec<Shelf> {
        let members = self.members();
        let there = members
            .iter()
            .filter(|member| member.url.is_none() || (member.is_willing() && member.offer.images.is_some()));
        let shelf = |member: &Member| Shelf {
            worker: Arc::clone(&member.worker),
            images: member.offer.images.clone(),
        };
        there.map(shelf).collect()
    }

    /// What this process has given out, on all workers together.
    pub(crate) fn used(&self) -> Amount {
        self.members().iter().fold(Amount::default(), |sum, member| sum.plus(amount(member.used)))
    }

    pub(crate) fn list(&self) -> Vec<Member> {
        self.members().clone()
    }
}

fn amount(capacity: Capacity) -> Amount {
    let Capacity { slots, cpus_millis, memory_bytes } = capacity;
    Amount { slots, cpus_millis, memory_bytes }
}

/// The store's numbers have a sign; none of these is anywhere near it.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn offer(record: &WorkerRecord) -> Offer {
    let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
    Offer {
        labels: serde_json::from_str(&record.labels).unwrap_or_default(),
        backends: record.backends.split_whitespace().map(str::to_owned).collect(),
        images: record.images.as_ref().map(|all| all.split_whitespace().map(str::to_owned).collect()),
        capacity: Capacity {
            slots: unsigned(record.room.slots),
            cpus_millis: unsigned(record.room.cpus_millis),
            memory_bytes: unsigned(record.room.memory_bytes),
        },
    }
}
