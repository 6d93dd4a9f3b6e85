//! The seam between what is timed and how often: the scheduler knows contestants only by this trait, so one
//! that lives inside this process races on the same terms as a whole command.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::failure::Result;

/// One way of running one workload. `Sync`, because throughput is measured with several samples in flight.
pub(crate) trait Contestant: Sync {
    fn name(&self) -> &str;

    /// Runs the workload once and says how long it took. A run that did not end as it should is an error,
    /// never a time.
    fn sample(&self) -> Result<Duration>;
}

/// How many samples a contestant can afford: a run of the slow ones costs a hundred of the fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Pace {
    Fast,
    Slow,
}

/// A contestant in one race.
pub(crate) struct Entrant<'a> {
    pub(crate) contestant: Box<dyn Contestant + 'a>,
    pub(crate) pace: Pace,
}

impl fmt::Debug for Entrant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.contestant.name(), self.pace)
    }
}
