//! What of the host is seen in a container.
//!
//! A daemon is told of paths, and looks them up when it likes: whoever can rename a folder meanwhile would choose what
//! it finds. So what was opened is mounted at a place that only root can change, and the daemon is told of that. When
//! the container has started it has a copy of the mount, and ours goes.

use bollard::models::{
    Mount as DaemonMount, MountBindOptions, MountBindOptionsPropagationEnum as Propagation, MountType,
};
use cofferdam_backend::{BackendError, Mount, MountSource, Result, SandboxSpec};
use cofferdam_core::GuestPath;
use cofferdam_guest::host::Connection;
use cofferdam_guest::{UID, maker};
use cofferdam_linux::attached::{Attached, detach};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// One place of ours, and what it is to be inside.
#[derive(Debug)]
struct Place {
    at: PathBuf,
    target: GuestPath,
    read_only: bool,
}

/// The mounts of one container, until it has its own.
#[derive(Debug)]
pub(crate) struct Staged {
    /// Of this sandbox alone.
    folder: PathBuf,
    /// Lies below each mount: who sees it does not see the mount.
    mark: String,
    places: Vec<Place>,
    attached: Vec<Attached>,
}

/// How large a workspace is that is seen at two places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    pub(crate) files: u64,
}

const WORKSPACE: &str = "/workspace";

fn mark(sandbox: &str) -> String {
    format!(".cofferdam-{sandbox}")
}

fn all(folder: &Path) -> PathBuf {
    folder.join("mounts")
}

impl Staged {
    /// Mounts what a sandbox is to see; none where that is nothing.
    pub(crate) fn make(
        folder: &Path,
        owner: &str,
        spec: &SandboxSpec,
        workspace: Room,
    ) -> Result<Option<Self>> {
        if spec.mounts.is_empty() {
            return Ok(None);
        }
        let id = spec.id.to_string();
        let own = all(folder).join(owner).join(&id);
        let mut staged = Self { folder: own, mark: mark(&id), places: Vec::new(), attached: Vec::new() };
        // What the daemon reads lies in it, too; below, nobody else has business.
        let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
        let made = made.and_then(|()| DirBuilder::new().recursive(true).mode(0o700).create(&staged.folder));
        made.map_err(|error| failed(&staged.folder, error))?;
        if spec.mounts.iter().any(|mount| matches!(mount.source, MountSource::Workspace)) {
            let at = staged.place("workspace")?;
            staged.attach(&at, |at| Attached::memory(at, workspace.bytes, workspace.files, UID))?;
            let target = GuestPath::parse("workspace", WORKSPACE)?;
            staged.places.push(Place { at, target, read_only: false });
        }
        for (i, Mount { source, target, read_only }) in spec.mounts.iter().enumerate() {
            let (target, read_only) = (target.clone(), *read_only);
            let at = match source {
                MountSource::Workspace => staged.folder.join("workspace"),
                MountSource::Folder(opened) => {
                    let at = staged.place(&i.to_string())?;
                    staged.attach(&at, |at| Attached::folder(opened.as_fd(), at, read_only))?;
                    at
                }
            };
            staged.places.push(Place { at, target, read_only });
        }
        Ok(Some(staged))
    }

    /// A folder to mount at, with the mark in it. Others may look into it: it is seen inside where the mount is not.
    fn place(&self, name: &str) -> Result<PathBuf> {
        let at = self.folder.join(name);
        let made = DirBuilder::new().mode(0o755).create(&at);
        made.and_then(|()| fs::write(at.join(&self.mark), "")).map_err(|error| failed(&at, error))?;
        Ok(at)
    }

    fn attach(&mut self, at: &Path, make: impl FnOnce(&Path) -> io::Result<Attached>) -> Result<()> {
        let made = make(at).map_err(|error| match error.raw_os_error() {
            Some(EPERM) => BackendError::Refused {
                reason: "folders of the host can only be mounted by root".to_owned(),
                fix: "run the server as root, or leave mounts out".to_owned(),
            },
            _ => failed(at, error),
        })?;
        self.attached.push(made);
        Ok(())
    }

    /// As the daemon is told of them.
    pub(crate) fn binds(&self) -> Vec<DaemonMount> {
        let bind = |place: &Place| DaemonMount {
            target: Some(place.target.to_string()),
            source: Some(place.at.to_string_lossy().into_owned()),
            typ: Some(MountType::BIND),
            read_only: Some(place.read_only),
            bind_options: Some(MountBindOptions {
                propagation: Some(Propagation::RPRIVATE),
                non_recursive: Some(true),
                ..Default::default()
            }),
            ..Default::default()
        };
        self.places.iter().map(bind).collect()
    }

    pub(crate) fn has_target(&self, path: &str) -> bool {
        self.places.iter().any(|place| place.target.as_str() == path)
    }

    /// Makes sure that the container has the mounts, and not what lies below them: a daemon that sees other mounts than
    /// this process would put an empty folder there.
    pub(crate) async fn check(&self, connection: &Connection) -> Result<()> {
        for place in &self.places {
            if connection.stat(&place.target.join(&self.mark)?).await.is_ok() {
                return Err(BackendError::Refused {
                    reason: format!("the daemon does not see what is mounted for {}", place.target),
                    fix: "let the daemon and this server have the same mounts (no PrivateMounts, one machine), or \
                          leave mounts out"
                        .to_owned(),
                });
            }
        }
        Ok(())
    }
}

const EPERM: i32 = 1;

fn failed(at: &Path, error: io::Error) -> BackendError {
    BackendError::failed(format!("mounting at {}", at.display()), error)
}

impl Drop for Staged {
    fn drop(&mut self) {
        self.attached.clear();
        clear(&self.folder, &self.mark);
        // The owner's own, if this was its last.
        let _ = self.folder.parent().map(fs::remove_dir);
    }
}

/// Takes away the places of one sandbox. Nothing is removed with what is in it: what is still mounted would go, too.
fn clear(folder: &Path, mark: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let at = entry.path();
        // Of those that are gone already, it says that nothing is mounted there.
        let _ = detach(&at);
        let _ = fs::remove_file(at.join(mark));
        let _ = fs::remove_dir(&at);
    }
    let _ = fs::remove_dir(folder);
}

/// Takes away what processes that are gone have left.
pub(crate) fn sweep(folder: &Path) {
    for owner in fs::read_dir(all(folder)).into_iter().flatten().flatten() {
        if owner.file_name().to_str().is_none_or(|name| !maker::is_gone(name, true)) {
            continue;
        }
        for sandbox in fs::read_dir(owner.path()).into_iter().flatten().flatten() {
            clear(&sandbox.path(), &mark(&sandbox.file_name().to_string_lossy()));
        }
        let _ = fs::remove_dir(owner.path());
    }
}
