//! What was seen, as a table, as JSON and as a page of the documentation.

use crate::catalogue::Catalogue;
use crate::mode::Mode;
use crate::mutation::Mutant;
use crate::place::{Place, State};
use crate::row::{Row, Seen};
use crate::wall::Wall;
use cofferdam_core::Control;
use serde::Serialize;
use std::fmt::Write;

/// Everything that a run has to say.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) mode: Mode,
    /// The backend, where only that was attacked, and only by jobs.
    pub(crate) wall: Option<Wall>,
    pub(crate) quick: bool,
    pub(crate) rows: Vec<Row>,
    pub(crate) mutants: Vec<Mutant>,
    /// Case and reason.
    pub(crate) not_applicable: Vec<(String, String)>,
    pub(crate) later: Vec<(String, String)>,
    /// Drivers that were shortened, and how.
    pub(crate) shortened: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Counts {
    pub(crate) held: usize,
    pub(crate) controls_broke: usize,
    pub(crate) without_control: usize,
    pub(crate) not_run: usize,
    pub(crate) errors: usize,
    pub(crate) passed: usize,
    /// Otherwise than on the native backend, with a reason.
    pub(crate) differs: usize,
    pub(crate) failed: usize,
}

impl Counts {
    pub(crate) fn verdict(&self) -> String {
        let Self { passed, differs, failed, not_run, .. } = self;
        match differs {
            0 => format!("{passed} passed, {failed} failed"),
            _ => format!("{passed} passed, {differs} differ, {not_run} not made, {failed} failed"),
        }
    }
}

impl Report {
    pub(crate) fn new(mode: Mode, wall: Option<Wall>, quick: bool) -> Self {
        Self {
            mode,
            wall,
            quick,
            rows: Vec::new(),
            mutants: Vec::new(),
            not_applicable: Vec::new(),
            later: Vec::new(),
            shortened: Vec::new(),
        }
    }

    pub(crate) fn note_absent(&mut self, catalogue: &Catalogue) {
        for (id, case) in catalogue.ordered() {
            let said = |reason: &String| (id.to_owned(), reason.clone());
            self.not_applicable.extend(case.na.as_ref().map(said));
            self.later.extend(case.later.as_ref().map(said));
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let rows = |is: &dyn Fn(&Row) -> bool| self.rows.iter().filter(|row| is(row)).count();
        let mutants = self.mutants.iter().filter(|mutant| mutant.passed() && !mutant.is_excused()).count();
        let excused = self.mutants.iter().filter(|mutant| mutant.passed() && mutant.is_excused()).count();
        let not_run = rows(&|row| row.was_not_run());
        let passed = rows(&Row::passed) + mutants;
        Counts {
            held: rows(&|row| matches!(row.wall, Seen::Held(_))),
            controls_broke: rows(&|row| matches!(row.control, Seen::Broke(_))),
            without_control: rows(&|row| matches!(row.control, Seen::Without(_)) && !row.was_not_run()),
            not_run,
            errors: rows(&Row::is_error),
            passed,
            differs: rows(&|row| row.differs.is_some()),
            failed: rows(&Row::has_failed) + self.mutants.len() - mutants - excused,
        }
    }

    /// Killed, and how many there are to kill: all but those without which no sandbox can be made, and those that the
    /// mode does not have. A control with a reason is not killed, and still counts as one that should be.
    pub(crate) fn score(&self) -> (usize, usize) {
        let killed =
            self.mutants.iter().filter(|mutant| mutant.reason.is_none() && mutant.is_killed()).count();
        let counts = |mutant: &&Mutant| mutant.is_here && !mutant.is_inseparable;
        (killed, self.mutants.iter().filter(counts).count())
    }

    pub(crate) fn markdown(&self) -> String {
        let counts = self.counts();
        let by = match self.mode {
            Mode::RootV1 => "make attack ARGS='--markdown docs/results/attack.md'",
            Mode::RootV2 | Mode::RootlessV2 => "ATTACK_FULL=1 make test-vm",
        };
        let mut text = format!(
            "# Attacks on the native backend and on the service: {}\n\nWritten by `{by}`. *Wall*: the attack against \
             every control, which must hold. *Control*: the same attack with exactly the controls in the last column left out, \
             which must work (broke); otherwise the first would prove nothing. Attacks on the service are made on a `cofferdam \
             serve`, and again on *the twin*: a server of the suite's own that speaks the same and defends nothing.\n\n",
            self.mode
        );
        let _ = writeln!(text, "{}\n", self.summary());
        text.push_str("| case | attack | wall | control | left out |\n| --- | --- | --- | --- | --- |\n");
        for row in &self.rows {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                row.case,
                row.what,
                row.wall.word(),
                row.control.word(),
                left_out(row)
            );
        }
        text.push_str("\n## Mutations\nEach control left out, and what noticed.\n\n");
        text.push_str("| control | noticed by | row | strict |\n| --- | --- | --- | --- |\n");
        for mutant in &self.mutants {
            let [noticed, row, strict] = mutant_words(mutant);
            let _ = writeln!(text, "| {} | {noticed} | {row} | {strict} |", mutant.control);
        }
        text.push_str("\n## Not in this mode\n\n");
        for row in self.rows.iter().filter(|row| row.was_not_run()) {
            let _ = writeln!(text, "- `{}`: {}", row.what, row.wall.detail());
        }
        for mutant in self.mutants.iter().filter(|mutant| !mutant.is_here) {
            let reason = mutant.reason.as_deref().unwrap_or_default();
            let _ = writeln!(text, "- control `{}`: {reason}", mutant.control);
        }
        if !self.shortened.is_empty() {
            text.push_str("\n## Shortened\n\n");
            for (what, how) in &self.shortened {
                let _ = writeln!(text, "- `{what}`: {how}");
            }
        }
        for (title, list) in [("Not applicable", &self.not_applicable), ("Later", &self.later)] {
            let _ = writeln!(text, "\n## {title}\n");
            for (case, reason) in list {
                let _ = writeln!(text, "- `{case}`: {reason}");
            }
        }
        let _ = writeln!(text, "\nattacks: {}", counts.verdict());
        text
    }

