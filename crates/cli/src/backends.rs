//! Which backend makes a sandbox, from the words of a command line and the environment that daemons are named in.

use crate::args::{RunArgs, WorkerBackendArgs};
use crate::config::{BackendsConfig, MOST_WAITING};
use crate::host::state;
use cofferdam_backend::{Backend, BackendError};
use cofferdam_core::InvalidValue;
use cofferdam_docker::{DockerBackend, DockerOptions, Engine, LOST_AFTER};
use cofferdam_images::Store;
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
    Docker { engine: Engine, image: Option<String>, runtime: Option<String>, socket: Option<String> },
}

/// Those besides the native one.
const OTHERS: [&str; 3] = ["oci", "docker", "podman"];

/// What the oci backend uses unless told otherwise.
const RUNTIME: &str = "runc";

impl Choice {
    /// A daemon that is told with each sandbox which image it is to have.
    fn of_daemon(engine: Engine, socket: &Option<String>) -> Self {
        Self::Docker { engine, image: None, runtime: None, socket: socket.clone() }
    }

    /// Refuses words that the chosen backend would have to pass over.
    pub(crate) fn parse(args: &RunArgs) -> Result<Self, InvalidValue> {
        let name = args.backend.as_deref().unwrap_or("native");
        let only = |option: &str, value: &Option<String>, fix: &str| match value {
            Some(value) => Err(InvalidValue::new(option, value.as_str(), fix)),
            None => Ok(()),
        };
        let of_daemons = "it is for --backend docker or podman";
        match name {
            "native" | "oci" => {
                only("--socket", &args.socket, of_daemons)?;
                if name == "oci" {
                    let runtime = args.runtime.clone().unwrap_or_else(|| RUNTIME.to_owned());
                    return Ok(Self::Oci { runtime });
                }
                only("--runtime", &args.runtime, "it is for --backend oci, docker or podman")?;
                Ok(Self::Native)
            }
            "docker" | "podman" => {
                if let Some(rootfs) = &args.rootfs {
                    let fix = "a daemon has images: name one with --image NAME";
                    return Err(InvalidValue::new("--rootfs", rootfs.display().to_string(), fix));
                }
                let Some(image) = args.image.clone() else {
                    let fix =
                        "it needs the name of an image that the daemon or the image store has: --image NAME";
                    return Err(InvalidValue::new("--backend", name, fix));
                };
                let engine = if name == "podman" { Engine::Podman } else { Engine::Docker };
                let (runtime, socket) = (args.runtime.clone(), args.socket.clone());
                Ok(Self::Docker { engine, image: Some(image), runtime, socket })
            }
            _ => Err(InvalidValue::new("--backend", name, "it must be native, oci, docker or podman")),
        }
    }
}

fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Where the daemon listens: what was said, then what its own tools go by, then the usual place.
pub(crate) fn host(engine: Engine, socket: Option<String>) -> String {
    let is_root = rustix::process::geteuid().is_root();
    let usual = || engine.default_host(set("XDG_RUNTIME_DIR").as_deref(), is_root);
    let own = || match engine {
        Engine::Docker => None,
        Engine::Podman => set("CONTAINER_HOST"),
    };
    socket.or_else(own).or_else(|| set("DOCKER_HOST")).unwrap_or_else(usual)
}

/// The engine of a daemon that is asked for as Docker's: Podman's where only that has been named.
pub(crate) fn named_engine() -> Engine {
    match (set("DOCKER_HOST"), set("CONTAINER_HOST")) {
        (None, Some(_)) => Engine::Podman,
        _ => Engine::Docker,
    }
}

/// This program itself, which becomes the helper inside.
fn helper() -> Result<PathBuf, BackendError> {
    env::current_exe().map_err(|error| BackendError::failed("looking for this program", error))
}

/// The backends besides the native one that an operator has turned on, by their names. One that cannot be used is an
/// error at the start, not at the first job.
pub(crate) fn turned_on(config: &BackendsConfig) -> Result<Vec<Arc<dyn Backend>>, BackendError> {
    let choice = |name: &str| match name {
        "oci" => Some(Choice::Oci { runtime: config.oci_runtime.clone() }),
        "docker" => Some(Choice::of_daemon(Engine::Docker, &config.docker_socket)),
        "podman" => Some(Choice::of_daemon(Engine::Podman, &config.podman_socket)),
        _ => None,
    };
    config.enabled.iter().filter_map(|name| choice(name)).map(make).collect()
}

