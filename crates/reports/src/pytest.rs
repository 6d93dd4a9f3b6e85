//! What pytest prints. Its last line counts everything, and without it the report was cut.

use crate::collect::{Case, Collector};
use crate::lines::lines;
use crate::{End, complete, missing, truncated};
use cofferdam_core::{TestCounts, TestStatus};
use std::collections::{HashMap, HashSet};

pub(crate) fn parse(text: &str, found: &mut Collector) -> End {
    let (mut has_begun, mut counts, mut in_summary) = (false, None, false);
    let mut listed: Vec<(&str, TestStatus, Option<&str>)> = Vec::new();
    let mut why: HashMap<&str, &str> = HashMap::new();
    let mut in_short = Vec::new();
    for line in lines(text) {
        has_begun |= line.starts_with("===") && line.contains(" test session starts ");
        if line.contains(" short test summary info ") {
            in_summary = true;
        } else if let Some(summary) = summary(line) {
            counts = Some(summary);
        } else if in_summary {
            if let Some((word, rest)) = line.split_once(' ')
                && let Some(status) = status(word)
            {
                let (name, message) = rest.split_once(" - ").unwrap_or((rest, ""));
                why.insert(name, message);
                in_short.push((name, status));
            }
        } else if let Some(test) = verbose(line) {
            listed.push(test);
        }
    }
    let names: HashSet<&str> = listed.iter().map(|(name, ..)| *name).collect();
    let rest = in_short.into_iter().filter(|(name, _)| !names.contains(name));
    let all = listed.iter().copied().chain(rest.map(|(name, status)| (name, status, None)));
    for (name, status, reason) in all {
        let message = reason.or_else(|| why.get(name).copied());
        let file = name.split_once("::").map(|(file, _)| file);
        found.test(Case { message, file, ..Case::new(name, status) });
    }
    match (has_begun, counts) {
        (_, Some(counts)) => {
            found.set_counts(counts);
            complete()
        }
        (true, None) => truncated("it has no line that counts the tests"),
        (false, None) => missing("there is no report of pytest in the output"),
    }
}

fn status(word: &str) -> Option<TestStatus> {
    Some(match word {
        "PASSED" | "XPASS" => TestStatus::Passed,
        "FAILED" => TestStatus::Failed,
        "SKIPPED" | "XFAIL" => TestStatus::Skipped,
        "ERROR" => TestStatus::Errored,
        _ => return None,
    })
}

/// `file::name STATUS (why) [ 14%]`.
fn verbose(line: &str) -> Option<(&str, TestStatus, Option<&str>)> {
    let rest = line.trim_end();
    let rest = match rest.rsplit_once(" [") {
        Some((rest, percent)) if percent.ends_with("%]") => rest.trim_end(),
        _ => rest,
    };
    let (rest, why) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        Some((rest, why)) => (rest, Some(why)),
        None => (rest, None),
    };
    let (name, word) = rest.rsplit_once(' ')?;
    let name = name.trim_end();
    name.contains("::").then_some(())?;
    Some((name, status(word)?, why))
}

/// `== 1 failed, 3 passed in 0.06s ==`, with `-q` without the marks around it.
fn summary(line: &str) -> Option<TestCounts> {
    let text = line.trim().trim_matches('=').trim();
    let (list, time) = text.rsplit_once(" in ")?;
    time.split(['s', ' ']).next()?.parse::<f64>().ok()?;
    let mut counts = TestCounts::default();
    if list == "no tests ran" {
        return Some(counts);
    }
    for part in list.split(", ") {
        let (count, word) = part.split_once(' ')?;
        let count: u64 = count.parse().ok()?;
        let field = match word {
            "passed" | "xpassed" => &mut counts.passed,
            "failed" => &mut counts.failed,
            "skipped" | "xfailed" => &mut counts.skipped,
            "error" | "errors" => &mut counts.errored,
            "deselected" | "warning" | "warnings" | "rerun" => continue,
            _ => return None,
        };
        *field = field.saturating_add(count);
        counts.total = counts.total.saturating_add(count);
    }
    Some(counts)
}
