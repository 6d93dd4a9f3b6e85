//! What the product promises, as data, and whether this run kept it.

use serde::Serialize;

use crate::report::Report;
use crate::schedule::Mode;
use crate::stats::Statistic;
use crate::workload::Workload;

/// `contestant` takes at most `max_ratio` times what `against` takes.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) contestant: &'static str,
    pub(crate) against: &'static str,
    pub(crate) workload: Workload,
    pub(crate) mode: Mode,
    pub(crate) statistic: Statistic,
    pub(crate) max_ratio: f64,
}

/// Both modes: a busy loop hides what an idle machine makes a first request wait for.
pub(crate) const TARGETS: [Target; 2] = [
    Target {
        name: "whole command, busy",
        contestant: "cofferdam",
        against: "bwrap",
        workload: Workload::True,
        mode: Mode::BackToBack,
        statistic: Statistic::P50,
        max_ratio: 1.0,
    },
    Target {
        name: "whole command, idle",
        contestant: "cofferdam",
        against: "bwrap",
        workload: Workload::True,
        mode: Mode::Sparse,
        statistic: Statistic::P50,
        max_ratio: 1.0,
    },
];

#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) target: Target,
    pub(crate) ratio: Option<f64>,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Met,
    Missed,
    /// `--only` left one of the two out: nothing to judge, and nobody expects it.
    NotAsked,
    /// Both were asked for and one gave no figure: a promise that nobody checked.
    Unmeasured,
}

/// `asked` are the contestants that were to take part.
pub(crate) fn judge(targets: &[Target], report: &Report, asked: &[String]) -> Vec<Verdict> {
    targets.iter().map(|target| verdict(*target, report, asked)).collect()
}

fn verdict(target: Target, report: &Report, asked: &[String]) -> Verdict {
    let figure = |of| report.figure(of, target.workload, target.mode, target.statistic);
    let ratio = match (figure(target.contestant), figure(target.against)) {
        (Some(ours), Some(theirs)) => Some(ours as f64 / theirs as f64),
        _ => None,
    };
    let was_asked =
        [target.contestant, target.against].iter().all(|name| asked.iter().any(|asked| asked == name));
    let outcome = match ratio {
        Some(ratio) if ratio <= target.max_ratio => Outcome::Met,
        Some(_) => Outcome::Missed,
        None if was_asked => Outcome::Unmeasured,
        None => Outcome::NotAsked,
    };
    Verdict { target, ratio, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn outcome(cofferdam_us: Option<u64>, bwrap_us: Option<u64>, asked: &[&str]) -> Outcome {
        let rows = [("cofferdam", cofferdam_us), ("bwrap", bwrap_us)];
        let rows: Vec<_> = rows.into_iter().filter_map(|(name, us)| Some((name, us?))).collect();
        let asked: Vec<String> = asked.iter().map(|&name| name.into()).collect();
        judge(&TARGETS[..1], &testing::report(&rows), &asked)[0].outcome
    }

    #[test]
    fn at_the_bound_is_met_and_above_it_missed() {
        let asked = ["cofferdam", "bwrap"];
        assert_eq!(outcome(Some(900), Some(900), &asked), Outcome::Met);
        assert_eq!(outcome(Some(901), Some(900), &asked), Outcome::Missed);
    }

    #[test]
    fn a_missing_figure_is_forgiven_only_when_nobody_asked() {
        assert_eq!(outcome(Some(900), None, &["cofferdam", "bwrap"]), Outcome::Unmeasured);
        assert_eq!(outcome(Some(900), None, &["cofferdam"]), Outcome::NotAsked);
    }
}
