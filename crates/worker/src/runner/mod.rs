//! Tests and builds: a job whose process is a tool, and whose result has the tool's report.
//!
//! `tool` has what is known of each tool, `detect` finds the one that a project is for. Before the process starts the
//! project is unpacked and the command made ([`Runner::settle`]); while the sandbox still stands, the report and the
//! files that were expected are read ([`Runner::gather`]); when the output is whole, all of it becomes one report
//! ([`Settled::report`]). Nothing that the sandbox wrote is believed further than `crates/reports` says.

mod detect;
#[cfg(test)]
mod tests;
mod tool;

pub use tool::Tool;
pub(crate) use tool::by_name;
use tool::{REPORT_FILE, Where};

use crate::job::JobError;
use crate::session::unpack_project;
use crate::task_env::{WORKSPACE_DIR, workspace};
use cofferdam_backend::{BackendError, EntryKind, Reader, Sandbox};
use cofferdam_core::{
    CapturedOutput, Compared, ExpectedState, GuestPath, InvalidValue, JobKind, Outcome, Report,
};
use cofferdam_reports::{
    Format, Judged, MAX_BYTES, Parsed, absent, difference, judge, parse, with_diagnostics,
};
use std::fmt;
use std::sync::Arc;
use tokio::io::AsyncReadExt;

/// Of one file that is expected. What is larger is not compared by lines that a person reads.
pub(crate) const MAX_EXPECTED_BYTES: u64 = 1 << 20;

/// What a test, a build, or a job of which files are expected needs besides its process.
pub struct Runner {
    pub kind: JobKind,
    /// None where it has to be detected.
    pub tool: Option<&'static Tool>,
    /// An archive for /workspace.
    pub project: Option<Reader>,
    /// Where the command leaves its report, if the request says so.
    pub report: Option<GuestPath>,
    pub expect: Vec<Expected>,
    /// For the tool's own command.
    pub args: Vec<String>,
}

/// A file that is to be there in the end.
pub struct Expected {
    pub path: GuestPath,
    /// As the request names it.
    pub shown: String,
    pub content: Reader,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = self.tool.map(|tool| tool.name);
        f.debug_struct("Runner").field("kind", &self.kind).field("tool", &tool).finish_non_exhaustive()
    }
}

impl fmt::Debug for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expected").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A runner whose project is in place.
#[derive(Debug)]
pub(crate) struct Settled {
    kind: JobKind,
    tool: Option<&'static Tool>,
    detected_by: Option<String>,
    /// The form of the report, and where it comes from; none where files alone are compared.
    source: Option<(Format, Where)>,
    file: Option<GuestPath>,
    expect: Vec<(GuestPath, String, Vec<u8>)>,
}

/// What was read while the sandbox stood.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// The bytes of the report, and whether they are all; or why there are none.
    file: Option<Result<(Vec<u8>, bool), String>>,
    /// What was found in the place of each file that was expected.
    found: Vec<Found>,
}

#[derive(Debug)]
enum Found {
    Bytes(Vec<u8>),
    Missing,
    Unreadable(String),
}

impl Runner {
    /// Puts the project into its place, before the files of the request.
    pub(crate) async fn unpack(&mut self, sandbox: &Arc<dyn Sandbox>) -> Result<(), JobError> {
        let Some(content) = self.project.take() else { return Ok(()) };
        let unpacked = unpack_project(Arc::clone(sandbox), workspace(), content).await;
        unpacked.map(drop).map_err(|error| JobError::Project { why: error.text() })
    }

