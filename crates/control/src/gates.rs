//! What keeps new work from being taken, found out once and not by each request: a failure closes a gate, and a
//! probe that succeeds opens it again. [`cell`] is the one table of what that means for each verb;
//! docs/degradation.md is made from it.

mod artifacts;
mod page;
mod watch;

pub use page::degradation_page;

use crate::{Control, ControlError, Result, now_ms};
use cofferdam_policy::Action;
use std::sync::atomic::{AtomicI64, Ordering};

/// What may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gate {
    /// The store can be read and takes no writes.
    StoreReadOnly,
    /// As before, for lack of room.
    StoreFull,
    StoreUnreachable,
    /// There is nobody to run a job.
    NoWorker,
    /// There is, and it cannot make sandboxes.
    BackendUnhealthy,
    /// What jobs leave cannot be kept, and what they take cannot be read.
    ArtifactsDown,
}

impl Gate {
    pub const ALL: [Self; 6] = [
        Self::StoreReadOnly,
        Self::StoreFull,
        Self::StoreUnreachable,
        Self::NoWorker,
        Self::BackendUnhealthy,
        Self::ArtifactsDown,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::StoreReadOnly => "store_read_only",
            Self::StoreFull => "store_full",
            Self::StoreUnreachable => "store_unreachable",
            Self::NoWorker => "no_worker",
            Self::BackendUnhealthy => "backend_unhealthy",
            Self::ArtifactsDown => "artifacts_down",
        }
    }

    /// For whoever asked. What the database or the kernel said is for the operator, and in the log.
    pub fn reason(self) -> &'static str {
        match self {
            Self::StoreReadOnly => "the store takes no writes",
            Self::StoreFull => "the store has no room left",
            Self::StoreUnreachable => "the store does not answer",
            Self::NoWorker => "no worker is there to run jobs",
            Self::BackendUnhealthy => "the worker cannot make sandboxes",
            Self::ArtifactsDown => "the artifact store does not answer, or takes no writes",
        }
    }
}

/// What a verb does to the store and to workers; that decides what stands in its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    /// Asks for something to be run.
    NewWork,
    /// Changes what is kept, if only by a note.
    Change,
    Read,
}

/// What needs a sandbox that is not there yet.
const NEW_WORK: [Action; 4] =
    [Action::JobCreate, Action::SessionCreate, Action::SessionResume, Action::SessionFork];

/// What is for the place of artifacts alone.
const FOR_ARTIFACTS: [Action; 2] = [Action::ArtifactCreate, Action::SnapshotCreate];

/// A verb that nobody thought of is taken for a change.
fn nature(action: Action) -> Nature {
    match action.as_str().rsplit('.').next() {
        _ if NEW_WORK.contains(&action) => Nature::NewWork,
        // Whoever reads these is noted first.
        _ if ["audit.", "receipt.", "file."].iter().any(|begin| action.as_str().starts_with(begin)) => {
            Nature::Change
        }
        Some("get" | "list" | "read" | "verify") => Nature::Read,
        _ => Nature::Change,
    }
}

/// What a request hears that cannot be served now. The code is always `unavailable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    pub retry_after_seconds: u64,
}

/// The table: what a verb answers while a gate is closed; none where it is served as always.
pub fn cell(gate: Gate, action: Action) -> Option<Refusal> {
    let refused = |retry_after_seconds| Some(Refusal { retry_after_seconds });
    match (gate, nature(action)) {
        // Probed every second; a database that was restarted is there in a few.
        (Gate::StoreUnreachable, _) => refused(2),
        (Gate::StoreReadOnly | Gate::StoreFull, Nature::NewWork | Nature::Change) => refused(10),
        (Gate::StoreReadOnly | Gate::StoreFull, Nature::Read) => None,
        (Gate::NoWorker | Gate::BackendUnhealthy, Nature::NewWork) => refused(5),
        (Gate::NoWorker | Gate::BackendUnhealthy, Nature::Change | Nature::Read) => None,
        // Nobody knows before it has run whether a job leaves something.
        (Gate::ArtifactsDown, Nature::NewWork) => refused(5),
        (Gate::ArtifactsDown, _) if FOR_ARTIFACTS.contains(&action) => refused(5),
        (Gate::ArtifactsDown, Nature::Change | Nature::Read) => None,
    }
}

