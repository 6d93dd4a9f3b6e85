//! How many runs a second a contestant finishes with several in flight. A window of time rather than a count,
//! since the slowest is three hundred times slower than the fastest; taken in slices, all contestants by
//! turns, so that a busy minute of the machine is not one contestant's alone.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::contestant::Entrant;
use crate::failure::{Failure, Result};
use crate::schedule::SETTLE;
use crate::shuffle::Shuffle;

/// One alone, one for each core of a small machine, and more than it has.
pub(crate) const IN_FLIGHT: [usize; 3] = [1, 2, 8];

/// Few enough that a slice still holds several runs of the slowest.
const SLICES: u32 = 4;

#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub(crate) completed: usize,
    pub(crate) elapsed: Duration,
    pub(crate) failure: Option<Failure>,
}

impl Flow {
    pub(crate) fn per_second(&self) -> f64 {
        self.completed as f64 / self.elapsed.as_secs_f64()
    }

    fn add(&mut self, slice: Self) {
        self.completed += slice.completed;
        self.elapsed += slice.elapsed;
        self.failure = self.failure.take().or(slice.failure);
    }
}

/// Flows at one number in flight, in the order of the entrants. Each gets `window` in all; a failure ends it.
pub(crate) fn race(
    entrants: &[Entrant<'_>],
    in_flight: usize,
    window: Duration,
    mut progress: impl FnMut(&str),
) -> Vec<(String, Flow)> {
    let mut shuffle = Shuffle::new();
    let mut order: Vec<usize> = (0..entrants.len()).collect();
    let empty = |entrant: &Entrant<'_>| (entrant.contestant.name().to_owned(), Flow::default());
    let mut flows: Vec<(String, Flow)> = entrants.iter().map(empty).collect();
    for _ in 0..SLICES {
        shuffle.apply(&mut order);
        for &index in &order {
            let (name, flow) = &mut flows[index];
            if flow.failure.is_none() {
                progress(name);
                flow.add(entrants[index].contestant.flow(in_flight, window / SLICES));
                thread::sleep(SETTLE);
            }
        }
    }
    flows
}

/// Each thread runs at least once, and again until the window closes. The time until the last of them is done
/// counts, so that no run is counted in part.
pub(crate) fn on_threads(run: &(dyn Fn() -> Result<()> + Sync), in_flight: usize, window: Duration) -> Flow {
    let completed = AtomicUsize::new(0);
    let stopped = AtomicBool::new(false);
    let failure = Mutex::new(None);
    let start = Instant::now();
    let work = || {
        loop {
            match run() {
                Ok(()) => {
                    completed.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    stopped.store(true, Ordering::Relaxed);
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
            if stopped.load(Ordering::Relaxed) || start.elapsed() >= window {
                break;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..in_flight {
            scope.spawn(work);
        }
    });
    Flow {
        completed: completed.into_inner(),
        elapsed: start.elapsed(),
        failure: failure.into_inner().unwrap_or_else(PoisonError::into_inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestant::{Contestant, Pace, Sample};

    struct Sleeper(Duration);

    impl Contestant for Sleeper {
        fn name(&self) -> &str {
            "sleeper"
        }

        fn sample(&self) -> Result<Sample> {
            if self.0.is_zero() {
                return Err(Failure::new("broke"));
            }
            thread::sleep(self.0);
            Ok(self.0.into())
        }
    }

    #[test]
    fn every_started_run_is_finished_and_counted() {
        let flow = Sleeper(Duration::from_millis(30)).flow(4, Duration::from_millis(20));
        assert_eq!(flow.completed, 4);
        assert!(flow.elapsed >= Duration::from_millis(30));
    }

    #[test]
    fn a_failure_stops_it() {
        let flow = Sleeper(Duration::ZERO).flow(2, Duration::from_secs(60));
        assert_eq!(flow.failure, Some(Failure::new("broke")));
    }

    #[test]
    fn slices_add_up_and_a_failure_is_kept() {
        let entrant =
            |ms| Entrant { contestant: Box::new(Sleeper(Duration::from_millis(ms))), pace: Pace::Fast };
        let flows = race(&[entrant(5), entrant(0)], 1, Duration::from_millis(4), |_| ());
        assert_eq!(flows[0].1.completed, SLICES as usize);
        assert!(flows[0].1.elapsed >= Duration::from_millis(20));
        assert_eq!(flows[1].1.failure, Some(Failure::new("broke")));
    }
}
