//! When each sample is taken. Rounds are interleaved, so that whatever else the machine does hits every
//! contestant alike; the order within a round is shuffled, and the slow ones join only as many rounds as they
//! have samples.

use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::args::Rounds;
use crate::contestant::{Entrant, Pace};
use crate::shuffle::Shuffle;

/// From one start to the next when samples are sparse: long enough for the machine to fall idle in between.
const PERIOD: Duration = Duration::from_millis(300);
/// The least idle time after a sample that used up the period.
const QUIET: Duration = Duration::from_millis(150);
/// Engines go on cleaning up after their command has returned; whoever runs next must not pay for it.
pub(crate) const SETTLE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    BackToBack,
    Sparse,
}

impl Mode {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::BackToBack => "back to back",
            Self::Sparse => "one every 300 ms",
        }
    }
}

/// What one contestant did in one race.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) samples: Vec<Duration>,
    /// Timed apart; empty for those who cannot tell.
    pub(crate) destroys: Vec<Duration>,
    /// A failed run ends the series: a time without it would flatter, a retry would hide it.
    pub(crate) failure: Option<String>,
}

/// Takes every sample of one workload in one mode.
pub(crate) fn race(
    entrants: &[Entrant<'_>],
    mode: Mode,
    rounds: Rounds,
    mut progress: impl FnMut(usize),
) -> Vec<Series> {
    let mut race = Race::new(entrants, mode);
    race.warm_up();
    for round in 0..rounds.fast {
        progress(round);
        race.round(is_due(round, rounds));
    }
    race.series
}

/// So many in a row are one's own doing: what a run leaves to be done afterwards meets the next.
const BURST: usize = 50;

/// Takes `count` samples of each, many of one in a row before the next has its turn.
pub(crate) fn bursts(entrants: &[Entrant<'_>], count: usize, mut progress: impl FnMut(usize)) -> Vec<Series> {
    let mut race = Race::new(entrants, Mode::BackToBack);
    for begun in (0..count).step_by(BURST) {
        progress(begun);
        let mut order = race.of(Pace::Fast);
        race.shuffle.apply(&mut order);
        for index in order {
            thread::sleep(SETTLE);
            for _ in begun..count.min(begun + BURST) {
                if race.series[index].failure.is_none() {
                    race.take(index);
                }
            }
        }
    }
    race.series
}

/// Spreads the slow samples evenly over the fast rounds.
fn is_due(round: usize, rounds: Rounds) -> bool {
    (round + 1) * rounds.slow / rounds.fast > round * rounds.slow / rounds.fast
}

struct Race<'a, 'b> {
    entrants: &'a [Entrant<'b>],
    mode: Mode,
    shuffle: Shuffle,
    series: Vec<Series>,
}

impl<'a, 'b> Race<'a, 'b> {
    fn new(entrants: &'a [Entrant<'b>], mode: Mode) -> Self {
        let empty = |entrant: &Entrant<'_>| Series {
            name: entrant.contestant.name().to_owned(),
            samples: Vec::new(),
            destroys: Vec::new(),
            failure: None,
        };
        Self { entrants, mode, shuffle: Shuffle::new(), series: entrants.iter().map(empty).collect() }
    }

    fn round(&mut self, slow_are_due: bool) {
        self.run_all(Pace::Fast);
        if !slow_are_due {
            return;
        }
        let ran = self.run_all(Pace::Slow);
        if ran && self.mode == Mode::BackToBack {
            thread::sleep(SETTLE);
            self.warm_up();
        }
    }

    /// One sample of everyone of that pace, in a new order. False when there was no one.
    fn run_all(&mut self, pace: Pace) -> bool {
        let mut order = self.of(pace);
        self.shuffle.apply(&mut order);
        for &index in &order {
            self.take(index);
        }
        !order.is_empty()
    }

    /// Those of that pace that are still in the race.
    fn of(&self, pace: Pace) -> Vec<usize> {
        let in_race =
            |index: &usize| self.entrants[*index].pace == pace && self.series[*index].failure.is_none();
        (0..self.entrants.len()).filter(in_race).collect()
    }

    fn take(&mut self, index: usize) {
        let series = &mut self.series[index];
        let taken = self.entrants[index].contestant.sample();
        let pause =
            PERIOD.saturating_sub(taken.as_ref().map_or(Duration::ZERO, |sample| sample.took)).max(QUIET);
        match taken {
            Ok(sample) => {
                series.samples.push(sample.took);
                series.destroys.extend(sample.destroy);
            }
            Err(failure) => series.failure = Some(format!("sample {}: {failure}", series.samples.len() + 1)),
        }
        if self.mode == Mode::Sparse {
            thread::sleep(pause);
        }
    }

    /// Runs that do not count: files into the page cache, and the processors out of idle. A failure will show
    /// in a sample.
    fn warm_up(&self) {
        for index in self.of(Pace::Fast) {
            let _ = self.entrants[index].contestant.sample();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestant::{Contestant, Sample};
    use crate::failure::{Failure, Result};
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Fake {
        name: &'static str,
        runs: AtomicUsize,
        fails_at: usize,
    }

    impl Contestant for Fake {
        fn name(&self) -> &str {
            self.name
        }

        fn sample(&self) -> Result<Sample> {
            let run = self.runs.fetch_add(1, Ordering::Relaxed);
            if run == self.fails_at {
                return Err(Failure::new("broke"));
            }
            Ok(Sample { took: Duration::from_micros(1), destroy: Some(Duration::from_micros(2)) })
        }
    }

    fn entrant(name: &'static str, pace: Pace, fails_at: usize) -> Entrant<'static> {
        Entrant { contestant: Box::new(Fake { name, runs: AtomicUsize::new(0), fails_at }), pace }
    }

    #[test]
    fn slow_rounds_are_spread_and_exact() {
        let rounds = Rounds { fast: 1_000, slow: 30 };
        let due: Vec<usize> = (0..rounds.fast).filter(|&round| is_due(round, rounds)).collect();
        assert_eq!(due.len(), 30);
        assert!(due.windows(2).all(|pair| (33..=34).contains(&(pair[1] - pair[0]))));
    }

    #[test]
    fn each_pace_gets_its_samples() {
        let entrants = [entrant("a", Pace::Fast, usize::MAX), entrant("b", Pace::Slow, usize::MAX)];
        let series = race(&entrants, Mode::BackToBack, Rounds { fast: 10, slow: 2 }, |_| ());
        assert_eq!(series.iter().map(|s| s.samples.len()).collect::<Vec<_>>(), [10, 2]);
        assert_eq!(series.iter().map(|s| s.destroys.len()).collect::<Vec<_>>(), [10, 2]);
    }

    #[test]
    fn bursts_give_each_its_samples_in_a_row() {
        let entrants = [entrant("a", Pace::Fast, usize::MAX), entrant("b", Pace::Fast, 3)];
        let series = bursts(&entrants, BURST + 1, |_| ());
        assert_eq!(series.iter().map(|s| s.samples.len()).collect::<Vec<_>>(), [BURST + 1, 3]);
        assert_eq!(series[1].failure.as_deref(), Some("sample 4: broke"));
    }

    #[test]
    fn a_failure_ends_that_series_alone() {
        let entrants = [entrant("a", Pace::Fast, 3), entrant("b", Pace::Fast, usize::MAX)];
        let series = race(&entrants, Mode::BackToBack, Rounds { fast: 5, slow: 5 }, |_| ());
        assert_eq!(series[0].failure.as_deref(), Some("sample 3: broke"));
        assert_eq!((series[0].samples.len(), series[1].samples.len()), (2, 5));
    }
}
