//! Behind which wall the jobs of the scenarios run. Every other than `native` has an image, made here once.

use crate::daemon::Daemon;
use cofferdam_api::{Job, JobRequest, SessionRequest};
use cofferdam_core::JobState;
use cofferdam_docker::Engine;
use cofferdam_project_tests::{binary, root};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Names one of [`ALL`]; without it, each is tried in its turn.
pub const VARIABLE: &str = "COFFERDAM_FEATURES_ON";

pub const ALL: [&str; 5] = ["native", "oci/runc", "oci/runsc", "docker", "podman"];

const IMAGE: &str = "features:1";

static WALL: OnceLock<Wall> = OnceLock::new();

/// What a server and its jobs need for one.
#[derive(Debug, Default)]
pub struct Wall {
    backend: Option<&'static str>,
    settings: Vec<String>,
    images: PathBuf,
}

/// The one of this process.
pub fn wall() -> &'static Wall {
    WALL.get().expect("a wall was chosen before the first scenario")
}

/// Takes it down again: the end of a process drops nothing that is kept for ever.
#[derive(Debug)]
pub struct Standing(PathBuf, Option<Daemon>);

impl Drop for Standing {
    fn drop(&mut self) {
        drop(self.1.take());
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Wall {
    /// Puts up the one of this name, for all scenarios of this process and for as long as what it returns.
    pub fn put_up(name: &str) -> Option<Standing> {
        let name = ALL.into_iter().find(|known| *known == name);
        let name = name.unwrap_or_else(|| panic!("{VARIABLE} is none of {}", ALL.join(", ")));
        let mut wall = Self::default();
        let mut standing = None;
        if name != "native" {
            let folder = std::env::temp_dir().join(format!("cofferdam-wall-{}", std::process::id()));
            std::fs::create_dir(&folder).expect("a folder");
            wall.images = store(&folder);
            let (backend, runtime) = name.split_once('/').map_or((name, None), |(b, r)| (b, Some(r)));
            wall.backend = Some(backend);
            wall.set("backends.images=true");
            wall.set(&format!("backends.enabled=native,{backend}"));
            if let Some(runtime) = runtime {
                wall.set(&format!("backends.oci_runtime={runtime}"));
            }
            let engine = match backend {
                "docker" => Some(Engine::Docker),
                "podman" => Some(Engine::Podman),
                _ => None,
            };
            let daemon = engine.map(|engine| {
                let daemon = Daemon::start(engine, &folder.join("daemon")).expect("a daemon");
                wall.set(&format!("backends.{backend}_socket={}", daemon.socket.display()));
                daemon
            });
            standing = Some(Standing(folder, daemon));
        }
        WALL.set(wall).expect("one wall a process");
        standing
    }

    fn set(&mut self, setting: &str) {
        self.settings.extend(["--set".to_owned(), setting.to_owned()]);
    }

    /// Lets a server have it.
    pub fn lend(&self, server: &mut Command) {
        server.args(&self.settings);
        if self.backend.is_some() {
            server.env("COFFERDAM_IMAGES", &self.images);
        }
    }

    /// A job behind it.
    pub fn ask(&self, request: JobRequest) -> JobRequest {
        let Some(backend) = self.backend else { return request };
        JobRequest { backend: Some(backend.to_owned()), image: Some(IMAGE.to_owned()), ..request }
    }

    /// A session behind it.
    pub fn ask_session(&self, request: SessionRequest) -> SessionRequest {
        let Some(backend) = self.backend else { return request };
        SessionRequest { backend: Some(backend.to_owned()), image: Some(IMAGE.to_owned()), ..request }
    }

    /// A job that ran elsewhere shows nothing of this wall. One that was cancelled in time ran nowhere.
    pub fn look_at(&self, job: &Job) {
        let isolation = job.result.as_ref().and_then(|result| result.isolation.as_ref());
        let backend = isolation.map_or("", |isolation| &isolation.backend);
        if !backend.is_empty() || job.status.state == JobState::Succeeded {
            assert_eq!(backend, self.backend.unwrap_or("native"), "{job:?}");
        }
    }
}

/// An image store with this machine's own programs in one image.
fn store(folder: &Path) -> PathBuf {
    let program = binary::folder().join("cofferdam");
    let (made, store) = (folder.join("root"), folder.join("images"));
    let script = root().join("scripts/container-root.sh");
    let status = Command::new(script).arg(&made).arg(&program).status().expect("container-root.sh");
    assert!(status.success(), "container-root.sh: {status}");
    let mut import = Command::new(&program);
    import.args(["image", "import"]).arg(&made).args(["--name", IMAGE]).env("COFFERDAM_IMAGES", &store);
    let status = import.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("an import");
    assert!(status.success(), "image import: {status}");
    std::fs::remove_dir_all(&made).expect("the root to be removed");
    store
}
