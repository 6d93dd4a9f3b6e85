//! Figures drawn from samples. Owns the definitions (nearest-rank percentiles, population deviation), so that
//! every table and target means the same by "p99".

use std::time::Duration;

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Summary {
    pub(crate) samples: usize,
    pub(crate) min_ns: u64,
    pub(crate) p50_ns: u64,
    pub(crate) p90_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) max_ns: u64,
    pub(crate) mean_ns: u64,
    pub(crate) deviation_ns: u64,
}

/// Which figure a target compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "targets are data: any of the figures may be named there")]
pub(crate) enum Statistic {
    P50,
    P99,
    Mean,
}

impl Statistic {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Mean => "mean",
        }
    }
}

impl Summary {
    /// None for no samples: there is no figure to give.
    pub(crate) fn of(samples: &[Duration]) -> Option<Self> {
        let mut sorted: Vec<u64> = samples.iter().map(|d| d.as_nanos() as u64).collect();
        sorted.sort_unstable();
        let (min_ns, max_ns) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len() as f64;
        let mean = sorted.iter().map(|&ns| ns as f64).sum::<f64>() / count;
        let variance = sorted.iter().map(|&ns| (ns as f64 - mean).powi(2)).sum::<f64>() / count;
        Some(Self {
            samples: sorted.len(),
            min_ns,
            p50_ns: percentile(&sorted, 50),
            p90_ns: percentile(&sorted, 90),
            p99_ns: percentile(&sorted, 99),
            max_ns,
            mean_ns: mean.round() as u64,
            deviation_ns: variance.sqrt().round() as u64,
        })
    }

    pub(crate) fn get(&self, statistic: Statistic) -> u64 {
        match statistic {
            Statistic::P50 => self.p50_ns,
            Statistic::P99 => self.p99_ns,
            Statistic::Mean => self.mean_ns,
        }
    }
}

/// Nearest rank: the smallest sample that at least `percent` of all do not exceed. `sorted` must not be
/// empty.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(values: impl IntoIterator<Item = u64>) -> Vec<Duration> {
        values.into_iter().map(Duration::from_micros).collect()
    }

    #[test]
    fn no_samples_have_no_summary() {
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn one_sample_is_every_figure() {
        let summary = Summary::of(&micros([7])).unwrap();
        for statistic in [Statistic::P50, Statistic::P99, Statistic::Mean] {
            assert_eq!(summary.get(statistic), 7_000);
        }
        assert_eq!((summary.min_ns, summary.max_ns, summary.deviation_ns), (7_000, 7_000, 0));
    }

    #[test]
    fn percentiles_are_by_nearest_rank_whatever_the_order() {
        let summary = Summary::of(&micros((1..=1000).rev())).unwrap();
        assert_eq!(summary.p50_ns, 500_000);
        assert_eq!(summary.p90_ns, 900_000);
        assert_eq!(summary.p99_ns, 990_000);
        assert_eq!(summary.max_ns, 1_000_000);
    }

    #[test]
    fn p99_of_few_samples_is_their_maximum() {
        assert_eq!(Summary::of(&micros(1..=99)).unwrap().p99_ns, 99_000);
    }

    #[test]
    fn median_of_an_even_count_is_the_lower_middle() {
        assert_eq!(Summary::of(&micros([1, 2, 3, 100])).unwrap().p50_ns, 2_000);
    }

    #[test]
    fn one_outlier_moves_the_mean_and_not_the_median() {
        let summary = Summary::of(&micros([10, 10, 10, 10, 60])).unwrap();
        assert_eq!((summary.p50_ns, summary.mean_ns, summary.deviation_ns), (10_000, 20_000, 20_000));
    }
}
