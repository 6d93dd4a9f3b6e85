//! From a request on the wire to a job: everything that is wrong with it is said here, with the wire's own names.

use crate::runner::{self, Expected, Runner};
use crate::runtime::by_name;
use crate::{FileIn, JobSpec, Stdin, Work};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{Command, InlineFile, JobRequest, SandboxRequest};
use cofferdam_core::{Cpus, GuestPath, InvalidValue, JobId, Limits, NetworkPolicy, TaskId};
use std::io::Cursor;
use std::time::Duration;

/// What the request says of itself that has no effect, for the result's warnings.
pub type Warnings = Vec<String>;

/// Makes a job of a request.
pub fn job(id: JobId, task_id: TaskId, request: JobRequest) -> Result<(JobSpec, Warnings), InvalidValue> {
    check_settled(&request)?;
    let limits = limits(&request)?;
    let (network, warnings) = network(request.network_policy.as_deref());
    let mut job = JobSpec::new(id, work(&request)?);
    job.runner = runner(&request)?.map(Box::new);
    job.task_id = task_id;
    job.args = request.args;
    job.env = request.env.into_iter().collect();
    job.files = request.files.into_iter().enumerate().map(file).collect::<Result<_, _>>()?;
    if let Some(text) = request.stdin {
        job.stdin = Stdin::Bytes(text.into_bytes());
    }
    if let Some(text) = request.sandbox.and_then(|sandbox| sandbox.workdir) {
        job.workdir = GuestPath::parse("sandbox.workdir", &text)?;
    }
    job.limits = limits;
    job.network = network;
    Ok((job, warnings))
}

/// Whether a request could be prepared, and within which limits: what can be refused without a sandbox is refused here.
pub fn check(request: &JobRequest) -> Result<Limits, InvalidValue> {
    let id = JobId::from_random([0; 10]);
    let task = TaskId::from(&id);
    let (job, _) = job(id, task, request.clone())?;
    let limits = job.limits.clone();
    crate::check(job)?;
    Ok(limits)
}

/// Control brings these to the other spelling; here it would be passed over what they say.
fn check_settled(request: &JobRequest) -> Result<(), InvalidValue> {
    let is_left = |sandbox: &SandboxRequest| {
        sandbox.image.is_some() || sandbox.command.is_some() || !sandbox.env.is_empty()
    };
    let field = match (&request.execution_mode, &request.sandbox) {
        (Some(_), _) => "execution_mode",
        (None, Some(sandbox)) if is_left(sandbox) => "sandbox",
        _ => return Ok(()),
    };
    Err(InvalidValue::new(field, "", "a worker is given backend, image, command and env instead"))
}

fn work(request: &JobRequest) -> Result<Work, InvalidValue> {
    let wrong = |field, fix| Err(InvalidValue::new(field, "", fix));
    if !request.kind.is_run() && (request.language.is_some() || request.code.is_some()) {
        return wrong("code", "a test or a build runs a tool; give its command, or none");
    }
    match (&request.language, &request.code, &request.command) {
        (Some(language), Some(code), None) => {
            Ok(Work::Code { runtime: by_name("language", language)?, code: code.clone() })
        }
        (None, None, Some(Command::Argv(argv))) if argv.is_empty() => {
            wrong("command", "name a program to run")
        }
        (None, None, Some(Command::Argv(argv))) => Ok(Work::Command { argv: argv.clone() }),
        (None, None, Some(Command::Shell(line))) => {
            let shell = ["/bin/sh", "-c", line, "sh"].map(str::to_owned);
            Ok(Work::Command { argv: shell.to_vec() })
        }
        (Some(_), None, None) => wrong("code", "a language needs code to run"),
        (None, Some(_), None) => wrong("language", "code needs a language, such as python"),
        (None, None, None) if !request.kind.is_run() => Ok(Work::Tool),
        (None, None, None) => wrong("code", "give language and code, or command"),
        (_, _, Some(_)) => wrong("command", "give either command, or language and code"),
    }
}

/// Each is kept with the job, and compared when it ends.
const MAX_EXPECTED: usize = 100;

