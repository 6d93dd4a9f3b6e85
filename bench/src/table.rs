//! The report as tables, whatever they are drawn with: text for a terminal, Markdown for a document.

mod backends;
mod markdown;
mod sessions;
mod text;

use crate::in_process::{Idle, Round};
use crate::report::{Latency, Report, Throughput};
use crate::schedule::Mode;
use crate::stats::{Statistic, Summary};
use crate::store::{Asked, Kept};
use crate::targets::{Claim, Figure, OfCrowd, Outcome, Rate, Target, Verdict};
use crate::throughput::IN_FLIGHT;
use crate::workload::Workload;

pub(crate) use markdown::render as markdown;
pub(crate) use text::{Style, render as text};

const LEGEND: [&str; 2] = [
    "x: ratio of medians, or of rates; p99 of fewer than 100 samples is their maximum",
    "cold, warm, ahead, destroy: sandboxes made from inside one process; the others are whole commands",
];

/// A title, columns, and a row for each name.
struct Table {
    title: String,
    heads: Vec<String>,
    rows: Vec<(String, Row)>,
}

enum Row {
    Cells(Vec<String>),
    /// Why there are no figures.
    Remark(String),
}

fn machine(report: &Report) -> Vec<String> {
    let machine = &report.machine;
    let load = |load: Option<f64>| load.map_or("?".into(), |load| format!("{load:.2}"));
    let (before, after) = (load(machine.load_at_start), load(report.load_at_end));
    let fsync = report.fsync.as_ref().map(|fsync| {
        let ms = |ns: u64| ns as f64 / 1e6;
        let (p50, p99) = (ms(fsync.p50_ns), ms(fsync.p99_ns));
        format!("the service's disk keeps 4 KiB in {p50:.2} ms (p99 {p99:.2} ms)")
    });
    let known = [
        format!("{}, {} cores, kernel {}", machine.cpu_model, machine.cores, machine.kernel),
        format!("{}, load {before} before and {after} after", machine.date),
    ];
    known.into_iter().chain(fsync).collect()
}

/// All but the targets, without those that have no rows.
fn tables(report: &Report) -> Vec<Table> {
    let of_workload = |workload| {
        let latency = [Mode::BackToBack, Mode::Sparse].map(|mode| latency(report, workload, mode));
        latency.into_iter().chain([throughput(report, workload)])
    };
    let tables = Workload::SHOWN.into_iter().flat_map(of_workload).chain([idle(report)]);
    let tables = tables.chain(report.sessions.iter().flat_map(sessions::tables));
    let tables = tables.chain(report.backends.iter().map(backends::table));
    let tables = tables.chain(report.store.iter().map(store));
    tables.filter(|table| !table.rows.is_empty()).collect()
}

fn latency(report: &Report, workload: Workload, mode: Mode) -> Table {
    let rows = report.latency.iter().filter(|row| row.workload == workload && row.mode == mode);
    Table {
        title: format!("{}, {}", workload.label(), mode.label()),
        heads: ["samples", "p50 ms", "p99 ms", "mean ms", "x bare", "x bwrap"].map(String::from).to_vec(),
        rows: with_absences(rows.map(latency_row).collect(), workload, report),
    }
}

fn latency_row(row: &Latency) -> (String, Row) {
    let cells = match (&row.summary, &row.failure) {
        (Some(summary), None) => Row::Cells(latency_cells(row, summary)),
        (_, failure) => Row::Remark(format!("failed: {}", failure.as_deref().unwrap_or("no samples"))),
    };
    (row.contestant.clone(), cells)
}

fn latency_cells(row: &Latency, summary: &Summary) -> Vec<String> {
    let ms = |ns: u64| format!("{:.2}", ns as f64 / 1e6);
    vec![
        summary.samples.to_string(),
        ms(summary.p50_ns),
        ms(summary.p99_ns),
        ms(summary.mean_ns),
        times(row.ratio_to_bare),
        times(row.ratio_to_bwrap),
    ]
}

