//! How often something took how long, in steps that are fixed when the program is built.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of latencies, in microseconds: fine where a warm start lies, up to the longest wait of a request.
pub const LATENCIES: &[u64] = &[
    50,
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    5_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
];

/// Upper bounds of how many writes share a commit.
pub const BATCH_SIZES: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256];

/// More than any list of bounds has; the rest stays unused.
const MOST: usize = 24;

#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    counts: [AtomicU64; MOST],
    sum: AtomicU64,
}

impl Histogram {
    pub fn new(bounds: &'static [u64]) -> Self {
        assert!(bounds.len() < MOST, "a histogram has at most {MOST} steps");
        Self { bounds, counts: [const { AtomicU64::new(0) }; MOST], sum: AtomicU64::new(0) }
    }

    pub fn latencies() -> Self {
        Self::new(LATENCIES)
    }

    pub fn add(&self, value: u64) {
        let step = self.bounds.partition_point(|bound| *bound < value);
        self.counts[step].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub fn time(&self, time: Duration) {
        self.add(time.as_micros() as u64);
    }

    /// Each bound with how many were at most that, then how many there were in all, and their sum.
    pub(crate) fn read(&self) -> (Vec<(u64, u64)>, u64, u64) {
        let mut total = 0;
        let mut steps = Vec::with_capacity(self.bounds.len());
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            total += count.load(Ordering::Relaxed);
            steps.push((*bound, total));
        }
        total += self.counts[self.bounds.len()].load(Ordering::Relaxed);
        (steps, total, self.sum.load(Ordering::Relaxed))
    }

    pub fn count(&self) -> u64 {
        self.read().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_counted_in_its_step_and_all_above() {
        let histogram = Histogram::new(&[1, 10]);
        for value in [0, 1, 2, 10, 11, 1000] {
            histogram.add(value);
        }
        assert_eq!(histogram.read(), (vec![(1, 2), (10, 4)], 6, 1024));
    }

    /// A figure for the documentation; it fails only where counting has become something else than an addition.
    #[test]
    fn counting_is_cheap() {
        let histogram = Histogram::latencies();
        let began = std::time::Instant::now();
        for value in 0..1_000_000u64 {
            histogram.add(std::hint::black_box(value));
        }
        let each = began.elapsed().as_nanos() / 1_000_000;
        println!("{each} ns for each value");
        assert!(each < 5_000, "{each} ns for each value");
        assert_eq!(histogram.count(), 1_000_000);
    }
}
