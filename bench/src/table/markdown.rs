//! Markdown, for a document that is kept.

use std::fmt::Write;

use super::{LEGEND, Row, Table, claim, machine, outcome, tables, value};
use crate::report::Report;

pub(crate) fn render(report: &Report) -> String {
    let mut text = String::from("# Benchmark\n\nMade by `make bench`; do not edit.\n\n");
    for line in machine(report).iter().map(String::as_str).chain(LEGEND) {
        let _ = writeln!(text, "- {}", cell(line));
    }
    text += &section("Targets", &["target", "claim", "measured", "verdict"], false);
    for verdict in &report.targets {
        let cells = [
            verdict.target.name.to_owned(),
            claim(&verdict.target),
            value(verdict),
            outcome(verdict.outcome).to_owned(),
        ];
        text += &row(&cells);
    }
    tables(report).iter().fold(text, |text, table| text + &table_text(table))
}

fn table_text(table: &Table) -> String {
    let heads: Vec<&str> = [""].into_iter().chain(table.heads.iter().map(String::as_str)).collect();
    let mut text = section(&table.title, &heads, true);
    for (name, cells) in &table.rows {
        text += &match cells {
            Row::Cells(cells) => row(&[std::slice::from_ref(name), cells].concat()),
            // The other columns stay empty.
            Row::Remark(remark) => row(&[name.clone(), remark.clone()]),
        };
    }
    text
}

/// A heading and the head of a table, figures to the right of a name.
fn section(title: &str, heads: &[&str], has_figures: bool) -> String {
    let rule = |column: usize| if has_figures && column > 0 { "--:" } else { "---" };
    let heads: Vec<String> = heads.iter().map(|&head| head.into()).collect();
    let rules: Vec<String> = (0..heads.len()).map(|column| rule(column).into()).collect();
    format!("\n## {}\n\n{}{}", cell(title), row(&heads), row(&rules))
}

fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Text of peers and of the machine must not break a table.
fn cell(text: &str) -> String {
    text.replace(char::is_control, " ")
        .replace('|', "\\|")
        .replace("<=", "≤")
        .replace(">=", "≥")
        .replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::{TARGETS, judge};
    use crate::testing;

    fn full() -> String {
        let mut report = testing::report(&[("bare", 600), ("bwrap", 4_500), ("a|b", 900)]);
        report.targets = judge(&TARGETS, &report, &[]);
        render(&report)
    }

    #[test]
    fn rows_have_their_cells() {
        let text = full();
        assert!(text.contains("\n| bwrap | 1000 | 4.50 | 4.50 | 4.50 | 7.50 | 1.00 |\n"), "{text}");
        assert!(text.contains("\n|  | samples | p50 ms |"), "{text}");
        assert!(text.contains("\n| --- | --: | --: |"), "{text}");
    }

    #[test]
    fn a_name_cannot_break_a_table() {
        assert!(full().contains("\n| a\\|b | 1000 |"));
    }

    #[test]
    fn every_target_is_a_row() {
        let text = full();
        for target in TARGETS {
            assert!(text.contains(&format!("\n| {} | ", target.name)), "{}", target.name);
        }
    }
}