fn throughput(report: &Report, workload: Workload) -> Table {
    let rows: Vec<&Throughput> = report.throughput.iter().filter(|row| row.workload == workload).collect();
    let first = |row: &&&Throughput| row.in_flight == IN_FLIGHT[0];
    let names = rows.iter().filter(first).map(|row| row.contestant.as_str());
    let heads = IN_FLIGHT.map(|count| [format!("{count}: /s"), "x bare".into(), "x bwrap".into()]);
    Table {
        title: format!("{}, runs a second by number in flight", workload.label()),
        heads: heads.concat(),
        rows: with_absences(names.map(|name| throughput_row(name, &rows)).collect(), workload, report),
    }
}

fn throughput_row(name: &str, rows: &[&Throughput]) -> (String, Row) {
    let mine = || rows.iter().filter(|row| row.contestant == name);
    if let Some(failure) = mine().find_map(|row| row.failure.as_ref()) {
        return (name.into(), Row::Remark(format!("failed: {failure}")));
    }
    let cells = mine().flat_map(|row| {
        let rate = row.per_second.map_or("-".into(), |rate| format!("{rate:.1}"));
        [rate, times(row.ratio_to_bare), times(row.ratio_to_bwrap)]
    });
    (name.into(), Row::Cells(cells.collect()))
}

/// Those who could not take part, below those who did.
fn with_absences(mut rows: Vec<(String, Row)>, workload: Workload, report: &Report) -> Vec<(String, Row)> {
    if !rows.is_empty() && Workload::ALL.contains(&workload) {
        let absence = |reason: &str| Row::Remark(format!("absent: {reason}"));
        rows.extend(report.absent.iter().map(|absent| (absent.name.into(), absence(&absent.reason))));
    }
    rows
}

fn store(kept: &Kept) -> Table {
    let ms = |ns: u64| format!("{:.2}", ns as f64 / 1e6);
    let row = |asked: &Asked| {
        let Asked { question, small, large } = asked;
        let [p50, p99] = [Statistic::P50, Statistic::P99].map(|of| times(Some(asked.ratio(of))));
        let figures = [small.p50_ns, small.p99_ns, large.p50_ns, large.p99_ns].map(ms);
        let cells = [vec![large.samples.to_string()], figures.to_vec(), vec![p50, p99]].concat();
        ((*question).to_owned(), Row::Cells(cells))
    };
    let (jobs, events, seconds) = (kept.jobs, kept.events, kept.fill_seconds);
    Table {
        title: format!(
            "{}: almost empty, and with {jobs} jobs and {events} events (made in {seconds:.0} s)",
            kept.engine.label()
        ),
        heads: ["samples", "p50 ms", "p99 ms", "full p50", "full p99", "x p50", "x p99"]
            .map(String::from)
            .to_vec(),
        rows: kept.rows.iter().map(row).collect(),
    }
}

fn idle(report: &Report) -> Table {
    let count = report.idle.as_ref().map_or(0, |idle| idle.sandboxes);
    Table {
        title: format!("memory and kernel objects of {count} idle sandboxes"),
        heads: ["before", "during", "after", "each"].map(String::from).to_vec(),
        rows: report.idle.as_ref().map_or(Vec::new(), idle_rows),
    }
}

fn idle_rows(idle: &Idle) -> Vec<(String, Row)> {
    let mib = |kib: u64| format!("{} MiB", kib / 1024);
    let each = |before: usize, during: usize| {
        format!("{:.1}", (during as f64 - before as f64) / idle.sandboxes as f64)
    };
    let counts = |name: &str, [before, during, after]: [usize; 3]| {
        let cells = vec![before.to_string(), during.to_string(), after.to_string(), each(before, during)];
        (name.to_owned(), Row::Cells(cells))
    };
    let memory = |name: &str, round: &Round| {
        let Round { before, during, after } = round;
        let kib = before.available_kib.saturating_sub(during.available_kib) / idle.sandboxes.max(1) as u64;
        let mut cells = [before.available_kib, during.available_kib, after.available_kib].map(mib).to_vec();
        cells.push(format!("{kib} KiB"));
        (name.to_owned(), Row::Cells(cells))
    };
    let (first, second) = (&idle.first, &idle.second);
    let back = [first, second].map(|round| round.memory_returned() * 100.0);
    vec![
        memory("available memory", first),
        memory("once more", second),
        counts("cgroups", [first.before.cgroups, first.during.cgroups, second.after.cgroups]),
        counts("mounts", [first.before.mounts, first.during.mounts, second.after.mounts]),
        (
            "came back".into(),
            Row::Remark(format!("{:.0} % of the memory, once more {:.0} %", back[0], back[1])),
        ),
    ]
}

