//! What the product promises, as data, and whether this run kept it.

use serde::Serialize;

use crate::backends::{BACKENDS, Row, Shared};
use crate::beside::Beside;
use crate::in_process::{IDLE, Idle};
use crate::report::Report;
use crate::schedule::Mode;
use crate::service::SERVICE;
use crate::sessions::{Crowd, Direction, SESSIONS, Sessions, Shape};
use crate::stats::Statistic;
use crate::store::{Engine, STORE};
use crate::workload::Workload;

#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) claim: Claim,
    /// Hoped for, not promised: shown, and no failure.
    pub(crate) is_stretch: bool,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Claim {
    Ratio(Ratio),
    Rate(Rate),
    /// An absolute maximum.
    AtMost {
        figure: Figure,
        max: f64,
    },
}

/// `contestant` takes at most `max` times what `against` takes.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Ratio {
    pub(crate) contestant: &'static str,
    pub(crate) against: &'static str,
    pub(crate) workload: Workload,
    pub(crate) mode: Mode,
    pub(crate) statistic: Statistic,
    pub(crate) max: f64,
}

/// `contestant` at its best does at least `min` times what `against` does at its best.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Rate {
    pub(crate) contestant: (&'static str, Workload),
    pub(crate) against: (&'static str, Workload),
    pub(crate) min: f64,
}

/// A figure that is measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Figure {
    IdleKib,
    IdleLeft,
    /// KiB of each that did not come back.
    IdleLost,
    /// The worst of all questions to a full store, beside an almost empty one.
    Store(Engine, Statistic),
    /// Milliseconds of the next step of a session.
    Step(Mode),
    /// The time of a fork, beside `cp -a`.
    Fork(Shape),
    /// Milliseconds of one on a filesystem that can share.
    SharedFork(Shape),
    /// The time of a large file into a session or out of it, beside `cp` and fsync.
    Transfer(Direction),
    /// By how many KiB the server's memory grew meanwhile.
    TransferGrowth,
    Crowd(OfCrowd),
    /// The time on another backend or root, beside what it stands on.
    Backend(Row),
    /// What a second image takes on disk, beside what is new in it.
    SharedLayers,
}

/// Of many sessions at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OfCrowd {
    IdleKib,
    /// With an interpreter, besides what that takes itself.
    KernelKib,
    Early,
    LateMs,
    Left,
    AfterBootMs,
    LeftAfterBoot,
}

const fn ratio(
    name: &'static str,
    (contestant, against): (&'static str, &'static str),
    mode: Mode,
    max: f64,
) -> Target {
    let (workload, statistic) = (Workload::True, Statistic::P50);
    let claim = Claim::Ratio(Ratio { contestant, against, workload, mode, statistic, max });
    Target { name, claim, is_stretch: false }
}

const fn at_most(name: &'static str, figure: Figure, max: f64) -> Target {
    Target { name, claim: Claim::AtMost { figure, max }, is_stretch: false }
}

const fn stretch(target: Target) -> Target {
    Target { is_stretch: true, ..target }
}

const fn of_python(target: Target) -> Target {
    match target.claim {
        Claim::Ratio(ratio) => {
            let claim = Claim::Ratio(Ratio { workload: Workload::Python, ..ratio });
            Target { claim, ..target }
        }
        Claim::Rate(_) | Claim::AtMost { .. } => target,
    }
}

/// A call of the service beside a bare interpreter, each many times in a row.
const fn of_api(target: Target, statistic: Statistic) -> Target {
    match target.claim {
        Claim::Ratio(ratio) => {
            let claim = Claim::Ratio(Ratio { workload: Workload::Api, statistic, ..ratio });
            Target { claim, ..target }
        }
        Claim::Rate(_) | Claim::AtMost { .. } => target,
    }
}

const fn rate(name: &'static str, against: (&'static str, Workload), min: f64) -> Target {
    let claim = Claim::Rate(Rate { contestant: (SERVICE, Workload::Api), against, min });
    Target { name, claim, is_stretch: false }
}

/// A session and its first step beside a bare interpreter, in turn.
const fn of_session(target: Target) -> Target {
    match target.claim {
        Claim::Ratio(ratio) => {
            let claim = Claim::Ratio(Ratio { workload: Workload::FirstStep, ..ratio });
            Target { claim, ..target }
        }
        Claim::Rate(_) | Claim::AtMost { .. } => target,
    }
}

const fn of_crowd(name: &'static str, figure: OfCrowd, max: f64) -> Target {
    at_most(name, Figure::Crowd(figure), max)
}

