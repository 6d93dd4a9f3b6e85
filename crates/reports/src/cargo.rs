//! What `cargo test` prints: for each binary a listing, what the failed ones wrote, and a summary.
//!
//! A test's own output may look like a listing, so lines count only where the listing is, and what they come to is
//! held against the summary.

use crate::collect::{Case, Collector};
use crate::lines::{Message, between, lines};
use crate::{End, broken, complete, missing, truncated};
use cofferdam_core::TestStatus;
use std::collections::HashMap;

/// The tests of one binary.
#[derive(Default)]
struct Section<'t> {
    announced: u64,
    listed: Vec<(&'t str, TestStatus, Option<&'t str>)>,
    /// The test that is named by the last line of the listing, and has not ended. Only one at a time is named before.
    running: Option<&'t str>,
    messages: HashMap<&'t str, String>,
    /// The failed test whose output is being read.
    writing: Option<(&'t str, Message)>,
    is_listing: bool,
}

pub(crate) fn parse(text: &str, found: &mut Collector) -> End {
    let (mut section, mut has_begun) = (None::<Section<'_>>, false);
    let mut end = None;
    for line in lines(text) {
        if let Some(count) = announced(line) {
            if let Some(open) = section.take() {
                end.get_or_insert(open.cut(found));
            }
            has_begun = true;
            section = Some(Section { announced: count, is_listing: true, ..Section::default() });
            continue;
        }
        let Some(open) = &mut section else { continue };
        if let Some(summary) = line.strip_prefix("test result: ") {
            open.write_down();
            let wrong = open.check(summary);
            if let Some(open) = section.take() {
                open.add_to(found);
            }
            end = end.or(wrong);
        } else {
            open.line(line);
        }
    }
    if let Some(open) = section {
        end.get_or_insert(open.cut(found));
    }
    match has_begun {
        true => end.unwrap_or_else(complete),
        false => missing("no test binary has run"),
    }
}

fn announced(line: &str) -> Option<u64> {
    let count = line.strip_prefix("running ")?;
    count.strip_suffix(" tests").or_else(|| count.strip_suffix(" test"))?.parse().ok()
}

impl<'t> Section<'t> {
    fn line(&mut self, line: &'t str) {
        if self.is_listing {
            if line.is_empty() && !self.listed.is_empty() && self.listed.len() as u64 >= self.announced {
                self.is_listing = false;
            } else if let Some(test) = listed(line) {
                self.listed.push(test);
                self.running = None;
            } else if let Some((name, _)) =
                line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "))
            {
                self.running = Some(name);
            }
            return;
        }
        if let Some(name) = between(line, "---- ", " stdout ----") {
            self.write_down();
            self.writing = Some((name, Message::default()));
        } else if line == "failures:" {
            self.write_down();
        } else if let Some((_, message)) = &mut self.writing {
            message.line(line);
        }
    }

    fn write_down(&mut self) {
        if let Some((name, mut message)) = self.writing.take()
            && let Some(text) = message.take()
        {
            self.messages.insert(name, text);
        }
    }

    /// What is wrong with a listing, by its summary.
    fn check(&self, summary: &str) -> Option<End> {
        let count = |word: &str| -> u64 {
            let mut parts = summary.split(['.', ';']).map(str::trim);
            let part = parts.find_map(|part| part.strip_suffix(word));
            part.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
        };
        let seen = |wanted| self.listed.iter().filter(|(_, status, _)| *status == wanted).count() as u64;
        let told = (count(" passed") + count(" measured"), count(" failed"), count(" ignored"));
        let listed = (seen(TestStatus::Passed), seen(TestStatus::Failed), seen(TestStatus::Skipped));
        (told != listed).then(|| {
            let (a, b, c) = listed;
            broken(format!(
                "a listing has {a} passed, {b} failed and {c} ignored, and its summary says {summary}"
            ))
        })
    }

    fn add_to(self, found: &mut Collector) {
        for (name, status, why) in self.listed {
            let message = why.or_else(|| self.messages.get(name).map(String::as_str));
            let file = documented(name).or_else(|| message.and_then(place));
            found.test(Case { message, file, ..Case::new(name, status) });
        }
    }

    /// One whose binary has ended before its summary.
    fn cut(mut self, found: &mut Collector) -> End {
        self.write_down();
        let reason = format!("{} tests were announced and {} have ended", self.announced, self.listed.len());
        let running = self.running.take();
        self.add_to(found);
        if let Some(name) = running {
            let message = Some("it did not come to an end");
            found.test(Case { message, ..Case::new(name, TestStatus::Errored) });
        }
        truncated(reason)
    }
}

/// The file of an example in documentation: `src/lib.rs - double (line 1)`.
fn documented(name: &str) -> Option<&str> {
    let (file, _) = name.split_once(" - ")?;
    file.ends_with(".rs").then_some(file)
}

/// The file of a panic: before its message, or behind it where an older compiler has put that in quotes.
fn place(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once(" panicked at ")?;
    match rest.starts_with('\'') {
        true => rest.lines().find_map(|line| file(line.rsplit_once("', ")?.1)),
        false => file(rest.lines().next()?.trim_end_matches(':')),
    }
}

/// What stands before the numbers of a line and a column.
fn file(place: &str) -> Option<&str> {
    let mut parts = place.rsplitn(3, ':');
    let mut is_number = || parts.next().is_some_and(|part| part.parse::<u32>().is_ok());
    let is_place = is_number() && is_number();
    parts.next().filter(|_| is_place)
}

fn listed(line: &str) -> Option<(&str, TestStatus, Option<&str>)> {
    let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let (status, why) = match result {
        "ok" => (TestStatus::Passed, None),
        "FAILED" => (TestStatus::Failed, None),
        _ if result.starts_with("bench:") => (TestStatus::Passed, None),
        _ => {
            let why = result.strip_prefix("ignored")?;
            (TestStatus::Skipped, why.strip_prefix(", "))
        }
    };
    Some((name.strip_suffix(" - should panic").unwrap_or(name), status, why))
}