/// Since when each is closed, in milliseconds; 0 where it is open.
#[derive(Debug, Default)]
pub(crate) struct Gates([AtomicI64; Gate::ALL.len()]);

impl Gates {
    pub(crate) fn closed_since_ms(&self, gate: Gate) -> Option<i64> {
        Some(self.0[gate as usize].load(Ordering::Relaxed)).filter(|since| *since != 0)
    }

    pub(crate) fn is_closed(&self, gate: Gate) -> bool {
        self.closed_since_ms(gate).is_some()
    }

    /// Whether nothing can be written, as far as is known.
    pub(crate) fn is_store_shut(&self) -> bool {
        [Gate::StoreReadOnly, Gate::StoreFull, Gate::StoreUnreachable]
            .into_iter()
            .any(|gate| self.is_closed(gate))
    }

    fn closed(&self) -> impl Iterator<Item = Gate> {
        Gate::ALL.into_iter().filter(|gate| self.is_closed(*gate))
    }

    /// Returns whether it was open.
    fn close(&self, gate: Gate) -> bool {
        let place = &self.0[gate as usize];
        place.compare_exchange(0, now_ms(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns whether it was closed.
    fn open(&self, gate: Gate) -> bool {
        self.0[gate as usize].swap(0, Ordering::Relaxed) != 0
    }
}

impl Control {
    /// The closed gates, each with the time since when.
    pub fn closed_gates(&self) -> Vec<(Gate, i64)> {
        let gates = &self.parts.gates;
        Gate::ALL.into_iter().filter_map(|gate| Some((gate, gates.closed_since_ms(gate)?))).collect()
    }

    /// Refuses what cannot be served now.
    pub(crate) fn pass_gates(&self, action: Action) -> Result<()> {
        let refused = self.parts.gates.closed().find_map(|gate| Some((gate, cell(gate, action)?)));
        refused.map_or(Ok(()), |(gate, refusal)| Err(self.refused(gate, refusal)))
    }

    /// Whoever is asked for cannot be known while the store is away.
    pub(crate) fn pass_store_gate(&self) -> Result<()> {
        match self.parts.gates.is_closed(Gate::StoreUnreachable) {
            false => Ok(()),
            true => Err(self.refused(Gate::StoreUnreachable, Refusal { retry_after_seconds: 2 })),
        }
    }

    fn refused(&self, gate: Gate, refusal: Refusal) -> ControlError {
        self.parts.metrics.refusals.one(gate.as_str());
        let since_ms = self.parts.gates.closed_since_ms(gate).unwrap_or_else(now_ms);
        ControlError::Gated { gate, since_ms, retry_after_seconds: refusal.retry_after_seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_keeps_the_time_of_its_first_failure() {
        let gates = Gates::default();
        assert!(gates.close(Gate::StoreFull));
        let since = gates.closed_since_ms(Gate::StoreFull).unwrap();
        assert!(!gates.close(Gate::StoreFull));
        assert_eq!(gates.closed_since_ms(Gate::StoreFull), Some(since));
        assert_eq!(gates.closed().collect::<Vec<_>>(), [Gate::StoreFull]);
        assert!(gates.open(Gate::StoreFull) && !gates.open(Gate::StoreFull));
    }

    #[test]
    fn new_work_is_refused_at_every_gate_and_reads_are_served_while_they_can_be() {
        for gate in Gate::ALL {
            assert!(cell(gate, Action::JobCreate).is_some(), "{gate:?}");
            for read in [Action::JobGet, Action::JobList, Action::EventList, Action::KeyList] {
                assert_eq!(cell(gate, read).is_some(), gate == Gate::StoreUnreachable, "{gate:?} {read:?}");
            }
        }
        assert_eq!(nature(Action::JobCancel), Nature::Change);
    }
}
