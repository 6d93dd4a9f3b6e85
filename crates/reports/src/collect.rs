//! What was found, bounded: everything is counted, and what goes wrong is listed before what goes well.

use crate::Parsed;
use crate::lines::{MAX_MESSAGE, MAX_NAME, clean};
use cofferdam_core::{Diagnostic, DiagnosticCounts, Severity, TestCase, TestCounts, TestStatus};

/// Nobody reads more of these, and what passes must not keep what fails from being listed.
const MAX_PASSED: usize = 1000;
const MAX_OTHERS: usize = 1000;
const MAX_DIAGNOSTICS: usize = 1000;

/// Of all names, files and messages together: a result is kept in a database.
const MAX_TEXT: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Collector {
    found: Parsed,
    passed: usize,
    others: usize,
    text_left: usize,
}

impl Default for Collector {
    fn default() -> Self {
        Self { found: Parsed::default(), passed: 0, others: 0, text_left: MAX_TEXT }
    }
}

/// A test as a parser has it.
#[derive(Debug)]
pub(crate) struct Case<'t> {
    pub(crate) name: &'t str,
    pub(crate) status: TestStatus,
    pub(crate) time_ms: Option<f64>,
    pub(crate) message: Option<&'t str>,
    pub(crate) file: Option<&'t str>,
}

impl<'t> Case<'t> {
    pub(crate) fn new(name: &'t str, status: TestStatus) -> Self {
        Self { name, status, time_ms: None, message: None, file: None }
    }
}

impl Collector {
    /// Goes on with diagnostics, in what the tests have left of the text.
    pub(crate) fn after(found: Parsed) -> Self {
        let of = |test: &TestCase| {
            [&test.message, &test.file].into_iter().flatten().map(String::len).sum::<usize>()
                + test.name.len()
        };
        let used: usize = found.tests.iter().map(of).sum();
        let others = found.tests.len();
        Self { found, passed: 0, others, text_left: MAX_TEXT.saturating_sub(used) }
    }

    pub(crate) fn counts(&self) -> &TestCounts {
        &self.found.counts
    }

    /// What a summary says, where there is no listing.
    pub(crate) fn set_counts(&mut self, counts: TestCounts) {
        self.found.counts = counts;
        self.found.tests_left_out = counts.total.saturating_sub(self.found.tests.len() as u64);
    }

    pub(crate) fn diagnostic_counts(&self) -> &DiagnosticCounts {
        &self.found.diagnostic_counts
    }

    pub(crate) fn test(&mut self, case: Case<'_>) {
        self.found.counts.add(case.status);
        let (listed, max) = match case.status {
            TestStatus::Passed => (&mut self.passed, MAX_PASSED),
            _ => (&mut self.others, MAX_OTHERS),
        };
        let name = clean(case.name, MAX_NAME);
        let file = case.file.map(|file| clean(file, MAX_NAME));
        let needed = name.len() + file.as_ref().map_or(0, String::len);
        if *listed >= max || needed > self.text_left {
            self.found.tests_left_out += 1;
            return;
        }
        *listed += 1;
        self.text_left -= needed;
        let message = case.message.and_then(|message| self.message(message));
        let time_ms = case.time_ms.filter(|time| time.is_finite() && *time >= 0.0);
        self.found.tests.push(TestCase { name, status: case.status, time_ms, message, file });
    }

    pub(crate) fn diagnostic(&mut self, place: Place<'_>, severity: Severity, message: &str) {
        self.found.diagnostic_counts.add(severity);
        let file = place.file.map(|file| clean(file, MAX_NAME));
        let message = clean(message, MAX_MESSAGE);
        let needed = message.len() + file.as_ref().map_or(0, String::len);
        if self.found.diagnostics.len() >= MAX_DIAGNOSTICS || needed > self.text_left {
            self.found.diagnostics_left_out += 1;
            return;
        }
        self.text_left -= needed;
        let Place { line, column, .. } = place;
        self.found.diagnostics.push(Diagnostic { file, line, column, severity, message });
    }

    /// A message within what is left for text; none where it is empty.
    fn message(&mut self, message: &str) -> Option<String> {
        let text = clean(message.trim(), MAX_MESSAGE.min(self.text_left.max(8)));
        self.text_left = self.text_left.saturating_sub(text.len());
        (!text.is_empty()).then_some(text)
    }

    pub(crate) fn into_parsed(self) -> Parsed {
        self.found
    }
}

/// Where a diagnostic points to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place<'t> {
    pub(crate) file: Option<&'t str>,
    pub(crate) line: Option<u64>,
    pub(crate) column: Option<u64>,
}