/// What a test or a build needs, and what is expected of any job.
fn runner(request: &JobRequest) -> Result<Option<Runner>, InvalidValue> {
    let kind = request.kind;
    if kind.is_run() {
        if request.runner.is_some() {
            return Err(InvalidValue::new("runner", "", "it is for a job of kind test or build"));
        }
        if request.expect.is_empty() {
            return Ok(None);
        }
    }
    if request.expect.len() > MAX_EXPECTED {
        let count = request.expect.len().to_string();
        return Err(InvalidValue::new("expect", count, format!("at most {MAX_EXPECTED} files are compared")));
    }
    let asked = request.runner.clone().unwrap_or_default();
    let has_project = asked.project.is_some() || !request.files.is_empty();
    if !kind.is_run() && !has_project && request.command.is_none() {
        let fix = "there is nothing to test or build; give files, or the artifact of a project";
        return Err(InvalidValue::new("runner.project", "", fix));
    }
    let tool = asked.tool.as_deref().map(|name| runner::by_name(name, kind)).transpose()?;
    let report = asked.report.as_deref().map(|text| place("runner.report", text)).transpose()?;
    let expect = request.expect.iter().cloned().enumerate().map(expected).collect::<Result<_, _>>()?;
    let project = asked.project.is_some().then(|| Box::new(Cursor::new(Vec::new())) as _);
    Ok(Some(Runner { kind, tool, project, report, expect, args: Vec::new() }))
}

/// Where files of the sandbox's own are.
fn place(field: &str, text: &str) -> Result<GuestPath, InvalidValue> {
    let path = GuestPath::parse_in_workspace(field, text)?;
    match path.as_str().starts_with("/workspace/") || path.as_str().starts_with("/tmp/") {
        true => Ok(path),
        false => Err(InvalidValue::new(field, text, "it must lie in /workspace or /tmp")),
    }
}

fn expected((i, wanted): (usize, InlineFile)) -> Result<Expected, InvalidValue> {
    let shown = wanted.path.clone();
    let made = file((i, wanted)).map_err(|error| {
        let field = error.field.replacen("files[", "expect[", 1);
        InvalidValue::new(&field, error.value, error.fix)
    })?;
    Ok(Expected { path: made.path, shown, content: made.content })
}

pub(crate) fn limits(request: &JobRequest) -> Result<Limits, InvalidValue> {
    let asked = &request.limits;
    let defaults = Limits::default();
    let memory_bytes = asked.memory_bytes.unwrap_or(defaults.memory_bytes);
    let limits = Limits {
        cpus: match asked.cpus {
            Some(cpus) => Cpus::parse("limits.cpus", &cpus.to_string())?,
            None => defaults.cpus,
        },
        memory_bytes,
        pids: asked.pids.unwrap_or(defaults.pids),
        disk: match asked.disk_bytes {
            Some(bytes) => Limits::disk_of_size(memory_bytes, bytes),
            None => Limits::memory_disk(memory_bytes),
        },
        timeout: request.timeout_ms.map_or(defaults.timeout, Duration::from_millis),
        grace: asked.grace_ms.map_or(defaults.grace, Duration::from_millis),
    };
    limits.validate().map_err(|error| {
        let field = match error.field.as_str() {
            "memory" => "limits.memory_bytes",
            "pids" => "limits.pids",
            "disk" => "limits.disk_bytes",
            "grace" => "limits.grace_ms",
            "timeout" => "timeout_ms",
            other => other,
        };
        InvalidValue::new(field, error.value.clone(), error.fix.clone())
    })?;
    Ok(limits)
}

/// What is not known is none, and says so.
fn network(asked: Option<&str>) -> (NetworkPolicy, Warnings) {
    match asked.map(|text| (text, NetworkPolicy::parse("network_policy", text))) {
        None => (NetworkPolicy::None, Vec::new()),
        Some((_, Ok(policy))) => (policy, Vec::new()),
        Some((text, Err(_))) => {
            let warning = format!("the network policy {text:?} is not known; none was applied");
            (NetworkPolicy::None, vec![warning])
        }
    }
}

/// Which of the files are artifacts; [`job`] leaves them empty.
pub fn inputs(request: &JobRequest) -> Vec<(usize, String)> {
    let files = request.files.iter().enumerate();
    files.filter_map(|(i, file)| Some((i, file.artifact.clone()?))).collect()
}

/// The artifacts of a test or a build, in the order in which [`Runner`] has room for them: its project, if it has one,
/// and those of what is expected.
pub fn runner_inputs(request: &JobRequest) -> (Option<String>, Vec<(usize, String)>) {
    let project = request.runner.as_ref().and_then(|runner| runner.project.clone());
    let expect = request.expect.iter().enumerate();
    (project, expect.filter_map(|(i, file)| Some((i, file.artifact.clone()?))).collect())
}