const COMMAND: (&str, &str) = ("cofferdam", "bwrap");
const COLD: (&str, &str) = ("cold", "bare");
const WARM: (&str, &str) = ("warm", "bare");
const AHEAD: (&str, &str) = ("ahead", "bare");
const API: (&str, &str) = (SERVICE, "bare");
const SESSION: (&str, &str) = (SESSIONS, "bare");

/// Both modes: a busy loop hides what an idle machine makes a first request wait for.
pub(crate) const TARGETS: [Target; 53] = [
    ratio("whole command, busy", COMMAND, Mode::BackToBack, 1.0),
    ratio("whole command, idle", COMMAND, Mode::Sparse, 1.0),
    ratio("cold, busy", COLD, Mode::BackToBack, 5.0),
    ratio("cold, idle", COLD, Mode::Sparse, 5.0),
    stretch(ratio("cold, busy, stretch", COLD, Mode::BackToBack, 4.0)),
    stretch(ratio("cold, idle, stretch", COLD, Mode::Sparse, 4.0)),
    ratio("warm, busy", WARM, Mode::BackToBack, 1.5),
    ratio("warm, idle", WARM, Mode::Sparse, 1.5),
    at_most("memory of an idle sandbox", Figure::IdleKib, 1024.0),
    at_most("nothing left of idle sandboxes", Figure::IdleLeft, 0.0),
    at_most("memory of idle sandboxes comes back", Figure::IdleLost, 32.0),
    of_python(ratio("warm Python, busy", AHEAD, Mode::BackToBack, 0.5)),
    of_python(ratio("warm Python, idle", AHEAD, Mode::Sparse, 0.5)),
    of_api(ratio("API call, busy", API, Mode::BackToBack, 1.0), Statistic::P50),
    of_api(ratio("API call, idle", API, Mode::Sparse, 1.0), Statistic::P50),
    of_api(ratio("API call, busy, p99", API, Mode::BackToBack, 3.0), Statistic::P99),
    of_api(ratio("API call, idle, p99", API, Mode::Sparse, 3.0), Statistic::P99),
    stretch(of_api(ratio("API call, busy, stretch", API, Mode::BackToBack, 0.6), Statistic::P50)),
    stretch(of_api(ratio("API call, idle, stretch", API, Mode::Sparse, 0.6), Statistic::P50)),
    rate("API calls a second, docker", ("docker", Workload::Python), 15.0),
    rate("API calls a second, bare", ("bare", Workload::Api), 0.5),
    stretch(rate("API calls a second, stretch", ("bare", Workload::Api), 0.8)),
    of_session(ratio("session, first result", SESSION, Mode::Sparse, 1.0)),
    at_most("next step", Figure::Step(Mode::BackToBack), 2.0),
    stretch(at_most("next step, idle", Figure::Step(Mode::Sparse), 2.0)),
    stretch(at_most("next step, stretch", Figure::Step(Mode::BackToBack), 1.0)),
    at_most("fork, one file", Figure::Fork(Shape::OneFile), 2.0),
    at_most("fork, many files", Figure::Fork(Shape::ManyFiles), 2.0),
    at_most("shared fork, one file", Figure::SharedFork(Shape::OneFile), 150.0),
    at_most("shared fork, many files", Figure::SharedFork(Shape::ManyFiles), 150.0),
    stretch(at_most("shared fork, one file, stretch", Figure::SharedFork(Shape::OneFile), 10.0)),
    stretch(at_most("shared fork, many files, stretch", Figure::SharedFork(Shape::ManyFiles), 10.0)),
    at_most("upload", Figure::Transfer(Direction::Upload), 2.0),
    at_most("download", Figure::Transfer(Direction::Download), 2.0),
    at_most("memory of a server that moves files", Figure::TransferGrowth, 16.0 * 1024.0),
    of_crowd("memory of an idle session", OfCrowd::IdleKib, 2048.0),
    of_crowd("memory of a session with Python", OfCrowd::KernelKib, 2048.0),
    of_crowd("no session ends early", OfCrowd::Early, 0.0),
    of_crowd("sessions end in time, p99", OfCrowd::LateMs, 1000.0),
    of_crowd("nothing left of sessions", OfCrowd::Left, 0.0),
    of_crowd("sessions end after an outage", OfCrowd::AfterBootMs, 2000.0),
    of_crowd("nothing left after an outage", OfCrowd::LeftAfterBoot, 0.0),
    at_most("native on an image", Figure::Backend(Row::NativeOnImage), 1.1),
    at_most("docker, exec when warm", Figure::Backend(Row::DockerExec), 1.3),
    at_most("docker, warm job", Figure::Backend(Row::DockerWarm), 0.5),
    at_most("oci runc, cold", Figure::Backend(Row::RuncCold), 1.2),
    at_most("oci runsc, warm job", Figure::Backend(Row::RunscWarm), 0.3),
    at_most("import", Figure::Backend(Row::Import), 1.0 / 0.7),
    at_most("layers are shared", Figure::SharedLayers, 1.1),
    at_most("full store, SQLite", Figure::Store(Engine::Sqlite, Statistic::P50), 2.0),
    at_most("full store, SQLite, p99", Figure::Store(Engine::Sqlite, Statistic::P99), 2.0),
    at_most("full store, PostgreSQL", Figure::Store(Engine::Postgres, Statistic::P50), 2.0),
    at_most("full store, PostgreSQL, p99", Figure::Store(Engine::Postgres, Statistic::P99), 2.0),
];

