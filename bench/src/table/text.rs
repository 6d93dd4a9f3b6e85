//! Plain text of at most a hundred columns, coloured only where asked.

use std::fmt::Write;

use super::{LEGEND, Row, Table, claim, machine, outcome, tables, value};
use crate::report::Report;
use crate::targets::{Outcome, Verdict};

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
    let mut lines: Vec<String> = machine(report).iter().map(|line| cut(line)).collect();
    lines.extend(LEGEND.map(cut));
    lines.extend(tables(report).iter().flat_map(|table| table_lines(table, style)));
    lines.extend([String::new(), style.bold("targets")]);
    lines.extend(report.targets.iter().map(|verdict| target(verdict, style)));
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

fn table_lines(table: &Table, style: Style) -> Vec<String> {
    let mut lines = vec![String::new(), style.bold(&table.title), line("", &table.heads)];
    lines.extend(table.rows.iter().map(|(name, row)| match row {
        Row::Cells(cells) => line(name, cells),
        Row::Remark(text) => cut(&format!("{name:<NAME$}  {text}")),
    }));
    lines
}

fn target(verdict: &Verdict, style: Style) -> String {
    let code = match verdict.outcome {
        Outcome::Met => "32",
        Outcome::Missed | Outcome::Unmeasured => "31",
        Outcome::NotReached => "33",
        Outcome::NotAsked => "2",
    };
    let text = format!("{}: {}", verdict.target.name, claim(&verdict.target));
    let space = WIDTH - 21;
    let word = style.paint(code, outcome(verdict.outcome));
    format!("{text:<space$.space$} {:>8} {word}", value(verdict))
}

/// A name and cells to the right, all of one width.
fn line(name: &str, cells: &[String]) -> String {
    let widest = cells.iter().map(|cell| cell.chars().count() + 2).max().unwrap_or(0).max(10);
    let width = ((WIDTH - NAME) / cells.len().max(1)).min(widest);
    cells.iter().fold(format!("{name:<NAME$.NAME$}"), |mut text, cell| {
        let _ = write!(text, "{cell:>width$}");
        text
    })
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
        let rows =
            [("bare", 600), ("bwrap", 4_500), ("cofferdam", 99_999_999), ("cold", 2_900), ("warm", 900)];
        let mut report = testing::report(&rows);
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

    #[test]
    fn every_target_has_a_line() {
        let text = render(&full(), Style { colours: false });
        for target in TARGETS {
            assert!(text.contains(&format!("{}: ", target.name)), "{}", target.name);
        }
    }
}