/// What a target says, without its name.
fn claim(target: &Target) -> String {
    match target.claim {
        Claim::Ratio(ratio) => format!(
            "{} {} <= {:.1} x {}, {}, {}",
            ratio.contestant,
            ratio.statistic.label(),
            ratio.max,
            ratio.against,
            ratio.workload.label(),
            ratio.mode.label()
        ),
        Claim::Rate(Rate { contestant, against, min }) => {
            format!("{} >= {min:.1} x {}, runs a second of each at its best", contestant.0, against.0)
        }
        Claim::AtMost { figure: Figure::IdleKib, max } => format!("<= {max:.0} KiB each"),
        Claim::AtMost { figure: Figure::Store(_, statistic), max } => {
            format!("worst {} <= {max:.1} x an almost empty store", statistic.label())
        }
        Claim::AtMost { figure: Figure::IdleLeft, max } => format!("<= {max:.0} cgroups and mounts"),
        Claim::AtMost { figure: Figure::IdleLost, max } => {
            format!("<= {max:.0} KiB each missing after a second round")
        }
        Claim::AtMost { figure: Figure::Step(mode), max } => {
            format!("p50 <= {max:.1} ms over HTTP, {}", mode.label())
        }
        Claim::AtMost { figure: Figure::Fork(_), max } => format!("time <= {max:.1} x cp -a, p50"),
        Claim::AtMost { figure: Figure::SharedFork(_), max } => format!("p50 <= {max:.0} ms"),
        Claim::AtMost { figure: Figure::Transfer(_), max } => {
            format!("time <= {max:.1} x cp and fsync on the same disk, p50")
        }
        Claim::AtMost { figure: Figure::Backend(row), max } => {
            format!("time <= {max:.2} x {}, p50", row.against())
        }
        Claim::AtMost { figure: Figure::SharedLayers, max } => {
            format!("a second image takes <= {max:.1} x its new layers on disk")
        }
        Claim::AtMost { figure: Figure::TransferGrowth, max } => format!("grows by <= {max:.0} KiB"),
        Claim::AtMost { figure: Figure::Crowd(figure), max } => match figure {
            OfCrowd::IdleKib => format!("<= {max:.0} KiB each"),
            OfCrowd::KernelKib => format!("<= {max:.0} KiB each besides the interpreter"),
            OfCrowd::Early => format!("<= {max:.0} sessions"),
            OfCrowd::LateMs => format!("<= {max:.0} ms after the deadline"),
            OfCrowd::AfterBootMs => format!("all <= {max:.0} ms after the start"),
            OfCrowd::Left | OfCrowd::LeftAfterBoot => format!("<= {max:.0} sandboxes"),
        },
    }
}

fn value(verdict: &Verdict) -> String {
    match verdict.target.claim {
        Claim::AtMost {
            figure:
                Figure::IdleKib | Figure::IdleLeft | Figure::IdleLost | Figure::TransferGrowth | Figure::Crowd(_),
            ..
        } => verdict.value.map_or("-".into(), |value| format!("{value:.0}")),
        _ => times(verdict.value),
    }
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Met => "met",
        Outcome::Missed => "missed",
        Outcome::NotReached => "not reached",
        Outcome::NotAsked => "not asked",
        Outcome::Unmeasured => "unmeasured",
    }
}

fn times(ratio: Option<f64>) -> String {
    match ratio {
        None => "-".into(),
        Some(ratio) if ratio < 0.1 => format!("{ratio:.3}"),
        Some(ratio) => format!("{ratio:.2}"),
    }
}
