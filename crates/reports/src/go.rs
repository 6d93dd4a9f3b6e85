//! What `go test` prints: lines of JSON with `-json`, and text without. A package that has no end of its own was cut,
//! and a test that began in a package that ended without it did not come to an end.

use crate::collect::{Case, Collector};
use crate::lines::{Message, lines};
use crate::{End, broken, complete, missing, truncated};
use cofferdam_core::TestStatus;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Tests and packages that are open at once. Past it, nothing new is followed, and the report is broken.
const MAX_OPEN: usize = 100_000;

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "Action")]
    action: String,
    #[serde(rename = "Package", default)]
    package: String,
    #[serde(rename = "Test", default)]
    test: String,
    #[serde(rename = "Elapsed", default)]
    seconds: Option<f64>,
    #[serde(rename = "Output", default)]
    output: String,
}

pub(crate) fn parse(text: &str, found: &mut Collector) -> End {
    match lines(text).any(|line| line.starts_with('{') && line.contains("\"Action\"")) {
        true => parse_json(text, found),
        false => parse_text(text, found),
    }
}

#[derive(Default)]
struct Package {
    tests: BTreeMap<String, Message>,
    message: Message,
    has_failed: bool,
    is_over: bool,
}

fn parse_json(text: &str, found: &mut Collector) -> End {
    let (mut packages, mut open) = (BTreeMap::<String, Package>::new(), 0);
    let mut unread = 0_u64;
    for line in lines(text).filter(|line| !line.trim().is_empty()) {
        let Ok(event) = serde_json::from_str::<Event>(line) else {
            match unbuilt(line) {
                Some(name) => unbuilt_package(name, found),
                None => unread += u64::from(line.starts_with('{')),
            }
            continue;
        };
        if event.package.is_empty() {
            continue;
        }
        if open > MAX_OPEN || packages.len() > MAX_OPEN {
            return broken(format!("more than {MAX_OPEN} tests are open at once"));
        }
        let package = packages.entry(event.package.clone()).or_default();
        open = take(event, package, open, found);
    }
    let cut = packages.iter().find(|(_, package)| !package.is_over).map(|(name, _)| name.clone());
    match (cut, unread) {
        (Some(name), _) => truncated(format!("the package {name} has no end")),
        (None, 1..) => broken(format!("{unread} lines are not what go test writes")),
        (None, 0) => complete(),
    }
}

/// Follows one event, and returns how many tests are open after it.
fn take(event: Event, package: &mut Package, mut open: usize, found: &mut Collector) -> usize {
    let status = match event.action.as_str() {
        "pass" | "bench" => Some(TestStatus::Passed),
        "fail" => Some(TestStatus::Failed),
        "skip" => Some(TestStatus::Skipped),
        _ => None,
    };
    let time_ms = event.seconds.map(|seconds| seconds * 1000.0);
    if !event.test.is_empty() {
        let name = format!("{}.{}", event.package, event.test);
        match (event.action.as_str(), status) {
            (_, Some(status)) => {
                let message = package.tests.remove(&event.test).and_then(|mut message| message.take());
                open = open.saturating_sub(1);
                package.has_failed |= status == TestStatus::Failed;
                let message = message.filter(|_| status != TestStatus::Passed);
                found.test(Case { time_ms, message: message.as_deref(), ..Case::new(&name, status) });
            }
            ("run", None) => {
                open += usize::from(package.tests.insert(event.test, Message::default()).is_none());
            }
            ("output", None) => {
                if let Some(message) = package.tests.get_mut(&event.test).filter(|_| is_said(&event.output)) {
                    message.piece(&event.output);
                }
            }
            _ => {}
        }
        return open;
    }
    match status {
        None => package.message.piece(&event.output),
        Some(status) => {
            package.is_over = true;
            let left = std::mem::take(&mut package.tests);
            open = open.saturating_sub(left.len());
            package.has_failed |= !left.is_empty();
            for (test, mut message) in left {
                let name = format!("{}.{test}", event.package);
                let said = message.take().unwrap_or_else(|| "it did not come to an end".to_owned());
                found.test(Case { message: Some(&said), ..Case::new(&name, TestStatus::Errored) });
            }
            // It was not built, or its process failed by itself.
            if status == TestStatus::Failed && !package.has_failed {
                let said = package.message.take();
                let case = Case::new(&event.package, TestStatus::Errored);
                found.test(Case { time_ms, message: said.as_deref(), ..case });
            }
        }
    }
    open
}

