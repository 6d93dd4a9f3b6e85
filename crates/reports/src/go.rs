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
    /// The test in whose output the package's last line is: its process exited in it, and go calls both a success.
    ends_in: Option<String>,
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

const NOT_ENDED: &str = "it did not come to an end";

/// Follows one event, and returns how many tests are open after it.
fn take(event: Event, package: &mut Package, open: usize, found: &mut Collector) -> usize {
    let status = match event.action.as_str() {
        "pass" | "bench" => Some(TestStatus::Passed),
        "fail" => Some(TestStatus::Failed),
        "skip" => Some(TestStatus::Skipped),
        _ => None,
    };
    match (event.test.is_empty(), status) {
        (false, Some(_)) if package.ends_in.as_ref() == Some(&event.test) => {
            package.is_over = true;
            open.saturating_sub(package.leave(&event.package, found))
        }
        (false, Some(status)) => {
            let message = package.tests.remove(&event.test).and_then(|mut message| message.take());
            package.has_failed |= status == TestStatus::Failed;
            let message = message.filter(|_| status != TestStatus::Passed);
            let name = format!("{}.{}", event.package, event.test);
            add(&name, status, event.time_ms(), message.as_deref(), found);
            open.saturating_sub(1)
        }
        (false, None) if event.action == "run" => {
            open + usize::from(package.tests.insert(event.test, Message::default()).is_none())
        }
        (false, None) => {
            if event.action == "output" {
                package.said(event);
            }
            open
        }
        (true, Some(status)) => {
            package.is_over = true;
            let left = package.leave(&event.package, found);
            // It was not built, or its process failed by itself.
            if status == TestStatus::Failed && !package.has_failed {
                let said = package.message.take();
                let case = Case::new(&event.package, TestStatus::Errored);
                found.test(Case { time_ms: event.time_ms(), message: said.as_deref(), ..case });
            }
            open.saturating_sub(left)
        }
        (true, None) => {
            package.message.piece(&event.output);
            open
        }
    }
}

impl Event {
    fn time_ms(&self) -> Option<f64> {
        self.seconds.map(|seconds| seconds * 1000.0)
    }
}

impl Package {
    /// What a test has written, or go of it.
    fn said(&mut self, event: Event) {
        let line = event.output.trim_end();
        if package_end(line).is_some_and(|(_, name)| name == event.package) {
            self.ends_in = Some(event.test);
            return;
        }
        // It was the output of another go, which the test has started.
        if result(line).is_some_and(|(name, ..)| name == event.test) {
            self.ends_in = None;
        }
        if let Some(message) = self.tests.get_mut(&event.test).filter(|_| is_said(&event.output)) {
            message.piece(&event.output);
        }
    }

    /// Adds the tests that have no end of their own, and returns how many they are.
    fn leave(&mut self, name: &str, found: &mut Collector) -> usize {
        let left = std::mem::take(&mut self.tests);
        self.has_failed |= !left.is_empty();
        let count = left.len();
        for (test, mut message) in left {
            let said = message.take().unwrap_or_else(|| NOT_ENDED.to_owned());
            add(&format!("{name}.{test}"), TestStatus::Errored, None, Some(&said), found);
        }
        count
    }
}

/// Adds a test with the file that its message speaks of.
fn add(name: &str, status: TestStatus, time_ms: Option<f64>, message: Option<&str>, found: &mut Collector) {
    let file = message.and_then(|message| message.lines().find_map(file));
    found.test(Case { time_ms, message, file, ..Case::new(name, status) });
}

/// The file of `double_test.go:7: 3 is not 4`, or of a test in the trace of a panic. Go names no file otherwise.
fn file(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let end = line.find(".go:")? + ".go".len();
    let (file, rest) = (&line[..end], &line[end + 1..]);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_said = rest[digits..].starts_with(": ") || rest[digits..].trim().is_empty();
    let is_frame = file.ends_with("_test.go") && rest[digits..].starts_with(" +0x");
    (digits > 0 && !file.contains(' ') && (is_said || is_frame)).then_some(file)
}

/// Whether a piece of output is more than what go says by itself.
fn is_said(output: &str) -> bool {
    let text = output.trim_start();
    !["=== RUN", "=== PAUSE", "=== CONT", "--- "].iter().any(|own| text.starts_with(own))
}

/// A package that does not compile, or of which something is missing.
fn unbuilt(line: &str) -> Option<&str> {
    let package = line.strip_prefix("FAIL\t")?;
    package.strip_suffix(" [build failed]").or_else(|| package.strip_suffix(" [setup failed]"))
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
            add(name, status, time_ms, message.as_deref(), found);
        } else if let Some((status, package)) = package_end(line) {
            ended += 1;
            for (name, mut message) in std::mem::take(&mut open) {
                failed_here = true;
                let said = message.take().unwrap_or_else(|| NOT_ENDED.to_owned());
                add(name, TestStatus::Errored, None, Some(&said), found);
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
