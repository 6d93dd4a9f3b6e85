//! The Test Anything Protocol, with subtests as node writes them, and several files one after the other as prove does.
//!
//! Its end is told by its plan: as many points as it names, or it is not whole.

use crate::collect::{Case, Collector};
use crate::lines::{Message, lines};
use crate::{End, broken, complete, missing, truncated};
use cofferdam_core::TestStatus;

/// Subtests in subtests.
const MAX_DEPTH: usize = 32;

/// One level of points with its plan.
#[derive(Default)]
struct Level {
    plan: Option<u64>,
    points: u64,
    is_plan_last: bool,
    /// The name of the subtest that was announced last.
    announced: String,
    /// Whether a point of it, or below it, has failed.
    has_failed: bool,
    /// Whether points were seen below it since its last point.
    has_children: bool,
    child_has_failed: bool,
}

/// A point whose description may still come.
struct Point {
    name: String,
    status: TestStatus,
    message: Message,
    time_ms: Option<f64>,
    file: Option<String>,
    /// Of the block of YAML that is open, if one is: how far it is indented.
    block: Option<usize>,
    /// Whether the lines of a long value are being read.
    is_long: bool,
}

#[derive(Default)]
struct State {
    levels: Vec<Level>,
    point: Option<Point>,
    has_begun: bool,
}

pub(crate) fn parse(text: &str, found: &mut Collector) -> End {
    let mut state = State { levels: vec![Level::default()], ..State::default() };
    for line in lines(text) {
        if let Err(end) = state.line(line, found) {
            state.flush(found);
            return end;
        }
    }
    state.flush(found);
    if state.levels.len() > 1 {
        return truncated("it ends in the middle of a subtest");
    }
    match state.levels.pop() {
        _ if !state.has_begun => missing("there is no TAP in the output"),
        Some(level) => level.check().err().unwrap_or_else(complete),
        None => broken("it has no points"),
    }
}

impl Level {
    fn check(&self) -> Result<(), End> {
        match self.plan {
            Some(plan) if plan == self.points => Ok(()),
            Some(plan) if plan > self.points => {
                Err(truncated(format!("the plan has {plan} points, and {} were seen", self.points)))
            }
            Some(plan) => Err(broken(format!("the plan has {plan} points, and {} were seen", self.points))),
            None => Err(truncated(format!("{} points were seen and no plan", self.points))),
        }
    }
}

impl State {
    fn line(&mut self, line: &str, found: &mut Collector) -> Result<(), End> {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let text = line.trim();
        if let Some(point) = &mut self.point
            && point.takes(indent, text)
        {
            return Ok(());
        }
        // Subtests are indented by four.
        let depth = indent / 4;
        if !indent.is_multiple_of(4) || depth > self.levels.len() {
            return Ok(());
        }
        if let Some(name) = text.strip_prefix("# Subtest: ") {
            self.flush(found);
            self.at(depth)?.announced = unescape(name);
        } else if let Some(reason) = text.strip_prefix("Bail out!") {
            return Err(truncated(format!("it bailed out:{reason}")));
        } else if let Some(plan) = plan(text) {
            self.flush(found);
            self.has_begun = true;
            self.plan(depth, plan)?;
        } else if let Some((is_ok, rest)) = point(text) {
            self.flush(found);
            self.has_begun = true;
            self.begin(depth, is_ok, rest)?;
        }
        Ok(())
    }

    /// The level at a depth; deeper ones end here.
    fn at(&mut self, depth: usize) -> Result<&mut Level, End> {
        if depth >= MAX_DEPTH {
            return Err(broken(format!("it has subtests more than {MAX_DEPTH} deep")));
        }
        while self.levels.len() > depth + 1 {
            let ended = self.levels.pop().unwrap_or_default();
            ended.check()?;
            if let Some(parent) = self.levels.last_mut() {
                parent.has_children = true;
                parent.child_has_failed |= ended.has_failed;
            }
        }
        while self.levels.len() <= depth {
            self.levels.push(Level::default());
        }
        Ok(&mut self.levels[depth])
    }

    fn plan(&mut self, depth: usize, plan: u64) -> Result<(), End> {
        let level = self.at(depth)?;
        if level.plan.is_some() {
            level.check()?;
            *level = Level::default();
        }
        level.plan = Some(plan);
        level.is_plan_last = level.points > 0;
        Ok(())
    }

