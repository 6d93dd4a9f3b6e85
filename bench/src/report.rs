//! Everything that was found, in the shape that is written as JSON and from which the table and the verdicts
//! are drawn.

use serde::Serialize;

use crate::args::Plan;
use crate::backends::Backends;
use crate::contestants::{Absent, Facts};
use crate::in_process::{DESTROY, Idle};
use crate::machine::Machine;
use crate::schedule::{Mode, Series};
use crate::sessions::Sessions;
use crate::stats::{Statistic, Summary};
use crate::store::Kept;
use crate::targets::Verdict;
use crate::throughput::Flow;
use crate::workload::Workload;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) load_at_end: Option<f64>,
    pub(crate) plan: Plan,
    pub(crate) contestants: Vec<Facts>,
    pub(crate) absent: Vec<Absent>,
    pub(crate) latency: Vec<Latency>,
    pub(crate) throughput: Vec<Throughput>,
    pub(crate) idle: Option<Idle>,
    /// Of the disk that the service keeps its records on.
    pub(crate) fsync: Option<Summary>,
    pub(crate) sessions: Option<Sessions>,
    pub(crate) backends: Option<Backends>,
    /// Of each engine, a store after a long life.
    pub(crate) store: Vec<Kept>,
    pub(crate) targets: Vec<Verdict>,
}

/// Figures of one contestant, or why there are none.
#[derive(Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) contestant: String,
    pub(crate) workload: Workload,
    pub(crate) mode: Mode,
    pub(crate) summary: Option<Summary>,
    /// Of the medians.
    pub(crate) ratio_to_bare: Option<f64>,
    pub(crate) ratio_to_bwrap: Option<f64>,
    pub(crate) failure: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Throughput {
    pub(crate) contestant: String,
    pub(crate) workload: Workload,
    pub(crate) in_flight: usize,
    pub(crate) completed: usize,
    pub(crate) elapsed_ns: u64,
    pub(crate) per_second: Option<f64>,
    pub(crate) ratio_to_bare: Option<f64>,
    pub(crate) ratio_to_bwrap: Option<f64>,
    pub(crate) failure: Option<String>,
}

impl Report {
    /// The figure of a contestant that was measured without a failure.
    pub(crate) fn figure(
        &self,
        of: &str,
        workload: Workload,
        mode: Mode,
        statistic: Statistic,
    ) -> Option<u64> {
        let mut rows = self.latency.iter();
        let row = rows.find(|row| row.contestant == of && row.workload == workload && row.mode == mode)?;
        Some(row.summary.as_ref()?.get(statistic))
    }

    /// The best rate of a contestant, at whatever number in flight.
    pub(crate) fn rate(&self, of: &str, workload: Workload) -> Option<f64> {
        let mine = self.throughput.iter().filter(|row| row.contestant == of && row.workload == workload);
        mine.map(|row| row.per_second).try_fold(None, |best: Option<f64>, rate| {
            let rate = rate?;
            Some(Some(best.map_or(rate, |best| best.max(rate))))
        })?
    }

    /// Those that took part and broke, with where and why.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        let latency = self.latency.iter().map(|row| (&row.contestant, &row.failure));
        let throughput = self.throughput.iter().map(|row| (&row.contestant, &row.failure));
        latency.chain(throughput).filter_map(|(name, failure)| Some((name.as_str(), failure.as_deref()?)))
    }
}

/// Rows of one race, with their ratios.
pub(crate) fn latency_rows(series: Vec<Series>, workload: Workload, mode: Mode) -> Vec<Latency> {
    let mut rows: Vec<Latency> = series
        .into_iter()
        .flat_map(with_destroys)
        .map(|series| Latency {
            summary: if series.failure.is_none() { Summary::of(&series.samples) } else { None },
            contestant: series.name,
            workload,
            mode,
            ratio_to_bare: None,
            ratio_to_bwrap: None,
            failure: series.failure,
        })
        .collect();
    let median = |row: &Latency| Some(row.summary.as_ref()?.p50_ns as f64);
    let base = |name| rows.iter().find(|row| row.contestant == name).and_then(median);
    let (bare, bwrap) = (base("bare"), base("bwrap"));
    for row in &mut rows {
        row.ratio_to_bare = ratio(median(row), bare);
        row.ratio_to_bwrap = ratio(median(row), bwrap);
    }
    rows
}

/// What was timed apart becomes a series of its own.
fn with_destroys(mut series: Series) -> impl Iterator<Item = Series> {
    let samples = std::mem::take(&mut series.destroys);
    let destroys = Series { name: DESTROY.into(), samples, destroys: Vec::new(), failure: None };
    let has_destroys = !destroys.samples.is_empty();
    [series].into_iter().chain(has_destroys.then_some(destroys))
}

/// Rows of one workload at one number in flight.
pub(crate) fn throughput_rows(
    flows: Vec<(String, Flow)>,
    workload: Workload,
    in_flight: usize,
) -> Vec<Throughput> {
    let mut rows: Vec<Throughput> = flows
        .into_iter()
        .map(|(contestant, flow)| Throughput {
            contestant,
            workload,
            in_flight,
            completed: flow.completed,
            elapsed_ns: flow.elapsed.as_nanos() as u64,
            per_second: flow.failure.is_none().then(|| flow.per_second()),
            ratio_to_bare: None,
            ratio_to_bwrap: None,
            failure: flow.failure.map(|failure| failure.to_string()),
        })
        .collect();
    let base = |name| rows.iter().find(|row| row.contestant == name).and_then(|row| row.per_second);
    let (bare, bwrap) = (base("bare"), base("bwrap"));
    for row in &mut rows {
        row.ratio_to_bare = ratio(row.per_second, bare);
        row.ratio_to_bwrap = ratio(row.per_second, bwrap);
    }
    rows
}

fn ratio(value: Option<f64>, base: Option<f64>) -> Option<f64> {
    Some(value? / base?)
}
