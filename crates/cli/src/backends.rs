//! Which backend makes a sandbox, from the words of a command line and the environment that daemons are named in.

use crate::args::RunArgs;
use cofferdam_backend::{Backend, BackendError};
use cofferdam_core::InvalidValue;
use cofferdam_docker::{DockerBackend, DockerOptions, LOST_AFTER, default_host};
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_oci::{OciBackend, OciOptions};
use std::env;
use std::path::PathBuf;
use std::sync::Arc;

/// A backend, and what only it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    Native,
    Oci { runtime: String },
    Docker { image: String, runtime: Option<String>, socket: Option<String> },
}

/// What the oci backend uses unless told otherwise.
const RUNTIME: &str = "runc";

impl Choice {
    /// Refuses words that the chosen backend would have to pass over.
    pub(crate) fn parse(args: &RunArgs) -> Result<Self, InvalidValue> {
        let name = args.backend.as_deref().unwrap_or("native");
        let only = |option: &str, value: &Option<String>, fix: &str| match value {
            Some(value) => Err(InvalidValue::new(option, value.as_str(), fix)),
            None => Ok(()),
        };
        let of_daemons = "it is for --backend docker";
        match name {
            "native" | "oci" => {
                only("--socket", &args.socket, of_daemons)?;
                if name == "oci" {
                    only("--image", &args.image, "the oci backend takes a folder so far: --rootfs DIR")?;
                    let runtime = args.runtime.clone().unwrap_or_else(|| RUNTIME.to_owned());
                    return Ok(Self::Oci { runtime });
                }
                only("--runtime", &args.runtime, "it is for --backend oci or docker")?;
                Ok(Self::Native)
            }
            "docker" => {
                if let Some(rootfs) = &args.rootfs {
                    let fix = "a daemon has images: name one with --image NAME";
                    return Err(InvalidValue::new("--rootfs", rootfs.display().to_string(), fix));
                }
                let Some(image) = args.image.clone() else {
                    let fix = "it needs the name of an image that the daemon has: --image NAME";
                    return Err(InvalidValue::new("--backend", name, fix));
                };
                let (runtime, socket) = (args.runtime.clone(), args.socket.clone());
                Ok(Self::Docker { image, runtime, socket })
            }
            _ => Err(InvalidValue::new("--backend", name, "it must be native, oci or docker")),
        }
    }
}

fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Where the daemon listens: what was said, then what its own tools go by, then the usual place.
fn host(socket: Option<String>) -> String {
    let is_root = rustix::process::geteuid().is_root();
    let usual = || default_host(set("XDG_RUNTIME_DIR").as_deref(), is_root);
    socket.or_else(|| set("DOCKER_HOST")).unwrap_or_else(usual)
}

/// This program itself, which becomes the helper inside.
fn helper() -> Result<PathBuf, BackendError> {
    env::current_exe().map_err(|error| BackendError::failed("looking for this program", error))
}

/// Makes a backend other than the native one.
pub(crate) fn make(choice: Choice) -> Result<Arc<dyn Backend>, BackendError> {
    match choice {
        Choice::Docker { image, runtime, socket } => Ok(Arc::new(DockerBackend::new(DockerOptions {
            host: host(socket),
            image: Some(image),
            runtime,
            helper: helper()?,
            lost_after: LOST_AFTER,
        })?)),
        Choice::Oci { runtime } => Ok(Arc::new(OciBackend::new(OciOptions {
            runtime,
            rootfs: None,
            helper: helper()?,
            runtime_folder: default_runtime_folder(),
        })?)),
        Choice::Native => Err(BackendError::Unsupported { backend: "native", what: "be made here" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Choice, String> {
        use clap::Parser;
        let line = ["cofferdam", "run"].iter().chain(words).chain(&["--", "true"]);
        match crate::args::Cli::try_parse_from(line).map_err(|error| error.to_string())?.command {
            crate::args::Command::Run(args) => Choice::parse(&args).map_err(|error| error.to_string()),
            _ => Err("another command".to_owned()),
        }
    }

    #[test]
    fn each_backend_has_its_own_words() {
        assert_eq!(parse(&[]), Ok(Choice::Native));
        assert_eq!(parse(&["--backend", "oci"]), Ok(Choice::Oci { runtime: "runc".to_owned() }));
        let runsc = parse(&["--backend", "oci", "--runtime", "runsc", "--rootfs", "/root"]);
        assert_eq!(runsc, Ok(Choice::Oci { runtime: "runsc".to_owned() }));
        let docker = parse(&["--backend", "docker", "--image", "a", "--socket", "/s"]);
        let expected = Choice::Docker { image: "a".to_owned(), runtime: None, socket: Some("/s".to_owned()) };
        assert_eq!(docker, Ok(expected));
    }

    #[test]
    fn words_that_would_be_passed_over_are_refused_by_name() {
        let cases: [(&[&str], &str); 6] = [
            (&["--backend", "lxc"], "--backend: \"lxc\""),
            (&["--runtime", "runsc"], "--runtime: \"runsc\""),
            (&["--socket", "/s"], "--socket: \"/s\""),
            (&["--backend", "oci", "--image", "a"], "--image: \"a\""),
            (&["--backend", "docker"], "--image NAME"),
            (&["--backend", "docker", "--rootfs", "/r"], "--rootfs: \"/r\""),
        ];
        for (words, expected) in cases {
            let error = parse(words).expect_err("words that are refused");
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }
}
