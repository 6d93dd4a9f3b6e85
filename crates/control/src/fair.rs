//! Which job is next. Pure: it is told what waits and what runs, and says in which order to try; where a job goes, and
//! whether there is room, is somebody else's.
//!
//! - The tenant with the smallest share of the machine is next; of equals, the one that was served longest ago. So one
//!   tenant's thousands do not delay another's first job by more than it takes until anything ends.
//! - A tenant's own jobs go in their order.
//! - A job for which there is no room is passed over, so it does not block others. When that has happened
//!   [`PATIENCE`] times, room is held for it: what starts from then on goes into what it leaves free, and it starts at
//!   the latest when everything that ran before has ended. Of several workers it is held on one that suits the job.

use std::collections::{HashMap, HashSet};

/// So often a job is passed over before room is held for it.
pub(crate) const PATIENCE: u32 = 8;

/// Tenants that are remembered; beyond that, those that nobody has seen for the longest are forgotten.
const REMEMBERED: usize = 10_000;

/// A part of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) slots: u64,
    pub(crate) cpus_millis: u64,
    pub(crate) memory_bytes: u64,
}

impl Amount {
    pub(crate) fn job(cpus_millis: u64, memory_bytes: u64) -> Self {
        Self { slots: 1, cpus_millis, memory_bytes }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            slots: self.slots.saturating_add(other.slots),
            cpus_millis: self.cpus_millis.saturating_add(other.cpus_millis),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
        }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            slots: self.slots.saturating_sub(other.slots),
            cpus_millis: self.cpus_millis.saturating_sub(other.cpus_millis),
            memory_bytes: self.memory_bytes.saturating_sub(other.memory_bytes),
        }
    }

    pub(crate) fn fits(self, whole: Self) -> bool {
        self.slots <= whole.slots
            && self.cpus_millis <= whole.cpus_millis
            && self.memory_bytes <= whole.memory_bytes
    }

    /// The largest of the parts of the whole, in parts of 2^32.
    fn share(self, whole: Self) -> u128 {
        let part = |own: u64, whole: u64| (u128::from(own) << 32) / u128::from(whole.max(1));
        part(self.slots, whole.slots)
            .max(part(self.cpus_millis, whole.cpus_millis))
            .max(part(self.memory_bytes, whole.memory_bytes))
    }
}

/// The oldest waiting job of a tenant, and what the tenant has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) tenant: String,
    pub(crate) job: String,
    pub(crate) needs: Amount,
    pub(crate) running: Amount,
}

/// Room that is held for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    job: String,
    needs: Amount,
    /// What has started since and still runs.
    besides: Amount,
}

/// Given to a job that starts, and back when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    needs: Amount,
    /// During which hold it started; zero for none.
    hold: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Fairness {
    turns: HashMap<String, u64>,
    turn: u64,
    /// How often a job was passed over.
    passed: HashMap<String, u32>,
    held: Option<Held>,
    hold: u64,
}

impl Fairness {
    /// The order in which to try, as places in `waiting`.
    pub(crate) fn order(&self, capacity: Amount, waiting: &[Waiting]) -> Vec<usize> {
        let mut places: Vec<usize> = (0..waiting.len()).collect();
        places.sort_by_key(|&at| {
            let Waiting { tenant, job, running, .. } = &waiting[at];
            let is_held = self.held.as_ref().is_some_and(|held| held.job == *job);
            let turn = self.turns.get(tenant).copied().unwrap_or(0);
            (!is_held, running.share(capacity), turn, tenant.clone())
        });
        places
    }

    /// Whether a job may start now, so far as another is waiting for room.
    pub(crate) fn may_start(&self, capacity: Amount, job: &str, needs: Amount) -> bool {
        match &self.held {
            Some(held) if held.job != job => held.besides.plus(needs).fits(capacity.minus(held.needs)),
            _ => true,
        }
    }

    /// Notes a start.
    pub(crate) fn started(&mut self, tenant: &str, job: &str, needs: Amount) -> Ticket {
        self.note_turn(tenant, job);
        match &mut self.held {
            Some(held) if held.job == job => {
                self.held = None;
                Ticket { needs, hold: 0 }
            }
            Some(held) => {
                held.besides = held.besides.plus(needs);
                Ticket { needs, hold: self.hold }
            }
            None => Ticket { needs, hold: 0 },
        }
    }

    /// Notes a start where it is in nobody's way.
    pub(crate) fn started_aside(&mut self, tenant: &str, job: &str, needs: Amount) -> Ticket {
        self.note_turn(tenant, job);
        Ticket { needs, hold: 0 }
    }

    fn note_turn(&mut self, tenant: &str, job: &str) {
        self.turn += 1;
        self.turns.insert(tenant.to_owned(), self.turn);
        self.passed.remove(job);
        if self.turns.len() > REMEMBERED {
            let old = self.turn - REMEMBERED as u64 / 2;
            self.turns.retain(|_, turn| *turn > old);
        }
    }

    /// The job that room is held for.
    pub(crate) fn held_job(&self) -> Option<&str> {
        self.held.as_ref().map(|held| held.job.as_str())
    }

    /// Notes the end of what was started with a ticket.
    pub(crate) fn ended(&mut self, ticket: Ticket) {
        if let Some(held) = &mut self.held
            && ticket.hold == self.hold
        {
            held.besides = held.besides.minus(ticket.needs);
        }
    }

    /// Notes that it was a job's turn, and another was started because there was no room for this one.
    pub(crate) fn passed_over(&mut self, waiting: &Waiting) {
        let Waiting { job, needs, .. } = waiting;
        let count = self.passed.entry(job.clone()).or_default();
        *count += 1;
        if *count >= PATIENCE && self.held.is_none() {
            self.hold += 1;
            self.held = Some(Held { job: job.clone(), needs: *needs, besides: Amount::default() });
        }
    }

    /// Forgets what was held for jobs that wait no more, such as one that was cancelled.
    pub(crate) fn keep_only(&mut self, waiting: &[Waiting]) {
        if self.held.as_ref().is_some_and(|held| waiting.iter().all(|other| other.job != held.job)) {
            self.held = None;
        }
        let jobs: HashSet<&str> = waiting.iter().map(|other| other.job.as_str()).collect();
        self.passed.retain(|job, _| jobs.contains(job.as_str()));
    }
}

#[cfg(test)]
#[path = "fair_tests.rs"]
mod tests;