    /// Finds out the tool, and makes its command, unless the request gave one.
    pub(crate) async fn settle(
        self,
        sandbox: &dyn Sandbox,
        argv: &mut Vec<String>,
    ) -> Result<Settled, JobError> {
        let Self { kind, mut tool, project: _, report, expect, args } = self;
        let (mut detected_by, mut detected_args) = (None, Vec::new());
        if tool.is_none() && kind != JobKind::Run {
            let found = detect::detect(sandbox, &workspace(), kind).await;
            let found = found.map_err(|error| JobError::Project { why: error.to_string() })?;
            let fix =
                "nothing in the project says which tool it is for; name one, and a command if it needs one";
            let found = found.ok_or_else(|| InvalidValue::new("runner.tool", "", fix))?;
            (tool, detected_by, detected_args) = (Some(found.tool), Some(found.by), found.args);
        }
        let source = match tool.and_then(|tool| Some((tool, tool.action(kind)?))) {
            None => None,
            Some((tool, action)) => {
                let is_own = argv.is_empty();
                if is_own {
                    let words = action.argv.ok_or_else(|| needs_command(tool))?;
                    argv.extend(words.iter().map(|word| (*word).to_owned()));
                    argv.extend(detected_args);
                    argv.extend(args);
                }
                Some(match (&report, is_own, tool.printed) {
                    (Some(_), ..) => (action.format, Where::File),
                    (None, false, Some(printed)) => printed,
                    (None, ..) => (action.format, action.place),
                })
            }
        };
        let file = match source {
            Some((_, Where::File)) => Some(match report {
                Some(path) => path,
                None => GuestPath::parse("report", REPORT_FILE)?,
            }),
            _ => None,
        };
        if let Some(path) = &file {
            forget_old(sandbox, path).await?;
        }
        let mut kept = Vec::with_capacity(expect.len());
        for Expected { path, shown, content } in expect {
            let bytes = read_bounded(content, MAX_EXPECTED_BYTES).await;
            let why = match bytes {
                Ok((bytes, true)) => {
                    kept.push((path, shown, bytes));
                    continue;
                }
                Ok((_, false)) => format!("it may have at most {} MiB", MAX_EXPECTED_BYTES >> 20),
                Err(error) => error.to_string(),
            };
            return Err(InvalidValue::new("expect", shown, why).into());
        }
        Ok(Settled { kind, tool, detected_by, source, file, expect: kept })
    }
}

/// Whether the tool, where it is known, has a command of its own.
pub(crate) fn check_own(runner: &Runner) -> Result<(), InvalidValue> {
    match runner.tool {
        Some(tool) if tool.action(runner.kind).is_none_or(|action| action.argv.is_none()) => {
            Err(needs_command(tool))
        }
        _ => Ok(()),
    }
}

fn needs_command(tool: &Tool) -> InvalidValue {
    InvalidValue::new("command", "", format!("{} has no command of its own: give one", tool.name))
}

/// A report that came with the project is not that of this run.
async fn forget_old(sandbox: &dyn Sandbox, path: &GuestPath) -> Result<(), JobError> {
    let refused = |source| JobError::FileIn { path: path.to_string(), source };
    let kind = match sandbox.stat(path).await {
        Ok(stat) => stat.kind,
        Err(BackendError::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(refused(error)),
    };
    let kind = if kind == EntryKind::Folder { EntryKind::Folder } else { EntryKind::File };
    sandbox.remove(path, kind).await.map_err(refused)
}

/// The first bytes, and whether they are all.
async fn read_bounded(reader: Reader, max: u64) -> std::io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    reader.take(max + 1).read_to_end(&mut bytes).await?;
    let is_whole = bytes.len() as u64 <= max;
    bytes.truncate(usize::try_from(max).unwrap_or(usize::MAX));
    Ok((bytes, is_whole))
}

impl Settled {
    /// Reads what the tool left. `is_forced` says that it was killed, and may still be writing.
    pub(crate) async fn gather(&self, sandbox: &dyn Sandbox, is_forced: bool) -> Gathered {
        let mut gathered = Gathered::default();
        if let Some(path) = &self.file {
            gathered.file = Some(match is_forced {
                true => Err("the tool was killed before its report was read".to_owned()),
                false => read_file(sandbox, path, MAX_BYTES as u64).await,
            });
        }
        for (path, _, _) in &self.expect {
            gathered.found.push(match is_forced {
                true => Found::Unreadable("the tool was killed before it was read".to_owned()),
                false => read_found(sandbox, path).await,
            });
        }
        gathered
    }

    /// Makes the report, on a thread of its own: there may be megabytes to read.
    pub(crate) async fn report(
        self,
        gathered: Gathered,
        stdout: &CapturedOutput,
        stderr: &CapturedOutput,
        outcome: &Outcome,
    ) -> Report {
        let (kind, tool, detected_by) = (self.kind, self.tool, self.detected_by.clone());
        let (stdout, stderr, outcome) = (stdout.clone(), stderr.clone(), outcome.clone());
        let made = tokio::task::spawn_blocking(move || self.make(gathered, &stdout, &stderr, &outcome)).await;
        made.unwrap_or_else(|_| {
            let parsed = Some(absent("the report could not be read"));
            let tool = tool.map(|tool| tool.name.to_owned());
            judge(Judged { kind, tool, detected_by, parsed, expected: Vec::new() }, &Outcome::Lost)
        })
    }

