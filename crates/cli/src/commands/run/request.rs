//! From the words of a command line to a request that makes sense. Pure: no file is looked at.

use super::work::{self, Words, base_name};
use crate::args::RunArgs;
use crate::backends::Choice;
use crate::exit::Failure;
use crate::host::files::FileSource;
use cofferdam_core::{
    ByteSize, Cpus, GuestPath, InvalidValue, IsolationMode, Limits, NetworkPolicy, TaskId, parse_duration,
};
use cofferdam_images::{HOST, ImageRef};
use std::path::PathBuf;

/// What the root filesystem is made of.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Root {
    Host,
    Folder(PathBuf),
    Image(ImageRef),
}

fn root(rootfs: Option<PathBuf>, image: Option<&str>) -> Result<Root, InvalidValue> {
    match (rootfs, image) {
        (Some(folder), _) => Ok(Root::Folder(folder)),
        (None, Some(HOST) | None) => Ok(Root::Host),
        (None, Some(image)) => ImageRef::parse("--image", image).map(Root::Image),
    }
}

/// A `run` that makes sense, as far as can be told without looking at the machine.
#[derive(Debug)]
pub(super) struct RunRequest {
    pub(super) words: Words,
    pub(super) env: Vec<(String, String)>,
    pub(super) files: Vec<FileSource>,
    pub(super) limits: Limits,
    pub(super) network: NetworkPolicy,
    pub(super) isolation: IsolationMode,
    pub(super) root: Root,
    pub(super) backend: Choice,
    pub(super) workdir: Option<GuestPath>,
    pub(super) task_id: Option<TaskId>,
    pub(super) artifacts_out: Option<PathBuf>,
    pub(super) workspace_root: Option<PathBuf>,
    pub(super) writable_root: bool,
    pub(super) stdin: bool,
    pub(super) tty: bool,
    pub(super) json: bool,
}

impl RunRequest {
    pub(super) fn parse(args: RunArgs) -> Result<Self, Failure> {
        let words = work::parse(&args)?;
        let limits = limits(&args)?;
        let backend = Choice::parse(&args)?;
        let files = files(&words, &args)?;
        let network = args.network.as_deref().map(|text| NetworkPolicy::parse("--network", text));
        let isolation = args.isolation.as_deref().map(|text| IsolationMode::parse("--isolation", text));
        let workdir = args.workdir.as_deref().map(|text| GuestPath::parse("--workdir", text));
        let task_id = args.task_id.as_deref().map(|text| TaskId::parse("--task-id", text));
        Ok(Self {
            words,
            env: args.env.iter().map(|text| variable("--env", text)).collect::<Result<_, _>>()?,
            files,
            limits,
            network: network.transpose()?.unwrap_or(NetworkPolicy::None),
            isolation: isolation.transpose()?.unwrap_or_default(),
            root: match backend {
                // A daemon has images of its own.
                Choice::Docker { .. } => Root::Host,
                _ => root(args.rootfs, args.image.as_deref())?,
            },
            backend,
            workdir: workdir.transpose()?,
            task_id: task_id.transpose()?,
            artifacts_out: args.artifacts_out,
            workspace_root: args.workspace_root,
            writable_root: args.writable_root,
            stdin: args.stdin,
            tty: args.tty,
            json: args.json,
        })
    }
}

/// The files that were named, each at a place of its own.
fn files(words: &Words, args: &RunArgs) -> Result<Vec<FileSource>, InvalidValue> {
    let files = args.file.iter().map(|text| file_source(text)).collect::<Result<Vec<_>, _>>()?;
    check_places(words, &files)?;
    Ok(files)
}

/// Those, and the script itself where there is one.
pub(in crate::commands) fn parse_files(
    words: &Words,
    args: &RunArgs,
) -> Result<Vec<FileSource>, InvalidValue> {
    let named = files(words, args)?;
    Ok(words.script.iter().cloned().chain(named).collect())
}

fn limits(args: &RunArgs) -> Result<Limits, InvalidValue> {
    let mut limits = Limits::default();
    if let Some(text) = &args.memory {
        limits.memory_bytes = ByteSize::parse("--memory", text)?.0;
    }
    limits.disk = match &args.disk {
        Some(text) => Limits::disk_of_size(limits.memory_bytes, ByteSize::parse("--disk", text)?.0),
        None => Limits::memory_disk(limits.memory_bytes),
    };
    if let Some(text) = &args.cpus {
        limits.cpus = Cpus::parse("--cpus", text)?;
    }
    if let Some(text) = &args.pids {
        let fix = "write a whole number of processes, such as 100";
        limits.pids = text.parse().map_err(|_| InvalidValue::new("--pids", text, fix))?;
    }
    if let Some(text) = &args.timeout {
        limits.timeout = parse_duration("--timeout", text)?;
    }
    if let Some(text) = &args.grace {
        limits.grace = parse_duration("--grace", text)?;
    }
    limits.validate()?;
    Ok(limits)
}

pub(in crate::commands) fn variable(option: &str, text: &str) -> Result<(String, String), InvalidValue> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(InvalidValue::new(option, text, "write it as NAME=VALUE")),
    }
}

/// `FILE`, `FILE:PLACE` or `FILE:FOLDER/`. The last colon divides, so that a file whose own name has one can
/// still be given, with its place.
fn file_source(text: &str) -> Result<FileSource, InvalidValue> {
    const FIELD: &str = "--file";
    let (host, place) = text.rsplit_once(':').unwrap_or((text, ""));
    if host.is_empty() {
        return Err(InvalidValue::new(FIELD, text, "write it as FILE or FILE:PLACE"));
    }
    let guest = match place {
        "" => GuestPath::parse_in_workspace(FIELD, base_name(FIELD, host)?)?,
        folder if folder.ends_with('/') => {
            GuestPath::parse_in_workspace(FIELD, &format!("{folder}{}", base_name(FIELD, host)?))?
        }
        place => GuestPath::parse_in_workspace(FIELD, place)?,
    };
    Ok(FileSource { host: PathBuf::from(host), guest })
}

/// Two files at one place would silently be one.
fn check_places(words: &Words, files: &[FileSource]) -> Result<(), InvalidValue> {
    let mut places = std::collections::HashSet::new();
    for file in words.script.iter().chain(files) {
        if !places.insert(file.guest.as_str()) {
            let fix = "another file goes to the same place; give one of them another";
            return Err(InvalidValue::new("--file", file.guest.as_str(), fix));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
