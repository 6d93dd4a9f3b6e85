//! Opens what a request names: files, folders, standard input. Nothing is made in a sandbox yet, so whatever
//! fails here leaves nothing behind but a folder for artifacts that was asked for.

use super::request::{Root, RunRequest};
use super::work::Words;
use crate::exit::Failure;
use crate::host::files::{self, check_folder};
use crate::host::{reader, state, terminal};
use cofferdam_backend::Image;
use cofferdam_core::GuestPath;
use cofferdam_images::{Lease, Store};
use cofferdam_worker::artifacts::HostFolder;
use cofferdam_worker::{ArtifactsWanted, JobSpec, Resizer, Stdin, Terminal, draw_job_id};
use std::io::{IsTerminal, stdin};
use std::os::fd::AsFd;
use std::path::PathBuf;

/// A job that is ready to run, and how its caller wants to see it.
pub(super) struct Opened {
    pub(super) spec: JobSpec,
    pub(super) resizer: Option<Resizer>,
    pub(super) json: bool,
    pub(super) artifacts_out: Option<ArtifactsOut>,
    /// Keeps the image's layers in the store for as long as the job may run.
    _lease: Option<Lease>,
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
        root,
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
    let root = open_root(root)?;
    let mut spec = JobSpec::new(draw_job_id()?, work);
    spec.args = args;
    spec.env = root.env.into_iter().chain(env).collect();
    spec.files = script.into_iter().chain(files).map(files::open).collect::<Result<_, _>>()?;
    spec.limits = limits;
    spec.network = network;
    spec.isolation = isolation;
    spec.image = root.image;
    spec.workdir = workdir.or(root.workdir).unwrap_or(spec.workdir);
    spec.task_id = task_id.unwrap_or(spec.task_id);
    spec.writable_root = writable_root;
    spec.workspace_root = std::path::absolute(workspace_root.unwrap_or_else(|| state::folder("workspaces")))?;
    spec.stdin = input(stdin, tty)?;
    let (resizer, terminal) = terminal_for(tty).unzip();
    spec.terminal = terminal;
    let artifacts_out = artifacts_out.map(|path| ArtifactsOut { made: !path.exists(), path });
    spec.artifacts = artifacts(artifacts_out.as_ref(), json)?;
    spec.details = json;
    Ok(Opened { spec, resizer, json, artifacts_out, _lease: root.lease })
}

/// A root filesystem, and what an image says about how its processes start.
struct OpenedRoot {
    image: Image,
    env: Vec<(String, String)>,
    workdir: Option<GuestPath>,
    lease: Option<Lease>,
}

fn open_root(root: Root) -> Result<OpenedRoot, Failure> {
    let plain = |image| OpenedRoot { image, env: Vec::new(), workdir: None, lease: None };
    match root {
        Root::Host => Ok(plain(Image::Host)),
        Root::Folder(folder) => {
            check_folder("--rootfs", &folder)?;
            // The launcher has a working directory of its own.
            Ok(plain(Image::Folder(std::path::absolute(folder)?)))
        }
        Root::Image(wanted) => {
            let lease = Store::at(std::path::absolute(state::images())?).open(&wanted)?;
            let config = &lease.image.config.config;
            let workdir = config.workdir().map(|path| GuestPath::parse("the image's WorkingDir", path));
            Ok(OpenedRoot {
                image: Image::Layers(lease.layers.clone()),
                env: config.variables(),
                workdir: workdir.transpose()?,
                lease: Some(lease),
            })
        }
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
