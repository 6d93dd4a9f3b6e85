//! Opens what a request names: files, folders, standard input. Nothing is made in a sandbox yet, so whatever
//! fails here leaves nothing behind but a folder for artifacts that was asked for.

use super::request::RunRequest;
use super::work::Words;
use crate::exit::Failure;
use crate::host::files::{self, check_folder};
use crate::host::{reader, terminal};
use cofferdam_backend::Image;
use cofferdam_worker::artifacts::HostFolder;
use cofferdam_worker::{ArtifactsWanted, JobSpec, Resizer, Stdin, Terminal, draw_job_id};
use std::env;
use std::ffi::OsString;
use std::io::{IsTerminal, stdin};
use std::os::fd::AsFd;
use std::path::PathBuf;

/// A job that is ready to run, and how its caller wants to see it.
pub(super) struct Opened {
    pub(super) spec: JobSpec,
    pub(super) resizer: Option<Resizer>,
    pub(super) json: bool,
    pub(super) artifacts_out: Option<ArtifactsOut>,
}

/// The folder for artifacts.
pub(super) struct ArtifactsOut {
    path: PathBuf,
    made: bool,
}

impl ArtifactsOut {
    /// Takes back a folder that was made for a job which then did not run. One with something in it stays.
    pub(super) fn take_back(&self) {
        if self.made {
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

pub(super) fn open(request: RunRequest) -> Result<Opened, Failure> {
    let RunRequest {
        words: Words { work, args, script },
        env,
        files,
        limits,
        network,
        isolation,
        image,
        backend: _,
        workdir,
        task_id,
        artifacts_out,
        workspace_root,
        writable_root,
        stdin,
        tty,
        json,
    } = request;
    if let Image::Folder(rootfs) = &image {
        check_folder("--rootfs", rootfs)?;
    }
    let mut spec = JobSpec::new(draw_job_id()?, work);
    spec.args = args;
    spec.env = env;
    spec.files = script.into_iter().chain(files).map(files::open).collect::<Result<_, _>>()?;
    spec.limits = limits;
    spec.network = network;
    spec.isolation = isolation;
    spec.image = absolute(image)?;
    spec.workdir = workdir.unwrap_or(spec.workdir);
    spec.task_id = task_id.unwrap_or(spec.task_id);
    spec.writable_root = writable_root;
    spec.workspace_root = std::path::absolute(workspace_root.unwrap_or_else(default_workspace_root))?;
    spec.stdin = input(stdin, tty)?;
    let (resizer, terminal) = terminal_for(tty).unzip();
    spec.terminal = terminal;
    let artifacts_out = artifacts_out.map(|path| ArtifactsOut { made: !path.exists(), path });
    spec.artifacts = artifacts(artifacts_out.as_ref(), json)?;
    spec.details = json;
    Ok(Opened { spec, resizer, json, artifacts_out })
}

/// The launcher has a working directory of its own.
fn absolute(image: Image) -> Result<Image, Failure> {
    match image {
        Image::Folder(path) => Ok(Image::Folder(std::path::absolute(path)?)),
        Image::Host => Ok(Image::Host),
    }
}

/// Only JSON shows a list of artifacts; without either, the folder need not be looked at.
fn artifacts(out: Option<&ArtifactsOut>, json: bool) -> Result<ArtifactsWanted, Failure> {
    match out {
        Some(ArtifactsOut { path, .. }) => match HostFolder::open(path) {
            Ok(folder) => Ok(ArtifactsWanted::Stored(Box::new(folder))),
            Err(error) => Err(Failure::new(format!("--artifacts-out {}: {error}", path.display()))),
        },
        None if json => Ok(ArtifactsWanted::Listed),
        None => Ok(ArtifactsWanted::No),
    }
}

/// Standard input is passed on when asked for, or when the job's terminal stands for the one it comes from.
fn input(asked: bool, tty: bool) -> Result<Stdin, Failure> {
    if asked || (tty && stdin().is_terminal()) {
        // Unbuffered by the standard library's own lock: what we do not read stays for others to read.
        let source = stdin().as_fd().try_clone_to_owned()?;
        return Ok(Stdin::Stream(reader::threaded(std::fs::File::from(source))?));
    }
    Ok(Stdin::Empty)
}

fn terminal_for(tty: bool) -> Option<(Resizer, Terminal)> {
    tty.then(|| cofferdam_worker::terminal(terminal::window_size()))
}

/// Where services keep their state: the machine's for root, the user's own otherwise.
fn default_workspace_root() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/lib/cofferdam/workspaces");
    }
    let set = |name: &str| env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    // Without a home there is still a place that every user can write to.
    state.unwrap_or_else(env::temp_dir).join("cofferdam/workspaces")
}
