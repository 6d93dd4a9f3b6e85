//! From requests on the wire to sessions and steps. Control has looked at them; what is wrong still is said here.

use super::process::ProcessOrder;
use super::spec::{SessionSpec, StepSpec, StepWork};
use crate::job::FileIn;
use crate::request;
use crate::task_env::workspace;
use cofferdam_api::{Command, InlineFile, JobRequest, ProcessRequest, SessionRequest, StepRequest};
use cofferdam_core::{GuestPath, InvalidValue, NetworkPolicy, SessionId, TaskId};
use std::time::Duration;

/// Where a request does not say.
const TIMEOUT: Duration = Duration::from_secs(300);

const DEFAULT_CONTEXT: &str = "default";

pub fn session(
    id: SessionId,
    task_id: TaskId,
    generation: i64,
    request: SessionRequest,
) -> Result<SessionSpec, InvalidValue> {
    let SessionRequest { env, limits, network_policy, .. } = request;
    let network = network_policy.as_deref().map(|text| NetworkPolicy::parse("network_policy", text));
    let limits = request::limits(&JobRequest { limits, ..JobRequest::default() })?;
    // What is not known is none; the session says so.
    let network = network.and_then(Result::ok).unwrap_or(NetworkPolicy::None);
    let env = env.into_iter().collect();
    Ok(SessionSpec { task_id, env, limits, network, ..SessionSpec::new(id, generation) })
}

pub fn step(number: i64, request: StepRequest) -> Result<StepSpec, InvalidValue> {
    let StepRequest { language, code, command, context, stdin, env, workdir, files: _, timeout_ms } = request;
    let work = match (language, code, command) {
        (Some(language), Some(code), None) => StepWork::Code { language: language.parse()?, code },
        (None, None, Some(command)) => {
            let argv = words(command);
            let workdir = match workdir {
                Some(path) => GuestPath::parse("workdir", &path)?,
                None => workspace(),
            };
            StepWork::Command { argv, stdin: stdin.map(String::into_bytes), workdir }
        }
        _ => return Err(InvalidValue::new("command", "", "give either command, or language and code")),
    };
    Ok(StepSpec {
        number,
        work,
        context: context.unwrap_or_else(|| DEFAULT_CONTEXT.to_owned()),
        env: env.into_iter().collect(),
        timeout: timeout_ms.map_or(TIMEOUT, Duration::from_millis),
    })
}

/// The place of a file among those of a step, and the artifact that it is.
pub type Named = (usize, String);

/// The files of a step, and which of them are artifacts: those have no bytes yet.
pub fn files(files: Vec<InlineFile>) -> Result<(Vec<FileIn>, Vec<Named>), InvalidValue> {
    let named = files.iter().enumerate().filter_map(|(i, file)| Some((i, file.artifact.clone()?))).collect();
    let files = files.into_iter().enumerate().map(request::file).collect::<Result<_, _>>()?;
    Ok((files, named))
}

pub fn process(request: ProcessRequest) -> Result<ProcessOrder, InvalidValue> {
    let ProcessRequest { command, terminal, env, workdir, timeout_ms } = request;
    let command = command.ok_or_else(|| InvalidValue::new("command", "", "name a program to run"))?;
    Ok(ProcessOrder {
        argv: words(command),
        env: env.into_iter().collect(),
        workdir: workdir.map(|path| GuestPath::parse("workdir", &path)).transpose()?,
        terminal: terminal.map(|size| (size.rows, size.columns)),
        timeout: timeout_ms.map(Duration::from_millis),
    })
}

fn words(command: Command) -> Vec<String> {
    match command {
        Command::Argv(argv) => argv,
        Command::Shell(line) => vec!["/bin/sh".into(), "-c".into(), line, "sh".into()],
    }
}
