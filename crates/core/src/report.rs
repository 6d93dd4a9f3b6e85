//! What came of the tests or the build of a job: one shape, whichever tool has run.
//!
//! It says what the tool said, and the tool ran in a sandbox: the verdict is never better than what is known.

use serde::{Deserialize, Serialize};

/// What a job is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    #[default]
    Run,
    Test,
    Build,
}

impl JobKind {
    pub fn is_run(&self) -> bool {
        *self == Self::Run
    }
}

/// How much of a report there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReportState {
    Complete,
    /// It ends in the middle.
    Truncated,
    /// There is none.
    #[default]
    Missing,
    /// It cannot be read, or contradicts itself.
    Broken,
}

/// What a report comes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The tool ended well, its report is complete and has no failure, and every expected file is as expected.
    Passed,
    Failed,
    /// No failure is known, and neither is that there was none.
    #[default]
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TestStatus {
    Passed,
    Failed,
    /// Not run, or known to fail.
    Skipped,
    /// It could not be run, or did not come to an end.
    Errored,
}

/// One test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TestCase {
    pub name: String,
    pub status: TestStatus,
    /// Where the tool says it.
    #[serde(default)]
    pub time_ms: Option<f64>,
    /// Why it failed or was skipped; the first of it.
    #[serde(default)]
    pub message: Option<String>,
    /// Where it is, as the tool names it.
    #[serde(default)]
    pub file: Option<String>,
}

/// All tests, those that are not listed, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TestCounts {
    pub total: u64,
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
    pub errored: u64,
}

impl TestCounts {
    pub fn add(&mut self, status: TestStatus) {
        self.total += 1;
        *match status {
            TestStatus::Passed => &mut self.passed,
            TestStatus::Failed => &mut self.failed,
            TestStatus::Skipped => &mut self.skipped,
            TestStatus::Errored => &mut self.errored,
        } += 1;
    }

    pub fn not_passed(&self) -> u64 {
        self.failed.saturating_add(self.errored)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
    Note,
}

/// One thing that a compiler said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Diagnostic {
    #[serde(default)]
    pub file: Option<String>,
    #[serde(default)]
    pub line: Option<u64>,
    #[serde(default)]
    pub column: Option<u64>,
    pub severity: Severity,
    pub message: String,
}

/// All that a compiler said, what is not listed, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DiagnosticCounts {
    pub errors: u64,
    pub warnings: u64,
    pub notes: u64,
}

impl DiagnosticCounts {
    pub fn add(&mut self, severity: Severity) {
        *match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
            Severity::Note => &mut self.notes,
        } += 1;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExpectedState {
    Same,
    Differs,
    Missing,
    /// It is no plain file, is too large to compare, or could not be read.
    Unreadable,
}

/// A file that was expected, and what was there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Compared {
    pub path: String,
    pub state: ExpectedState,
    /// A unified diff from what was expected to what is there, or why there is none.
    #[serde(default)]
    pub diff: Option<String>,
    /// Whether the diff goes on.
    #[serde(default)]
    pub diff_truncated: bool,
}

/// The report of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Report {
    pub kind: JobKind,
    pub verdict: Verdict,
    /// What ran; none where files alone were compared.
    #[serde(default)]
    pub tool: Option<String>,
    /// The file by which it was detected; none where the request named it.
    #[serde(default)]
    pub detected_by: Option<String>,
    pub state: ReportState,
    /// Why the report is not complete.
    #[serde(default)]
    pub reason: Option<String>,
    /// What else has to be known to believe the verdict, such as an exit code that does not fit the report.
    #[serde(default)]
    pub notes: Vec<String>,
    #[serde(default)]
    pub counts: TestCounts,
    #[serde(default)]
    pub tests: Vec<TestCase>,
    /// How many more there were.
    #[serde(default)]
    pub tests_left_out: u64,
    #[serde(default)]
    pub diagnostic_counts: DiagnosticCounts,
    #[serde(default)]
    pub diagnostics: Vec<Diagnostic>,
    /// How many more there were.
    #[serde(default)]
    pub diagnostics_left_out: u64,
    #[serde(default)]
    pub expected: Vec<Compared>,
}
