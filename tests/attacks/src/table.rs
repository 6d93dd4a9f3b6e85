//! One table of several runs, each on a backend of its own: a column for each.

use crate::differs::Differs;
use crate::row::Row;
use crate::wall::Wall;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What of a run's JSON is in the table.
#[derive(Debug, Deserialize)]
struct Run {
    mode: String,
    wall: Option<Wall>,
    quick: bool,
    rows: Vec<Row>,
    shortened: Vec<(String, String)>,
    #[serde(skip)]
    again: Vec<String>,
}

pub(crate) fn write(out: &Path, reports: &[PathBuf]) -> Result<(), String> {
    let (mut runs, differs) = (BTreeMap::new(), Differs::load()?);
    for path in reports {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut run: Run = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        let wall = run.wall.ok_or_else(|| format!("{}: not of a run with --backend", path.display()))?;
        // What was seen is of the run; what it is worth is read in differs.toml as it is now.
        run.rows = run.rows.into_iter().map(|row| differs.judge(wall, row)).collect();
        match runs.get_mut(&wall) {
            None => drop(runs.insert(wall, run)),
            Some(first) => make_again(first, run),
        }
    }
    let date = std::process::Command::new("date")
        .args(["-u", "+%FT%TZ"])
        .output()
        .map_err(|e| format!("date: {e}"))?;
    let date = String::from_utf8_lossy(&date.stdout).trim().to_owned();
    std::fs::write(out, page(&runs, &date)).map_err(|e| format!("{}: {e}", out.display()))
}

/// Cases that were made again by themselves take the place of what was seen of them before.
fn make_again(first: &mut Run, later: Run) {
    let is_again = |case: &str| later.rows.iter().any(|row| row.case == case);
    first.rows.retain(|row| !is_again(&row.case));
    first.again.extend(later.rows.iter().map(|row| row.case.clone()));
    first.again.sort_unstable();
    first.again.dedup();
    first.rows.extend(later.rows);
}

/// What a cell says: both looks, and whether that is another than on the native backend.
fn cell(row: Option<&Row>) -> String {
    let Some(row) = row else { return "missing".to_owned() };
    let looks = match (row.wall.word(), row.control.word()) {
        ("-", _) => "not made".to_owned(),
        (wall, "-") => wall.to_owned(),
        (wall, control) => format!("{wall}, {control}{}", if row.took_everything() { "¹" } else { "" }),
    };
    if row.differs.is_some() {
        format!("differs: {looks}")
    } else if row.has_failed() {
        format!("FAILED: {looks}")
    } else {
        looks
    }
}

fn counts(run: &Run) -> [usize; 5] {
    let count = |is: &dyn Fn(&Row) -> bool| run.rows.iter().filter(|row| is(row)).count();
    [
        run.rows.len(),
        count(&Row::passed),
        count(&|row| row.differs.is_some()),
        count(&Row::was_not_run),
        count(&Row::has_failed),
    ]
}

fn page(runs: &BTreeMap<Wall, Run>, date: &str) -> String {
    let mode = runs.values().map(|run| run.mode.as_str()).next().unwrap_or_default();
    let mut text = format!(
        "# Attacks by jobs on every backend: {mode}\n\nOf runs as `make attack ARGS=--backends` makes them, {date}. Every cell says what \
         was seen of the wall, which must hold, then of the control: the same attack with the walls left out that stop \
         it, which must work (broke). ¹: only with everything left out that can be. *differs*: otherwise than on \
         `native`, for a reason that is below; it does not count as passed. *not made*: it has no meaning there, or \
         on this machine; below is why.\n\n"
    );
    text.push_str("| backend | attacks | passed | differ | not made | failed |\n| --- | --- | --- | --- | --- | --- |\n");
    for (wall, run) in runs {
        let [all, passed, differ, not_made, failed] = counts(run);
        let _ = writeln!(text, "| {wall} | {all} | {passed} | {differ} | {not_made} | {failed} |");
    }
    for wall in Wall::ALL.iter().filter(|wall| !runs.contains_key(wall)) {
        let _ = writeln!(text, "| {wall} | not run | | | | |");
    }
    for (wall, run) in runs.iter().filter(|(_, run)| !run.again.is_empty()) {
        let _ = write!(
            text,
            "\nOn {wall} these cases were made again by themselves: {}.\n",
            run.again.join(", ")
        );
    }
    text.push_str("\n| case | attack |");
    runs.keys().for_each(|wall| {
        let _ = write!(text, " {wall} |");
    });
    let _ = writeln!(text, "\n| --- | --- |{}", " --- |".repeat(runs.len()));
    let mut said: Vec<(&str, &str)> = Vec::new();
    for row in runs.values().flat_map(|run| &run.rows) {
        if said.contains(&(&row.case, &row.what)) {
            continue;
        }
        said.push((&row.case, &row.what));
    }
    said.sort_by_key(|(case, _)| crate::catalogue::ids().position(|id| id == *case));
    for (case, what) in said {
        let _ = write!(text, "| {case} | {what} |");
        for run in runs.values() {
            let row = run.rows.iter().find(|row| row.case == case && row.what == what);
            // Only a case that leaves something has this row.
            let cell = if row.is_none() && what == "aftermath" { String::new() } else { cell(row) };
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
    text.push_str("\n## Why\n");
    for (wall, run) in runs {
        let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in run.rows.iter().filter(|row| row.differs.is_some() || row.was_not_run()) {
            let why = row.differs.as_deref().unwrap_or(row.wall.detail());
            reasons.entry(why).or_default().push(format!("`{}`", row.what));
        }
        if reasons.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n### {wall}\n");
        for (why, what) in reasons {
            let _ = writeln!(text, "- {}: {why}", what.join(", "));
        }
    }
    if let Some(run) = runs.values().find(|run| run.quick) {
        text.push_str("\n## Shortened\n\n");
        run.shortened.iter().for_each(|(what, how)| {
            let _ = writeln!(text, "- `{what}`: {how}");
        });
    }
    text
}
