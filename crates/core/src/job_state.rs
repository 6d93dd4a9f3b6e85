//! Where a job stands, and where it can go from there.

use crate::{JobResult, Outcome, Verdict};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A job's state. It only moves forward, and out of a final one never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It is kept, and will be looked at.
    Accepted,
    /// It waits for room on a worker.
    Queued,
    /// A worker has it.
    Running,
    /// Its process exited with 0.
    Succeeded,
    /// Its process ended otherwise, by itself.
    Failed,
    TimedOut,
    Cancelled,
    /// Stopped during the run, by a rule.
    Denied,
    /// Its time to start, or to be kept waiting, was over.
    Expired,
    /// Its worker went away: nobody knows how far it came.
    Lost,
    /// It could not be run, through no fault of its own.
    Errored,
}

impl JobState {
    pub const ALL: [Self; 11] = [
        Self::Accepted,
        Self::Queued,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::Denied,
        Self::Expired,
        Self::Lost,
        Self::Errored,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Lost => "lost",
            Self::Errored => "errored",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    pub fn is_final(self) -> bool {
        !matches!(self, Self::Accepted | Self::Queued | Self::Running)
    }

    /// Whether a job may go from this state to that. A running one goes back to the queue only by a retry.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Accepted => next == Self::Queued || next == Self::Running || next.is_final(),
            Self::Queued => next == Self::Running || (next.is_final() && !next.needs_a_process()),
            Self::Running => next == Self::Queued || next.is_final(),
            _ => false,
        }
    }

    /// Whether only a process that ran can end so.
    fn needs_a_process(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::TimedOut | Self::Denied | Self::Lost)
    }

    /// The state of a job with this result. A process that ended well has not succeeded where its report says otherwise,
    /// or does not say that it has.
    pub fn of_result(result: &JobResult) -> Self {
        let is_doubted = result.report.as_ref().is_some_and(|report| report.verdict != Verdict::Passed);
        match Self::of(&result.outcome) {
            Self::Succeeded if is_doubted => Self::Failed,
            state => state,
        }
    }

    /// The state of a job whose process ended like this.
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Exited { code: 0 } => Self::Succeeded,
            Outcome::Exited { .. } | Outcome::Signaled { .. } | Outcome::OomKilled => Self::Failed,
            Outcome::TimedOut => Self::TimedOut,
            Outcome::Cancelled { .. } => Self::Cancelled,
            Outcome::Denied { .. } => Self::Denied,
            Outcome::Expired => Self::Expired,
            Outcome::Lost => Self::Lost,
            Outcome::Failed { .. } => Self::Errored,
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for state in JobState::ALL {
            assert_eq!(JobState::from_name(state.as_str()), Some(state));
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("{:?}", state.as_str()));
        }
        assert_eq!(JobState::from_name("done"), None);
    }

    #[test]
    fn nothing_leaves_a_final_state_and_nothing_is_accepted_again() {
        for state in JobState::ALL {
            assert!(!state.may_become(JobState::Accepted));
            for next in JobState::ALL {
                assert!(!(state.is_final() && state.may_become(next)), "{state} to {next}");
            }
        }
        assert!(JobState::Queued.may_become(JobState::Running));
        assert!(JobState::Queued.may_become(JobState::Cancelled));
        assert!(!JobState::Queued.may_become(JobState::Succeeded));
        assert!(!JobState::Queued.may_become(JobState::Lost));
    }

    #[test]
    fn outcomes_decide_the_state() {
        assert_eq!(JobState::of(&Outcome::Exited { code: 0 }), JobState::Succeeded);
        assert_eq!(JobState::of(&Outcome::Exited { code: 1 }), JobState::Failed);
        assert_eq!(JobState::of(&Outcome::OomKilled), JobState::Failed);
        assert_eq!(JobState::of(&Outcome::Lost), JobState::Lost);
    }
}
