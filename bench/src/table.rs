//! The report for a reader: plain text of at most a hundred columns, coloured only where asked.

use std::fmt::Write;

use crate::report::{Latency, Report, Throughput};
use crate::schedule::Mode;
use crate::stats::Summary;
use crate::targets::{Outcome, Verdict};
use crate::throughput::IN_FLIGHT;
use crate::workload::Workload;

const WIDTH: usize = 100;
const NAME: usize = 14;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) colours: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
}

pub(crate) fn render(report: &Report, style: Style) -> String {
    let mut lines = machine(report);
    for workload in Workload::ALL {
        for mode in [Mode::BackToBack, Mode::Sparse] {
            lines.extend(latency(report, workload, mode, style));
        }
        lines.extend(throughput(report, workload, style));
    }
    lines.extend(targets(&report.targets, style));
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

fn machine(report: &Report) -> Vec<String> {
    let machine = &report.machine;
    let load = |load: Option<f64>| load.map_or("?".into(), |load| format!("{load:.2}"));
    let first = format!("{}, {} cores, kernel {}", machine.cpu_model, machine.cores, machine.kernel);
    let (before, after) = (load(machine.load_at_start), load(report.load_at_end));
    let second = format!("{}, load {before} before and {after} after", machine.date);
    let third = "x: ratio of medians, or of rates; p99 of fewer than 100 samples is their maximum";
    vec![cut(&first), cut(&second), third.to_owned()]
}

fn latency(report: &Report, workload: Workload, mode: Mode, style: Style) -> Vec<String> {
    let rows: Vec<&Latency> =
        report.latency.iter().filter(|row| row.workload == workload && row.mode == mode).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let heads = ["samples", "p50 ms", "p99 ms", "mean ms", "x bare", "x bwrap"];
    let mut lines = titled(&format!("{}, {}", workload.label(), mode.label()), &heads, style);
    lines.extend(rows.into_iter().map(latency_row));
    lines.extend(absences(report));
    lines
}

fn latency_row(row: &Latency) -> String {
    match (&row.summary, &row.failure) {
        (Some(summary), None) => line(&row.contestant, &latency_cells(row, summary)),
        (_, failure) => {
            remark(&row.contestant, &format!("failed: {}", failure.as_deref().unwrap_or("no samples")))
        }
    }
}

fn latency_cells(row: &Latency, summary: &Summary) -> [String; 6] {
    let ms = |ns: u64| format!("{:.2}", ns as f64 / 1e6);
    [
        summary.samples.to_string(),
        ms(summary.p50_ns),
        ms(summary.p99_ns),
        ms(summary.mean_ns),
        times(row.ratio_to_bare),
        times(row.ratio_to_bwrap),
    ]
}

fn throughput(report: &Report, workload: Workload, style: Style) -> Vec<String> {
    let rows: Vec<&Throughput> = report.throughput.iter().filter(|row| row.workload == workload).collect();
    let first = |row: &&&Throughput| row.in_flight == IN_FLIGHT[0];
    let names: Vec<&str> = rows.iter().filter(first).map(|row| row.contestant.as_str()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let heads = IN_FLIGHT.map(|count| [format!("{count}: /s"), "x bare".into(), "x bwrap".into()]).concat();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut lines =
        titled(&format!("{}, runs a second by number in flight", workload.label()), &heads, style);
    lines.extend(names.into_iter().map(|name| throughput_row(name, &rows)));
    lines.extend(absences(report));
    lines
}

fn throughput_row(name: &str, rows: &[&Throughput]) -> String {
    let mine = || rows.iter().filter(|row| row.contestant == name);
    if let Some(failure) = mine().find_map(|row| row.failure.as_ref()) {
        return remark(name, &format!("failed: {failure}"));
    }
    let cells: Vec<String> = mine()
        .flat_map(|row| {
            let rate = row.per_second.map_or("-".into(), |rate| format!("{rate:.1}"));
            [rate, times(row.ratio_to_bare), times(row.ratio_to_bwrap)]
        })
        .collect();
    line(name, &cells)
}

fn targets(verdicts: &[Verdict], style: Style) -> Vec<String> {
    let mut lines = vec![String::new(), style.bold("targets")];
    lines.extend(verdicts.iter().map(|verdict| target(verdict, style)));
    lines
}

fn target(verdict: &Verdict, style: Style) -> String {
    let target = &verdict.target;
    let (code, word) = match verdict.outcome {
        Outcome::Met => ("32", "met"),
        Outcome::Missed => ("31", "missed"),
        Outcome::NotAsked => ("2", "not asked"),
        Outcome::Unmeasured => ("31", "unmeasured"),
    };
    let claim = format!(
        "{}: {} {} <= {:.1} x {}, {}, {}",
        target.name,
        target.contestant,
        target.statistic.label(),
        target.max_ratio,
        target.against,
        target.workload.label(),
        target.mode.label()
    );
    let space = WIDTH - 20;
    format!("{claim:<space$.space$} {:>8} {}", times(verdict.ratio), style.paint(code, word))
}

fn absences(report: &Report) -> impl Iterator<Item = String> {
    report.absent.iter().map(|absent| remark(absent.name, &format!("absent: {}", absent.reason)))
}

fn titled(title: &str, heads: &[&str], style: Style) -> Vec<String> {
    vec![String::new(), style.bold(title), line("", heads)]
}

/// A name and cells to the right, all of one width.
fn line(name: &str, cells: &[impl AsRef<str>]) -> String {
    let width = ((WIDTH - NAME) / cells.len().max(1)).min(10);
    cells.iter().fold(format!("{name:<NAME$.NAME$}"), |mut text, cell| {
        let _ = write!(text, "{:>width$}", cell.as_ref());
        text
    })
}

fn remark(name: &str, text: &str) -> String {
    cut(&format!("{name:<NAME$}  {text}"))
}

fn times(ratio: Option<f64>) -> String {
    match ratio {
        None => "-".into(),
        Some(ratio) if ratio < 0.1 => format!("{ratio:.3}"),
        Some(ratio) => format!("{ratio:.2}"),
    }
}

/// What does not fit is in the JSON.
fn cut(text: &str) -> String {
    let text = text.replace(char::is_control, " ");
    if text.chars().count() <= WIDTH {
        return text;
    }
    text.chars().take(WIDTH - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::{TARGETS, judge};
    use crate::testing;

    fn full() -> Report {
        let mut report = testing::report(&[("bare", 600), ("bwrap", 4_500), ("cofferdam", 99_999_999)]);
        report.targets = judge(&TARGETS, &report, &["cofferdam".into(), "bwrap".into()]);
        report
    }

    #[test]
    fn every_line_fits_a_hundred_columns() {
        for line in render(&full(), Style { colours: false }).lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }

    #[test]
    fn colours_come_only_when_asked() {
        assert!(!render(&full(), Style { colours: false }).contains('\x1b'));
        assert!(render(&full(), Style { colours: true }).contains("\x1b[31mmissed"));
    }

    #[test]
    fn the_absent_are_named_with_the_reason() {
        assert!(render(&full(), Style { colours: false }).contains("docker          absent: no no"));
    }

    #[test]
    fn ratios_are_of_medians() {
        let text = render(&full(), Style { colours: false });
        let row = text.lines().find(|line| line.starts_with("bwrap")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells, ["bwrap", "1000", "4.50", "4.50", "4.50", "7.50", "1.00"]);
    }
}