/// The backends that a worker was told to offer besides the native one. A word that would be passed over is refused.
pub(crate) fn offered(args: &WorkerBackendArgs) -> Result<BackendsConfig, InvalidValue> {
    let WorkerBackendArgs { backend, oci_runtime, docker_socket, podman_socket, waiting } = args;
    let mut config = BackendsConfig::default();
    for name in backend {
        if !OTHERS.contains(&name.as_str()) {
            let fix = "it must be oci, docker or podman; native is always there";
            return Err(InvalidValue::new("--backend", name.as_str(), fix));
        }
        if config.enabled.contains(name) {
            return Err(InvalidValue::new("--backend", name.as_str(), "it is there already; name it once"));
        }
        config.enabled.push(name.clone());
    }
    for (option, value, of) in [
        ("--oci-runtime", oci_runtime, "oci"),
        ("--docker-socket", docker_socket, "docker"),
        ("--podman-socket", podman_socket, "podman"),
    ] {
        if let Some(value) = value
            && !config.enabled.iter().any(|name| name == of)
        {
            let fix = format!("it is for --backend {of}, which is not given");
            return Err(InvalidValue::new(option, value.as_str(), fix));
        }
    }
    if let Some(waiting) = *waiting {
        let refused = |fix: String| Err(InvalidValue::new("--waiting", waiting.to_string(), fix));
        if waiting > MOST_WAITING {
            return refused(format!("it may be from 0 to {MOST_WAITING}"));
        }
        if config.enabled.len() == 1 {
            return refused("it is for --backend, which is not given".to_owned());
        }
        config.waiting = waiting;
    }
    if let Some(runtime) = oci_runtime {
        config.oci_runtime.clone_from(runtime);
    }
    config.docker_socket.clone_from(docker_socket);
    config.podman_socket.clone_from(podman_socket);
    Ok(config)
}

/// Our own images.
pub(crate) fn images() -> Result<Store, BackendError> {
    let folder = std::path::absolute(state::images());
    folder.map(Store::at).map_err(|error| BackendError::failed("looking for the image store", error))
}

/// Makes a backend other than the native one.
pub(crate) fn make(choice: Choice) -> Result<Arc<dyn Backend>, BackendError> {
    match choice {
        Choice::Docker { engine, image, runtime, socket } => {
            Ok(Arc::new(DockerBackend::new(DockerOptions {
                engine,
                host: host(engine, socket),
                image,
                store: Some(images()?),
                folder: default_runtime_folder().join(engine.name()),
                runtime,
                helper: helper()?,
                lost_after: LOST_AFTER,
            })?))
        }
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
        let expected = |engine| Choice::Docker {
            engine,
            image: Some("a".to_owned()),
            runtime: None,
            socket: Some("/s".to_owned()),
        };
        assert_eq!(docker, Ok(expected(Engine::Docker)));
        let podman = parse(&["--backend", "podman", "--image", "a", "--socket", "/s"]);
        assert_eq!(podman, Ok(expected(Engine::Podman)));
        let image = parse(&["--backend", "oci", "--image", "a"]);
        assert_eq!(image, Ok(Choice::Oci { runtime: "runc".to_owned() }));
    }

    #[test]
    fn words_that_would_be_passed_over_are_refused_by_name() {
        let cases: [(&[&str], &str); 6] = [
            (&["--backend", "lxc"], "--backend: \"lxc\""),
            (&["--runtime", "runsc"], "--runtime: \"runsc\""),
            (&["--socket", "/s"], "--socket: \"/s\""),
            (&["--backend", "podman"], "--image NAME"),
            (&["--backend", "docker"], "--image NAME"),
            (&["--backend", "docker", "--rootfs", "/r"], "--rootfs: \"/r\""),
        ];
        for (words, expected) in cases {
            let error = parse(words).expect_err("words that are refused");
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }

    #[test]
    fn a_worker_offers_what_it_is_told_and_nothing_that_it_would_pass_over() {
        let parse = |words: &[&str]| {
            use clap::Parser;
            let line = ["cofferdam", "worker", "--control", "http://c", "--service-token-file", "t"];
            match crate::args::Cli::try_parse_from(line.iter().chain(words)).expect("a line").command {
                crate::args::Command::Worker(args) => {
                    offered(&args.backends).map_err(|error| error.to_string())
                }
                _ => Err("another command".to_owned()),
            }
        };
        assert_eq!(parse(&[]), Ok(BackendsConfig::default()));
        let words =
            ["--backend", "oci", "--oci-runtime", "runsc", "--backend", "docker", "--docker-socket", "/s"];
        let both = parse(&words).expect("backends");
        assert_eq!(
            (both.enabled.join(" ").as_str(), both.oci_runtime.as_str()),
            ("native oci docker", "runsc")
        );
        assert_eq!((both.docker_socket.as_deref(), both.podman_socket), (Some("/s"), None));
        assert_eq!(both.waiting, 2);
        assert_eq!(parse(&["--backend", "oci", "--waiting", "0"]).map(|config| config.waiting), Ok(0));
        let cases: [(&[&str], &str); 7] = [
            (&["--waiting", "1"], "--waiting: \"1\" is not valid: it is for --backend"),
            (&["--backend", "oci", "--waiting", "9"], "from 0 to 8"),
            (&["--backend", "lxc"], "--backend: \"lxc\""),
            (&["--backend", "native"], "native is always there"),
            (&["--backend", "oci", "--backend", "oci"], "name it once"),
            (&["--oci-runtime", "runsc"], "--oci-runtime: \"runsc\""),
            (&["--backend", "docker", "--podman-socket", "/s"], "--backend podman"),
        ];
        for (words, expected) in cases {
            let error = parse(words).expect_err("words that are refused");
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }
}