    fn begin(&mut self, depth: usize, is_ok: bool, rest: &str) -> Result<(), End> {
        let level = self.at(depth)?;
        // The next file of several, whose plans come last.
        if level.is_plan_last && level.plan == Some(level.points) {
            *level = Level::default();
        }
        level.points += 1;
        let (name, directive) = split(rest);
        let status = match (directive, is_ok) {
            (Some(("skip", _)), _) | (Some(("todo", _)), false) => TestStatus::Skipped,
            (_, true) => TestStatus::Passed,
            (_, false) => TestStatus::Failed,
        };
        level.has_failed |= status == TestStatus::Failed || level.child_has_failed;
        // A group is told by what is in it, unless it fails by itself.
        let is_group = level.has_children && (status != TestStatus::Failed || level.child_has_failed);
        level.has_children = false;
        level.child_has_failed = false;
        if is_group {
            return Ok(());
        }
        let above = &self.levels[..depth];
        let mut parts: Vec<&str> = above.iter().map(|level| level.announced.as_str()).collect();
        let number = self.levels[depth].points.to_string();
        parts.push(if name.is_empty() { &number } else { &name });
        parts.retain(|part| !part.is_empty());
        let mut message = Message::default();
        if let Some((_, why)) = directive.filter(|(_, why)| !why.is_empty()) {
            message.line(why);
        }
        let name = parts.join(" > ");
        self.point =
            Some(Point { name, status, message, time_ms: None, file: None, block: None, is_long: false });
        Ok(())
    }

    fn flush(&mut self, found: &mut Collector) {
        if let Some(mut point) = self.point.take() {
            found.test(Case {
                name: &point.name,
                status: point.status,
                time_ms: point.time_ms,
                message: point.message.take().as_deref().filter(|_| point.status != TestStatus::Passed),
                file: point.file.as_deref(),
            });
        }
    }
}

impl Point {
    /// Whether a line belongs to the block of YAML below the point, which says more of it.
    fn takes(&mut self, indent: usize, text: &str) -> bool {
        let Some(block) = self.block else {
            let opens = text == "---" && indent >= 2;
            self.block = opens.then_some(indent);
            return opens;
        };
        if text == "..." && indent == block {
            self.block = None;
            return true;
        }
        if !text.is_empty() && indent < block {
            self.block = None;
            return false;
        }
        if self.is_long && (indent > block || text.is_empty()) {
            self.message.line(text);
            return true;
        }
        self.is_long = false;
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.trim();
        let bare = crate::lines::between(value, "'", "'").unwrap_or(value);
        match name {
            "error" | "message" if value.starts_with('|') || value.starts_with('>') => self.is_long = true,
            "error" | "message" => self.message.line(bare),
            "duration_ms" => self.time_ms = value.parse().ok(),
            "location" | "file" => self.file = Some(bare.to_owned()),
            _ => {}
        }
        true
    }
}

fn plan(text: &str) -> Option<u64> {
    let rest = text.strip_prefix("1..")?;
    rest.split([' ', '#']).next()?.parse().ok()
}

/// Whether a point is ok, and what follows.
fn point(text: &str) -> Option<(bool, &str)> {
    let (is_ok, rest) = match text.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, text.strip_prefix("ok")?),
    };
    // `ok` alone is what prove says of a whole file.
    (rest.starts_with(' ') || (!is_ok && rest.is_empty())).then(|| (is_ok, rest.trim_start()))
}

/// The name of a point without its number, and its directive with the reason.
fn split(rest: &str) -> (String, Option<(&'static str, &str)>) {
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = rest[digits..].trim_start();
    let rest = rest.strip_prefix("- ").unwrap_or(rest);
    let hash = rest.match_indices('#').find(|(at, _)| !rest[..*at].ends_with('\\')).map(|(at, _)| at);
    let Some(at) = hash else { return (unescape(rest), None) };
    let directive = rest[at + 1..].trim();
    for word in ["skip", "todo"] {
        if directive.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(word)) {
            let why = directive[4..].trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim();
            return (unescape(rest[..at].trim_end()), Some((word, why)));
        }
    }
    (unescape(rest), None)
}

fn unescape(text: &str) -> String {
    text.replace("\\#", "#").replace("\\\\", "\\")
}