const FILE_MODE: u32 = 0o644;

pub(crate) fn file((i, file): (usize, InlineFile)) -> Result<FileIn, InvalidValue> {
    let place = format!("files[{i}].path");
    let path = GuestPath::parse_in_workspace(&place, &file.path)?;
    if !path.as_str().starts_with("/workspace/") {
        return Err(InvalidValue::new(&place, file.path, "it must lie in /workspace"));
    }
    let field = format!("files[{i}].content");
    let given = [&file.content, &file.content_base64, &file.artifact];
    if given.into_iter().flatten().count() > 1 {
        return Err(InvalidValue::new(&field, "", "give one of content, content_base64 and artifact"));
    }
    let bytes = match (file.content, file.content_base64) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(text)) => STANDARD.decode(&text).map_err(|_| {
            let field = format!("files[{i}].content_base64");
            InvalidValue::new(&field, text.chars().take(40).collect::<String>(), "it is not base64")
        })?,
        _ => Vec::new(),
    };
    Ok(FileIn { path, mode: FILE_MODE, content: Box::new(Cursor::new(bytes)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{RUNTIMES, Runtime};

    fn check(body: &str) -> Result<JobSpec, InvalidValue> {
        let request: JobRequest = serde_json::from_str(body).expect("a request");
        let id = JobId::from_random([1; 10]);
        let task = TaskId::from(&id);
        job(id, task, request).map(|(job, _)| job)
    }

    fn field(body: &str) -> String {
        check(body).expect_err(body).field
    }

    #[test]
    fn a_command_is_words_or_a_line_for_a_shell() {
        let words = check(r#"{"command":["ls","-l"]}"#).unwrap();
        assert_eq!(words.work, Work::Command { argv: vec!["ls".into(), "-l".into()] });
        let line = check(r#"{"command":"ls | wc"}"#).unwrap();
        let argv = ["/bin/sh", "-c", "ls | wc", "sh"].map(str::to_owned).to_vec();
        assert_eq!(line.work, Work::Command { argv });
    }

    #[test]
    fn what_is_wrong_is_named_as_on_the_wire() {
        for (body, expected) in [
            (r#"{}"#, "code"),
            (r#"{"language":"python"}"#, "code"),
            (r#"{"code":"1"}"#, "language"),
            (r#"{"language":"cobol","code":"1"}"#, "language"),
            (r#"{"command":[]}"#, "command"),
            (r#"{"command":"ls","language":"python","code":"1"}"#, "command"),
            (r#"{"command":"ls","limits":{"memory_bytes":1}}"#, "limits.memory_bytes"),
            (r#"{"command":"ls","limits":{"pids":0}}"#, "limits.pids"),
            (r#"{"command":"ls","limits":{"cpus":-1}}"#, "limits.cpus"),
            (r#"{"command":"ls","timeout_ms":0}"#, "timeout_ms"),
            (r#"{"command":"ls","files":[{"path":"/etc/passwd"}]}"#, "files[0].path"),
            (r#"{"command":"ls","execution_mode":"docker-sandbox"}"#, "execution_mode"),
            (r#"{"command":"ls","sandbox":{"image":"app:1"}}"#, "sandbox"),
            (r#"{"command":"ls","sandbox":{"workdir":"app"}}"#, "sandbox.workdir"),
            (r#"{"command":"ls","files":[{"path":"a","content_base64":"%"}]}"#, "files[0].content_base64"),
        ] {
            assert_eq!(field(body), expected, "{body}");
        }
    }

    #[test]
    fn the_wire_lists_every_language_and_its_other_names() {
        let names =
            |runtime: &'static Runtime| [runtime.name].into_iter().chain(runtime.aliases.iter().copied());
        let known: Vec<&str> = RUNTIMES.iter().flat_map(names).collect();
        assert_eq!(known, cofferdam_api::LANGUAGES);
    }

    #[test]
    fn an_unknown_network_is_none_with_a_warning() {
        assert_eq!(network(Some("open")).0, NetworkPolicy::None);
        assert_eq!(network(Some("open")).1.len(), 1);
        assert_eq!(network(Some("restricted")), (NetworkPolicy::Restricted, Vec::new()));
    }
}