    pub(crate) fn summary(&self) -> String {
        let counts = self.counts();
        let (killed, all) = self.score();
        let mut text = format!(
            "{}{}: {} attacks: {} held, {} controls broke, {} without control, {} errors, {} n/a in this mode; cases n/a {}, later {}",
            self.mode,
            self.wall.map(|wall| format!(", {wall}")).unwrap_or_default(),
            self.rows.len(),
            counts.held,
            counts.controls_broke,
            counts.without_control,
            counts.errors,
            counts.not_run,
            self.not_applicable.len(),
            self.later.len()
        );
        let in_state = |state: State| {
            let here = || self.rows.iter().filter(move |row| row.place == Place::Session(state));
            let (held, run) =
                (here().filter(|row| row.passed()).count(), here().filter(|row| !row.was_not_run()).count());
            format!("{} {held} of {run}", state.name())
        };
        if self.rows.iter().any(|row| row.place != Place::Run) {
            let _ = write!(text, "\nin sessions: {}", State::ALL.map(in_state).join(", "));
        }
        if !self.mutants.is_empty() {
            let killed_mutants = || self.mutants.iter().filter(|mutant| mutant.reason.is_none());
            let alone = killed_mutants()
                .filter(|mutant| mutant.with.is_empty() && !mutant.killed_by.is_empty())
                .count();
            let by_golden = killed_mutants().filter(|mutant| mutant.is_killed_by_golden_only()).count();
            let _ = write!(
                text,
                "\nmutation score: {killed} of {all}; {alone} with nothing else left out, of which {by_golden} only by the \
                 golden posture"
            );
        }
        text
    }
}

fn names(controls: &[Control]) -> String {
    controls.iter().map(|control| control.name()).collect::<Vec<_>>().join(" ")
}

fn left_out(row: &Row) -> String {
    if let Some(twin) = &row.twin {
        return twin.clone();
    }
    if let Place::Session(state) = row.place {
        return format!("in a {} session", state.name());
    }
    if row.took_everything() {
        return "everything".to_owned();
    }
    match (row.left_out.is_empty(), row.behind.is_empty()) {
        (true, _) => String::new(),
        (false, true) => names(&row.left_out),
        (false, false) => format!("{} (behind {})", names(&row.left_out), names(&row.behind)),
    }
}

/// What noticed, what the report's row did, what strict mode did.
pub(crate) fn mutant_words(mutant: &Mutant) -> [String; 3] {
    let by = |list: &[String]| {
        list.iter().map(|name| name.split(' ').next().unwrap_or("")).collect::<Vec<_>>().join(" ")
    };
    let noticed = match (&mutant.killed_by[..], &mutant.killed_behind[..], &mutant.reason) {
        (_, _, Some(reason)) => format!("({reason})"),
        ([], [], None) => "NOTHING".to_owned(),
        ([], behind, _) => format!("behind other walls: {}", by(behind)),
        (alone, _, _) => by(alone),
    };
    let row =
        if mutant.row.is_ok() { "flips".to_owned() } else { mutant.row.clone().err().unwrap_or_default() };
    let strict = match &mutant.strict {
        None => "-".to_owned(),
        Some(Ok(_)) => "refused".to_owned(),
        Some(Err(error)) => format!("NOT REFUSED: {error}"),
    };
    [noticed, row, strict]
}

/// One line of the table, at most 100 columns; what is wrong comes below it.
pub(crate) fn line(row: &Row) -> String {
    let cut = |text: &str, width: usize| -> String {
        if text.chars().count() <= width {
            text.to_owned()
        } else {
            text.chars().take(width - 1).chain(['…']).collect()
        }
    };
    let verdict = if row.was_not_run() {
        "n/a"
    } else if row.passed() {
        "ok"
    } else if row.differs.is_some() {
        "diff"
    } else {
        "FAIL"
    };
    let mut text = format!(
        "{verdict:<4} {:<10} {:<26} {:<5} {:<5} {:>6} {}",
        row.case,
        cut(&row.what, 26),
        row.wall.word(),
        row.control.word(),
        row.took_ms,
        cut(&left_out(row), 36)
    );
    if let Some(reason) = &row.differs {
        let _ = write!(text, "\n       {reason}");
    } else if row.was_not_run() {
        let _ = write!(text, "\n       not run: {}", row.wall.detail());
    } else if row.stale {
        text.push_str("\n       differs.toml says that it differs, and it does not");
    } else if !row.passed() {
        let _ =
            write!(text, "\n       wall: {}\n       control: {}", row.wall.detail(), row.control.detail());
    }
    text
}

pub(crate) const HEADING: &str = "     case       attack                     wall  ctrl      ms left out";

pub(crate) fn mutant_line(mutant: &Mutant) -> String {
    let [noticed, row, strict] = mutant_words(mutant);
    let verdict = match (mutant.passed(), mutant.is_excused()) {
        (false, _) => "FAIL",
        (true, true) => "n/a",
        (true, false) => "ok",
    };
    let noticed: String = noticed.chars().take(48).collect();
    let row: String = row.chars().take(12).collect();
    let mut text = format!(
        "{verdict:<4} {:<18} {row:<12} {:<8} {noticed}",
        mutant.control.name(),
        strict.split(':').next().unwrap_or("")
    );
    if !mutant.passed() {
        let _ = write!(text, "\n       {mutant:?}");
    }
    text
}
