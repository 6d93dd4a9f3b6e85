//! Who answers for a running job: what a renewal means for the runs of this process, and what becomes of a job that
//! nobody renews.

use crate::Running;
use std::time::Duration;

/// What the store said to a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renewed {
    /// It has renewed them all, but for these: they are somebody else's by now.
    But(Vec<(String, i64)>),
    /// It did not answer. For so long nothing was renewed.
    Unanswered { since: Duration },
}

/// Tells the runs of this process what came of renewing them, each named with its fence. `is_alone` says that no other
/// process could have given them up.
pub fn renewed(running: &Running, jobs: &[(String, i64)], said: &Renewed, lease: Duration, is_alone: bool) {
    for job in jobs {
        let Some(handle) = running.claimed_by(&job.0, job.1) else { continue };
        match said {
            Renewed::But(refused) if refused.contains(job) => handle.take_away(),
            Renewed::But(_) => handle.renew(),
            // From here on somebody else may have given them up.
            Renewed::Unanswered { since } if *since >= lease * 2 && !is_alone => handle.take_away(),
            Renewed::Unanswered { .. } => {}
        }
    }
}

/// A running job whose lease is over, as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'f> {
    pub id: &'f str,
    /// Who should have renewed it.
    pub owner: &'f str,
    /// Where it runs: the owner itself, or a worker of its own.
    pub worker: &'f str,
    /// How long the lease is over. None where its owner is known to be gone.
    pub over_ms: Option<i64>,
}

/// What whoever looks knows of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimes {
    pub lease_ms: i64,
    /// What the two sides' clocks and calls may differ by.
    pub margin_ms: i64,
    /// A worker is out when it was not heard of for so long.
    pub out_after_ms: i64,
    /// How long whoever looks has been there.
    pub there_for: Duration,
}

/// What becomes of a job that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is ours, and renewed as soon as the store lets us.
    Ours,
    /// Its run may go on at its worker: whoever can reach that takes it over. Where nobody can, `give_up` says whether
    /// it was waited for long enough.
    Elsewhere {
        give_up: bool,
    },
    Wait,
    GiveUp,
}

/// Says what becomes of a job that nobody renews. An owner that is known to be gone has left nothing in its own
/// process; what may still run elsewhere has its time to end.
pub fn verdict(running: &Running, own: &str, found: Found<'_>, times: LeaseTimes) -> Verdict {
    let Found { id, owner, worker, over_ms } = found;
    if owner == own && running.get(id).is_some() {
        return Verdict::Ours;
    }
    let is_here = worker == owner;
    let is_known_gone = over_ms.is_none();
    let is_gone = is_here && (is_known_gone || owner == own);
    let patience_ms = times.lease_ms + times.margin_ms + if is_here { 0 } else { times.out_after_ms };
    let is_over = over_ms.is_some_and(|over_ms| over_ms > patience_ms);
    let lease = Duration::from_millis(times.lease_ms.unsigned_abs());
    let has_waited = is_known_gone && times.there_for > lease * 3;
    let give_up = is_gone || is_over || has_waited;
    match (is_here, give_up) {
        (false, give_up) => Verdict::Elsewhere { give_up },
        (true, true) => Verdict::GiveUp,
        (true, false) => Verdict::Wait,
    }
}