    fn make(
        self,
        gathered: Gathered,
        stdout: &CapturedOutput,
        stderr: &CapturedOutput,
        outcome: &Outcome,
    ) -> Report {
        let Gathered { file, found } = gathered;
        let whole = |output: &CapturedOutput| output.dropped_bytes == 0;
        let parsed = self.source.map(|(format, place)| match place {
            Where::File => match file {
                Some(Ok((bytes, is_whole))) => parse(format, &bytes, is_whole),
                Some(Err(why)) => absent(why),
                None => absent("nothing was read of it"),
            },
            Where::Stdout => parse(format, &stdout.bytes, whole(stdout)),
            Where::Stderr => parse(format, &stderr.bytes, whole(stderr)),
            Where::Output => {
                let half = MAX_BYTES / 2;
                let (out, err) = (&stdout.bytes, &stderr.bytes);
                let both = [&out[..out.len().min(half)], b"\n", &err[..err.len().min(half)]].concat();
                let is_whole = whole(stdout) && whole(stderr) && out.len().max(err.len()) <= half;
                parse(format, &both, is_whole)
            }
        });
        let parsed = parsed.map(|parsed| in_project(self.with_diagnostics(parsed, &stderr.bytes)));
        let mut found = found.into_iter();
        let expected = self.expect.iter().map(|(_, shown, bytes)| {
            let found = found.next().unwrap_or(Found::Unreadable("nothing was read of it".to_owned()));
            compare(shown, bytes, found)
        });
        let expected = expected.collect();
        let tool = self.tool.map(|tool| tool.name.to_owned());
        judge(Judged { kind: self.kind, tool, detected_by: self.detected_by, parsed, expected }, outcome)
    }

    /// What a compiler said before the tests could run belongs to their report, where none or not all of them have.
    fn with_diagnostics(&self, parsed: Parsed, stderr: &[u8]) -> Parsed {
        if self.kind != JobKind::Test || (parsed.counts.total > 0 && parsed.counts.errored == 0) {
            return parsed;
        }
        with_diagnostics(parsed, stderr)
    }
}

/// With the paths of the project's files below it, whichever way the tool names them.
fn in_project(mut parsed: Parsed) -> Parsed {
    let of_tests = parsed.tests.iter_mut().filter_map(|test| test.file.as_mut());
    let of_compilers = parsed.diagnostics.iter_mut().filter_map(|said| said.file.as_mut());
    for file in of_tests.chain(of_compilers) {
        if let Some(below) = file.strip_prefix(WORKSPACE_DIR).and_then(|rest| rest.strip_prefix('/')) {
            *file = below.to_owned();
        }
    }
    parsed
}

async fn read_file(sandbox: &dyn Sandbox, path: &GuestPath, max: u64) -> Result<(Vec<u8>, bool), String> {
    match sandbox.read_file(path).await {
        Ok(reader) => read_bounded(reader, max).await.map_err(|error| format!("{path}: {error}")),
        Err(BackendError::NotFound { .. }) => Err(format!("the tool has left no {path}")),
        Err(error) => Err(format!("{path} cannot be read: {error}")),
    }
}

async fn read_found(sandbox: &dyn Sandbox, path: &GuestPath) -> Found {
    match sandbox.read_file(path).await {
        Ok(reader) => match read_bounded(reader, MAX_EXPECTED_BYTES).await {
            Ok((bytes, true)) => Found::Bytes(bytes),
            Ok((_, false)) => Found::Unreadable(format!("it has more than {MAX_EXPECTED_BYTES} bytes")),
            Err(error) => Found::Unreadable(error.to_string()),
        },
        Err(BackendError::NotFound { .. }) => Found::Missing,
        Err(error) => Found::Unreadable(error.to_string()),
    }
}

fn compare(path: &str, expected: &[u8], found: Found) -> Compared {
    let path = path.to_owned();
    let plain = |state, diff| Compared { path: path.clone(), state, diff, diff_truncated: false };
    match found {
        Found::Missing => plain(ExpectedState::Missing, None),
        Found::Unreadable(why) => plain(ExpectedState::Unreadable, Some(why)),
        Found::Bytes(bytes) => match difference(&path, expected, &bytes) {
            None => plain(ExpectedState::Same, None),
            Some(differs) => Compared {
                path,
                state: ExpectedState::Differs,
                diff: Some(differs.diff),
                diff_truncated: differs.is_truncated,
            },
        },
    }
}
