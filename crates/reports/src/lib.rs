//! Reports of test runners and compilers, made one shape.
//!
//! What is read here was written in a sandbox, by a tool or by whoever took its place, so every input is bounded in
//! size, depth and count, and no report that is missing, cut or broken is ever taken for one without failures: each
//! parser has to find the end of what it reads. Nothing here does I/O. Which tool runs, and where its report is, is
//! known by the worker.

mod cargo;
mod cargo_build;
mod collect;
mod compiler;
mod diff;
mod go;
mod jest;
mod junit;
mod lines;
mod pytest;
mod tap;
mod unittest;
mod verdict;

pub use diff::{Difference, difference};
pub use verdict::{Judged, judge};

use cofferdam_core::{Diagnostic, DiagnosticCounts, ReportState, TestCase, TestCounts};
use collect::Collector;
use std::borrow::Cow;

/// As much as is kept of a stream. A report that is longer is cut, and says so.
pub const MAX_BYTES: usize = 8 << 20;

/// What a report is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    JunitXml,
    Tap,
    /// What `cargo test` prints.
    CargoTest,
    /// What `go test` prints, with or without `-json`.
    GoTest,
    Pytest,
    Unittest,
    /// What `jest --json` prints.
    Jest,
    /// What `cargo build --message-format=json` prints.
    CargoBuild,
    /// `file:line:column: severity: message` and its relatives: gcc, clang, rustc, tsc, javac, go.
    Compiler,
}

impl Format {
    pub const ALL: [Self; 9] = [
        Self::JunitXml,
        Self::Tap,
        Self::CargoTest,
        Self::GoTest,
        Self::Pytest,
        Self::Unittest,
        Self::Jest,
        Self::CargoBuild,
        Self::Compiler,
    ];
}

/// What was read of a report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parsed {
    pub state: ReportState,
    /// Why it is not complete.
    pub reason: Option<String>,
    pub counts: TestCounts,
    pub tests: Vec<TestCase>,
    pub tests_left_out: u64,
    pub diagnostic_counts: DiagnosticCounts,
    pub diagnostics: Vec<Diagnostic>,
    pub diagnostics_left_out: u64,
}

/// How a report ended, as a parser found it.
type End = (ReportState, Option<String>);

fn complete() -> End {
    (ReportState::Complete, None)
}

fn truncated(reason: impl Into<String>) -> End {
    (ReportState::Truncated, Some(reason.into()))
}

fn missing(reason: impl Into<String>) -> End {
    (ReportState::Missing, Some(reason.into()))
}

fn broken(reason: impl Into<String>) -> End {
    (ReportState::Broken, Some(reason.into()))
}

/// Reads a report. `is_whole` says whether these are all bytes that there were.
pub fn parse(format: Format, bytes: &[u8], is_whole: bool) -> Parsed {
    let is_whole = is_whole && bytes.len() <= MAX_BYTES;
    let text = text_of(bytes);
    let mut found = Collector::default();
    let parser: fn(&str, &mut Collector) -> End = match format {
        Format::JunitXml => junit::parse,
        Format::Tap => tap::parse,
        Format::CargoTest => cargo::parse,
        Format::GoTest => go::parse,
        Format::Pytest => pytest::parse,
        Format::Unittest => unittest::parse,
        Format::Jest => jest::parse,
        Format::CargoBuild => cargo_build::parse,
        Format::Compiler => compiler::parse,
    };
    let (mut state, mut reason) = parser(&text, &mut found);
    if !is_whole && matches!(state, ReportState::Complete | ReportState::Missing) {
        state = ReportState::Truncated;
        reason = Some("there was more of it than is kept".to_owned());
    }
    let mut parsed = found.into_parsed();
    parsed.state = state;
    parsed.reason = reason.map(|reason| lines::clean(&reason, lines::MAX_REASON));
    parsed
}

/// The report of tests with what a compiler said besides.
pub fn with_diagnostics(parsed: Parsed, bytes: &[u8]) -> Parsed {
    let mut found = Collector::after(parsed);
    compiler::parse(&text_of(bytes), &mut found);
    found.into_parsed()
}

/// Byte order marks and colours are for people.
fn text_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_BYTES)]);
    lines::plain(text.strip_prefix('\u{feff}').map_or(text.as_ref(), |rest| rest)).into_owned()
}

/// The same for what was never there.
pub fn absent(reason: impl Into<Cow<'static, str>>) -> Parsed {
    Parsed { reason: Some(reason.into().into_owned()), ..Parsed::default() }
}
