//! The two engines that speak Docker's interface, and where they part.

use cofferdam_backend::{BackendError, Result};
use cofferdam_linux::seccomp::{Profile, oci_json};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Whose daemon it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Docker,
    Podman,
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    /// Whether containers can be given other limits: behind the interface of Docker, Podman has no such request.
    pub(crate) fn changes_limits(self) -> bool {
        self == Self::Docker
    }

    /// How its daemon is started.
    pub(crate) fn start(self) -> &'static str {
        match self {
            Self::Docker => "start dockerd, or name its socket with --socket or DOCKER_HOST",
            Self::Podman => {
                "start it with `podman system service --time 0`, or name its socket with --socket or CONTAINER_HOST"
            }
        }
    }

    /// The names that an image may have there, the likeliest first. Behind the interface of Docker, Podman takes a
    /// name without a registry for one of Docker Hub; what was made on the machine is called `localhost/NAME`.
    pub(crate) fn names(self, image: &str) -> Vec<String> {
        let has_registry = image.split_once('/').is_some_and(|(first, _)| first.contains(['.', ':']));
        let is_local = self == Self::Podman && !has_registry && !image.starts_with("localhost/");
        let local = is_local.then(|| format!("localhost/{image}"));
        [image.to_owned()].into_iter().chain(local).collect()
    }

    /// Where the daemon listens unless somebody says otherwise. `runtime_folder` is the user's own
    /// (`XDG_RUNTIME_DIR`), for a daemon without root: the narrower wall, taken where it is there.
    pub fn default_host(self, runtime_folder: Option<&str>, is_root: bool) -> String {
        let (own, usual) = match self {
            Self::Docker => ("docker.sock", "/var/run/docker.sock"),
            Self::Podman => ("podman/podman.sock", "/run/podman/podman.sock"),
        };
        match runtime_folder.map(|folder| format!("{}/{own}", folder.trim_end_matches('/'))) {
            Some(path) if !is_root && Path::new(&path).exists() => format!("unix://{path}"),
            _ => format!("unix://{usual}"),
        }
    }
}

/// The list of system calls as the engine takes it: Docker the text, Podman the path of a file with it.
pub(crate) fn seccomp(engine: Engine, folder: &Path) -> Result<String> {
    let json = oci_json(Profile::PayloadOneId);
    match engine {
        Engine::Docker => Ok(format!("seccomp={json}")),
        Engine::Podman => {
            let kept = keep(folder, &json);
            let path = kept.map_err(|error| {
                BackendError::failed(
                    format!("writing the list of system calls to {}", folder.display()),
                    error,
                )
            })?;
            Ok(format!("seccomp={}", path.display()))
        }
    }
}

fn keep(folder: &Path, json: &str) -> io::Result<PathBuf> {
    let path = folder.join("seccomp.json");
    if fs::read_to_string(&path).is_ok_and(|kept| kept == json) {
        return Ok(path);
    }
    fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    // Whole or not at all: another process may be about to use it.
    let partial = folder.join(format!("seccomp.{}", std::process::id()));
    fs::write(&partial, json)?;
    fs::rename(&partial, &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_of_ones_own_is_taken_where_it_is_there() {
        let folder = std::env::temp_dir().join(format!("cofferdam-own-daemon-{}", std::process::id()));
        fs::create_dir_all(folder.join("podman")).unwrap();
        let own = folder.to_str().unwrap();
        for (engine, socket, usual) in [
            (Engine::Docker, "docker.sock", "unix:///var/run/docker.sock"),
            (Engine::Podman, "podman/podman.sock", "unix:///run/podman/podman.sock"),
        ] {
            assert_eq!(engine.default_host(Some(own), false), usual, "it is not there");
            fs::write(folder.join(socket), "").unwrap();
            assert_eq!(engine.default_host(Some(own), false), format!("unix://{own}/{socket}"));
            assert_eq!(engine.default_host(Some(own), true), usual, "root's own is the usual one");
            assert_eq!(engine.default_host(None, false), usual);
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