/// Whether a piece of output is more than what go says by itself.
fn is_said(output: &str) -> bool {
    let text = output.trim_start();
    !["=== RUN", "=== PAUSE", "=== CONT", "--- "].iter().any(|own| text.starts_with(own))
}

fn unbuilt(line: &str) -> Option<&str> {
    line.strip_prefix("FAIL\t")?.strip_suffix(" [build failed]")
}

fn unbuilt_package(name: &str, found: &mut Collector) {
    found.test(Case { message: Some("it could not be built"), ..Case::new(name, TestStatus::Errored) });
}

/// The text has no names of packages before their end, so the names of tests stand alone.
fn parse_text(text: &str, found: &mut Collector) -> End {
    let mut open = BTreeMap::<&str, Message>::new();
    let (mut ended, mut seen_here, mut failed_here, mut last) = (0_u64, 0_u64, false, None);
    for line in lines(text) {
        if let Some(name) = line.strip_prefix("=== RUN   ") {
            if open.len() > MAX_OPEN {
                return broken(format!("more than {MAX_OPEN} tests are open at once"));
            }
            open.insert(name, Message::default());
            last = Some(name);
        } else if let Some((name, status, time_ms)) = result(line) {
            let message = open.remove(name).and_then(|mut message| message.take());
            let message = message.filter(|_| status != TestStatus::Passed);
            failed_here |= status == TestStatus::Failed;
            seen_here += 1;
            found.test(Case { time_ms, message: message.as_deref(), ..Case::new(name, status) });
        } else if let Some((status, package)) = package_end(line) {
            ended += 1;
            for (name, mut message) in std::mem::take(&mut open) {
                failed_here = true;
                let said = message.take().unwrap_or_else(|| "it did not come to an end".to_owned());
                found.test(Case { message: Some(&said), ..Case::new(name, TestStatus::Errored) });
            }
            match status {
                TestStatus::Failed if !failed_here => unbuilt_or_failed(line, package, found),
                TestStatus::Passed if seen_here == 0 => found.test(Case::new(package, TestStatus::Passed)),
                _ => {}
            }
            (seen_here, failed_here, last) = (0, false, None);
        } else if let Some(message) = last.and_then(|name| open.get_mut(name)) {
            message.line(line.trim());
        }
    }
    match (ended, open.is_empty() && seen_here == 0) {
        (0, true) => missing("no package of tests has ended"),
        (_, false) => truncated("a package of tests has no end"),
        _ => complete(),
    }
}

fn unbuilt_or_failed(line: &str, package: &str, found: &mut Collector) {
    match unbuilt(line) {
        Some(name) => unbuilt_package(name, found),
        None => found.test(Case::new(package, TestStatus::Errored)),
    }
}

fn result(line: &str) -> Option<(&str, TestStatus, Option<f64>)> {
    let rest = line.trim_start().strip_prefix("--- ")?;
    let (word, rest) = rest.split_once(": ")?;
    let status = match word {
        "PASS" => TestStatus::Passed,
        "FAIL" => TestStatus::Failed,
        "SKIP" => TestStatus::Skipped,
        _ => return None,
    };
    let (name, time) = rest.rsplit_once(" (")?;
    let seconds: Option<f64> = time.strip_suffix("s)").and_then(|time| time.parse().ok());
    Some((name, status, seconds.map(|seconds| seconds * 1000.0)))
}

fn package_end(line: &str) -> Option<(TestStatus, &str)> {
    let (word, rest) = line.split_once('\t')?;
    let status = match word.trim_end() {
        "ok" => TestStatus::Passed,
        "FAIL" => TestStatus::Failed,
        "?" => TestStatus::Skipped,
        _ => return None,
    };
    Some((status, rest.split(['\t', ' ']).next()?))
}
