//! From a spec to a process: everything that can be refused without making a sandbox is refused here.

use super::spec::{ArtifactsWanted, FileIn, JobSpec, Stdin, Work};
use crate::runner::{Runner, Settled, check_own};
use crate::runtime::{CodePlace, Runtime, file_argv};
use crate::task_env::{TaskEnv, task_env, workspace};
use crate::terminal::Terminal;
use cofferdam_backend::{ProcessSpec, Reader, Stdio};
use cofferdam_core::{InvalidValue, IsolationMode, Limits, NetworkPolicy};
use std::io::Cursor;

/// Source code is read by the runtime, and by nobody else.
const SOURCE_MODE: u32 = 0o644;

/// A job that can be run in the sandbox made for it.
pub(super) struct PreparedJob {
    pub(super) process: ProcessSpec,
    /// The language, if the program is its runtime.
    pub(super) runtime: Option<&'static Runtime>,
    pub(super) files: Vec<FileIn>,
    pub(super) stdin: Option<Reader>,
    pub(super) terminal: Option<Terminal>,
    pub(super) artifacts: ArtifactsWanted,
    pub(super) limits: Limits,
    pub(super) network: NetworkPolicy,
    pub(super) isolation: IsolationMode,
    pub(super) details: bool,
    pub(super) warnings: Vec<String>,
    /// Until the project is in its place.
    pub(super) runner: Option<Box<Runner>>,
    /// From then on.
    pub(super) settled: Option<Box<Settled>>,
}

pub(super) fn prepare(spec: JobSpec) -> Result<PreparedJob, InvalidValue> {
    spec.limits.validate()?;
    let TaskEnv { variables, warnings } =
        task_env(&spec.env, &spec.job_id, &spec.task_id, spec.terminal.is_some())?;
    let mut files = spec.files;
    let mut runner = spec.runner;
    let (argv, runtime) = match (spec.work, &mut runner) {
        // Its command is made when its project is there.
        (Work::Tool, Some(runner)) => {
            check_own(runner)?;
            check_words(&spec.args)?;
            runner.args = spec.args;
            (Vec::new(), None)
        }
        (work, _) => {
            let (argv, runtime) = command(work, spec.args, &mut files)?;
            check_argv(&argv)?;
            (argv, runtime)
        }
    };
    let stdin: Option<Reader> = match spec.stdin {
        Stdin::Empty => None,
        Stdin::Bytes(bytes) => Some(Box::new(Cursor::new(bytes))),
        Stdin::Stream(reader) => Some(reader),
    };
    let stdio = match spec.terminal.as_ref().map(Terminal::size) {
        Some(size) => Stdio::Terminal { rows: size.rows, columns: size.columns },
        None => Stdio::Pipes { stdin: stdin.is_some() },
    };
    let make_cwd = spec.workdir != workspace();
    Ok(PreparedJob {
        process: ProcessSpec { argv, env: variables, cwd: spec.workdir, make_cwd, stdio },
        runtime,
        files,
        stdin,
        terminal: spec.terminal,
        artifacts: spec.artifacts,
        limits: spec.limits,
        network: spec.network,
        isolation: spec.isolation,
        details: spec.details,
        warnings,
        runner,
        settled: None,
    })
}

/// The words to run, and among `files` the code, where that has to be one.
fn command(
    work: Work,
    args: Vec<String>,
    files: &mut Vec<FileIn>,
) -> Result<(Vec<String>, Option<&'static Runtime>), InvalidValue> {
    match work {
        Work::Command { mut argv } => {
            argv.extend(args);
            Ok((argv, None))
        }
        Work::Tool => Err(InvalidValue::new("command", "", "only a test or a build has a tool to run")),
        Work::File { runtime, path } => Ok((file_argv(runtime, &path, &args), Some(runtime))),
        Work::Code { runtime, code } => match runtime.place_code(&code, &args) {
            CodePlace::Inline { argv } => Ok((argv, Some(runtime))),
            CodePlace::File { name } => {
                let path = workspace().join(name)?;
                if files.iter().any(|file| file.path == path) {
                    let fix = "the code itself has to be put there; give that file another name";
                    return Err(InvalidValue::new("file", path.as_str(), fix));
                }
                let argv = file_argv(runtime, &path, &args);
                let content = Box::new(Cursor::new(code.into_bytes()));
                files.push(FileIn { path, mode: SOURCE_MODE, content });
                Ok((argv, Some(runtime)))
            }
        },
    }
}

fn check_argv(argv: &[String]) -> Result<(), InvalidValue> {
    match argv.first() {
        None => return Err(InvalidValue::new("command", "", "name a program to run")),
        Some(program) if program.is_empty() => {
            return Err(InvalidValue::new("command", "", "the program's name must not be empty"));
        }
        Some(_) => {}
    }
    check_words(argv)
}

fn check_words(argv: &[String]) -> Result<(), InvalidValue> {
    match argv.iter().find(|word| word.contains('\0')) {
        Some(word) => Err(InvalidValue::new("command", word, "an argument must not contain NUL")),
        None => Ok(()),
    }
}