#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) target: Target,
    pub(crate) value: Option<f64>,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Met,
    Missed,
    /// A stretch that was not reached: no failure.
    NotReached,
    /// `--only` left out what it needs: nothing to judge, and nobody expects it.
    NotAsked,
    /// It was asked for and gave no figure: a promise that nobody checked.
    Unmeasured,
}

/// `asked` are those that were to take part.
pub(crate) fn judge(targets: &[Target], report: &Report, asked: &[String]) -> Vec<Verdict> {
    targets.iter().map(|target| verdict(*target, report, asked)).collect()
}

fn verdict(target: Target, report: &Report, asked: &[String]) -> Verdict {
    let was_asked = |names: &[&str]| names.iter().all(|name| asked.iter().any(|asked| asked == name));
    let (value, bound, was_asked) = match target.claim {
        Claim::Ratio(ratio) => {
            (ratio.value(report), Bound::Max(ratio.max), was_asked(&[ratio.contestant, ratio.against]))
        }
        Claim::Rate(rate) => {
            (rate.value(report), Bound::Min(rate.min), was_asked(&[rate.contestant.0, rate.against.0]))
        }
        Claim::AtMost { figure, max } => {
            (figure.value(report), Bound::Max(max), was_asked(&[figure.section()]))
        }
    };
    let outcome = match value {
        Some(value) if bound.holds(value) => Outcome::Met,
        Some(_) if target.is_stretch => Outcome::NotReached,
        Some(_) => Outcome::Missed,
        None if was_asked => Outcome::Unmeasured,
        None => Outcome::NotAsked,
    };
    Verdict { target, value, outcome }
}

#[derive(Debug, Clone, Copy)]
enum Bound {
    Max(f64),
    Min(f64),
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::Max(max) => value <= max,
            Self::Min(min) => value >= min,
        }
    }
}

impl Rate {
    fn value(&self, report: &Report) -> Option<f64> {
        let rate = |(name, workload)| report.rate(name, workload);
        Some(rate(self.contestant)? / rate(self.against)?)
    }
}

impl Ratio {
    fn value(&self, report: &Report) -> Option<f64> {
        let figure = |of| report.figure(of, self.workload, self.mode, self.statistic);
        Some(figure(self.contestant)? as f64 / figure(self.against)? as f64)
    }
}

impl Figure {
    fn value(self, report: &Report) -> Option<f64> {
        let (idle, sessions) = (report.idle.as_ref(), report.sessions.as_ref());
        let ms = |ns: u64| ns as f64 / 1e6;
        match self {
            Self::IdleKib => idle.map(Idle::kib_each),
            Self::IdleLeft => idle.map(|idle| idle.left() as f64),
            Self::IdleLost => idle.map(Idle::lost_kib_each),
            Self::Store(engine, statistic) => {
                report.store.iter().find(|kept| kept.engine == engine)?.worst(statistic)
            }
            Self::Step(mode) => report.figure(SESSIONS, Workload::NextStep, mode, Statistic::P50).map(ms),
            Self::Fork(shape) => sessions?.forks.iter().find(|fork| fork.of == shape).map(Beside::ratio),
            Self::SharedFork(shape) => {
                let found = sessions?.shared_forks.iter().find(|fork| fork.of == shape);
                found.map(|fork| ms(fork.took.p50_ns))
            }
            Self::Transfer(of) => sessions?.transfers.iter().find(|row| row.of == of).map(Beside::ratio),
            Self::TransferGrowth => sessions.map(|sessions| sessions.transfer_growth_kib as f64),
            Self::Backend(row) => {
                report.backends.as_ref()?.rows.iter().find(|found| found.of == row).map(Beside::ratio)
            }
            Self::SharedLayers => report.backends.as_ref()?.shared.map(Shared::ratio),
            Self::Crowd(figure) => sessions.map(|Sessions { crowd, .. }| figure.value(crowd)),
        }
    }

