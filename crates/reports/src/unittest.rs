//! What Python's own `unittest` prints. Its summary counts everything, and without it the report was cut.

use crate::collect::{Case, Collector};
use crate::lines::{Message, between, lines};
use crate::{End, complete, missing, truncated};
use cofferdam_core::{TestCounts, TestStatus};
use std::collections::{HashMap, HashSet};

#[derive(Default)]
struct State<'t> {
    listed: Vec<(&'t str, TestStatus, Option<&'t str>)>,
    /// What is told at length below the listing: the traces of what went wrong.
    told: Vec<(&'t str, TestStatus, Message)>,
    /// A line that may be a test's name, whose result is on the next one.
    pending: &'t str,
    ran: Option<u64>,
    counts: Option<TestCounts>,
}

pub(crate) fn parse(text: &str, found: &mut Collector) -> End {
    let mut state = State::default();
    lines(text).for_each(|line| state.line(line));
    let State { listed, told, ran, counts, .. } = state;
    let names: HashSet<&str> = listed.iter().map(|(name, ..)| *name).collect();
    let told: Vec<_> = told.into_iter().map(|(name, status, mut m)| (name, status, m.take())).collect();
    let said: HashMap<&str, &str> =
        told.iter().filter_map(|(name, _, text)| Some((*name, text.as_deref()?))).collect();
    for (name, status, why) in &listed {
        let message = why.or_else(|| said.get(name).copied()).filter(|_| *status != TestStatus::Passed);
        found.test(Case { message, ..Case::new(name, *status) });
    }
    // Without -v only what goes wrong has a name.
    for (name, status, text) in told.iter().filter(|(name, ..)| !names.contains(name)) {
        found.test(Case { message: text.as_deref(), ..Case::new(name, *status) });
    }
    match (counts, ran, found.counts().total) {
        (Some(counts), ..) => {
            found.set_counts(counts);
            complete()
        }
        (None, None, 0) => missing("there is no report of unittest in the output"),
        _ => truncated("it has no line that counts the tests"),
    }
}

impl<'t> State<'t> {
    fn line(&mut self, line: &'t str) {
        if let Some(total) = line.strip_prefix("Ran ").and_then(|rest| rest.split(' ').next()?.parse().ok()) {
            self.ran = Some(total);
            self.pending = "";
        } else if let Some(counts) = self.ran.and_then(|total| summary(line, total)) {
            self.counts = Some(counts);
        } else if let Some((status, name)) = heading(line) {
            self.told.push((name, status, Message::default()));
        } else if let Some((_, _, message)) = self.told.last_mut() {
            if !line.starts_with("-----") && !line.starts_with("=====") {
                message.line(line);
            }
        } else if let Some((before, status, why)) = result(line) {
            // A test with a sentence of its own has its result behind that.
            let name = if is_name(before) { before } else { self.pending };
            if is_name(name) {
                self.listed.push((name, status, why));
            }
        } else {
            self.pending = line.trim();
        }
    }
}

/// `test_a (module.Class.test_a)`, and what a subtest adds to it.
fn is_name(text: &str) -> bool {
    text.split_once(" (").is_some_and(|(name, rest)| !name.contains(' ') && rest.contains(')'))
}

fn result(line: &str) -> Option<(&str, TestStatus, Option<&str>)> {
    let (name, word) = line.trim().rsplit_once(" ... ")?;
    let (status, why) = match word {
        "ok" => (TestStatus::Passed, None),
        "FAIL" | "unexpected success" => (TestStatus::Failed, None),
        "ERROR" => (TestStatus::Errored, None),
        "expected failure" => (TestStatus::Skipped, None),
        _ => {
            let why = word.strip_prefix("skipped")?.trim();
            (TestStatus::Skipped, between(why, "'", "'").or(Some(why)))
        }
    };
    Some((name, status, why))
}

fn heading(line: &str) -> Option<(TestStatus, &str)> {
    let (status, name) = match line.strip_prefix("FAIL: ") {
        Some(name) => (TestStatus::Failed, name),
        None => (TestStatus::Errored, line.strip_prefix("ERROR: ")?),
    };
    Some((status, name))
}

/// `OK`, `OK (skipped=1)` or `FAILED (failures=2, errors=1)`.
fn summary(line: &str, total: u64) -> Option<TestCounts> {
    let (word, rest) = line.split_once(" (").map_or((line, ""), |(word, rest)| (word, rest));
    if !["OK", "FAILED", "NO TESTS RAN"].contains(&word) {
        return None;
    }
    let mut counts = TestCounts { total, ..TestCounts::default() };
    for part in rest.trim_end_matches(')').split(", ") {
        let Some((name, count)) = part.split_once('=') else { continue };
        let count: u64 = count.parse().ok()?;
        let field = match name {
            "failures" | "unexpected successes" => &mut counts.failed,
            "errors" => &mut counts.errored,
            "skipped" | "expected failures" => &mut counts.skipped,
            _ => return None,
        };
        *field = field.saturating_add(count);
    }
    if word == "FAILED" && counts.not_passed() == 0 {
        return None;
    }
    // Subtests that fail are counted each, and their test is one.
    let bad = counts.not_passed().saturating_add(counts.skipped);
    counts.passed = total.saturating_sub(bad);
    counts.total = counts.passed.saturating_add(bad);
    Some(counts)
}
