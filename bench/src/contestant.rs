//! The seam between what is timed and how often: the scheduler knows contestants only by this trait, so one
//! that lives inside this process races on the same terms as a whole command.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::failure::Result;
use crate::throughput::{self, Flow};

/// One way of running one workload. `Sync`, because throughput is measured with several samples in flight.
pub(crate) trait Contestant: Sync {
    fn name(&self) -> &str;

    /// Runs the workload once and says how long it took. A run that did not end as it should is an error,
    /// never a time.
    fn sample(&self) -> Result<Sample>;

    /// Runs the workload until the window closes, with several in flight. Every run that was started is
    /// finished, and the time until then counts.
    fn flow(&self, in_flight: usize, window: Duration) -> Flow {
        throughput::on_threads(&|| self.sample().map(drop), in_flight, window)
    }
}

impl<C: Contestant + ?Sized> Contestant for &C {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn sample(&self) -> Result<Sample> {
        (**self).sample()
    }

    fn flow(&self, in_flight: usize, window: Duration) -> Flow {
        (**self).flow(in_flight, window)
    }
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) took: Duration,
    /// What came after the answer and is no part of it, timed apart: only of those who can tell.
    pub(crate) destroy: Option<Duration>,
}

impl From<Duration> for Sample {
    fn from(took: Duration) -> Self {
        Self { took, destroy: None }
    }
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