    /// What has to be asked for to have it.
    fn section(self) -> &'static str {
        match self {
            Self::IdleKib | Self::IdleLeft | Self::IdleLost => IDLE,
            Self::Store(..) => STORE,
            Self::Backend(_) | Self::SharedLayers => BACKENDS,
            Self::Step(_)
            | Self::Fork(_)
            | Self::SharedFork(_)
            | Self::Transfer(_)
            | Self::TransferGrowth
            | Self::Crowd(_) => SESSIONS,
        }
    }
}

impl OfCrowd {
    fn value(self, crowd: &Crowd) -> f64 {
        let ms = |ns: u64| ns as f64 / 1e6;
        match self {
            Self::IdleKib => crowd.idle_kib,
            Self::KernelKib => crowd.beside_interpreter_kib(),
            Self::Early => crowd.early as f64,
            Self::LateMs => ms(crowd.late.p99_ns),
            Self::Left => crowd.left as f64,
            Self::AfterBootMs => ms(crowd.after_boot.max_ns),
            Self::LeftAfterBoot => crowd.left_after_boot as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn outcome(target: Target, rows: &[(&str, u64)], asked: &[&str]) -> Outcome {
        let asked: Vec<String> = asked.iter().map(|&name| name.into()).collect();
        judge(&[target], &testing::report(rows), &asked)[0].outcome
    }

    #[test]
    fn at_the_bound_is_met_and_above_it_missed() {
        let asked = ["cofferdam", "bwrap"];
        assert_eq!(outcome(TARGETS[0], &[("cofferdam", 900), ("bwrap", 900)], &asked), Outcome::Met);
        assert_eq!(outcome(TARGETS[0], &[("cofferdam", 901), ("bwrap", 900)], &asked), Outcome::Missed);
    }

    #[test]
    fn a_missing_figure_is_forgiven_only_when_nobody_asked() {
        let rows = [("cofferdam", 900)];
        assert_eq!(outcome(TARGETS[0], &rows, &["cofferdam", "bwrap"]), Outcome::Unmeasured);
        assert_eq!(outcome(TARGETS[0], &rows, &["cofferdam"]), Outcome::NotAsked);
    }

    #[test]
    fn a_stretch_is_met_or_not_reached_and_never_missed() {
        let cold = ratio("cold", COLD, Mode::BackToBack, 4.0);
        let (rows, asked) = ([("cold", 4_500), ("bare", 1_000)], ["cold", "bare"]);
        assert_eq!(outcome(cold, &rows, &asked), Outcome::Missed);
        assert_eq!(outcome(stretch(cold), &rows, &asked), Outcome::NotReached);
        assert_eq!(outcome(stretch(cold), &[("cold", 4_000), ("bare", 1_000)], &asked), Outcome::Met);
    }

    #[test]
    fn a_rate_is_to_be_reached_and_not_kept_below() {
        let wanted = |min| {
            let (contestant, against) = (("cofferdam", Workload::True), ("bwrap", Workload::True));
            let claim = Claim::Rate(Rate { contestant, against, min });
            Target { name: "rate", claim, is_stretch: false }
        };
        let (rows, asked) = ([("cofferdam", 500), ("bwrap", 1_000)], ["cofferdam", "bwrap"]);
        assert_eq!(outcome(wanted(2.0), &rows, &asked), Outcome::Met);
        assert_eq!(outcome(wanted(2.1), &rows, &asked), Outcome::Missed);
        assert_eq!(outcome(wanted(2.0), &rows[..1], &asked), Outcome::Unmeasured);
    }

    #[test]
    fn an_absolute_maximum_is_judged_by_itself() {
        let memory = at_most("memory", Figure::IdleKib, testing::IDLE_KIB);
        assert_eq!(outcome(memory, &[], &[]), Outcome::Met);
        let less = at_most("memory", Figure::IdleKib, testing::IDLE_KIB - 1.0);
        assert_eq!(outcome(less, &[], &[]), Outcome::Missed);
    }
}
