//! Makes containers and hands them out as sandboxes.

use crate::attach::{LastWords, Stdout};
use crate::daemon::{Address, failed, status};
use crate::engine::{self, Engine};
use crate::mounts::{self, Staged};
use crate::prepare::{Prepared, prepare};
use crate::sandbox::DockerSandbox;
use crate::{container, orphans};
use bollard::Docker;
use bollard::query_parameters::{AttachContainerOptions, CreateContainerOptions, RemoveContainerOptions};
use cofferdam_backend::{
    Backend, BackendError, Capabilities, Image, Result, Sandbox, SandboxSpec, async_trait,
};
use cofferdam_core::{Disk, IsolationMode};
use cofferdam_guest::host::{Connection, Contained};
use cofferdam_guest::maker;
use cofferdam_images::Store;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;

#[derive(Debug, Clone)]
pub struct DockerOptions {
    pub engine: Engine,
    /// Where the daemon listens, as `DOCKER_HOST` spells it.
    pub host: String,
    /// The image of sandboxes that name none: one that the daemon or our own store has.
    pub image: Option<String>,
    /// Our own images, for those that the daemon does not have.
    pub store: Option<Store>,
    /// A folder of this machine for what a daemon has to read from a file.
    pub folder: PathBuf,
    /// The daemon's name of a runtime other than its own, such as `runsc`.
    pub runtime: Option<String>,
    /// The program that becomes the helper: one of ours, linked statically, or with what it needs in the image.
    pub helper: PathBuf,
    /// How long a helper goes on without hearing from here: a daemon that is killed leaves its containers running,
    /// and nobody tells them.
    pub lost_after: Duration,
}

/// For [`DockerOptions::lost_after`]: long enough for a machine that is very busy.
pub const LOST_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct DockerBackend {
    options: DockerOptions,
    address: Address,
    owner: String,
    helper: OnceCell<Arc<Vec<u8>>>,
    negotiated: OnceCell<Docker>,
    /// What was seen to be prepared, by the names that were asked for.
    prepared: Mutex<HashMap<String, Prepared>>,
    swept: OnceCell<()>,
    /// What the attack suite leaves out of the next sandboxes.
    #[cfg(feature = "leave-out")]
    pub mutation: Mutex<cofferdam_linux::ControlSet>,
}

impl DockerBackend {
    pub fn new(options: DockerOptions) -> Result<Self> {
        let address = Address::parse(options.engine, &options.host)?;
        Ok(Self {
            options,
            address,
            owner: maker::own(),
            helper: OnceCell::new(),
            negotiated: OnceCell::new(),
            prepared: Mutex::default(),
            swept: OnceCell::new(),
            #[cfg(feature = "leave-out")]
            mutation: Mutex::default(),
        })
    }

    /// The daemon, after a look at whether it is there and what it speaks.
    async fn daemon(&self) -> Result<&Docker> {
        self.address.check().await?;
        let negotiate = || async {
            let docker = self.address.client()?;
            docker
                .negotiate_version()
                .await
                .map_err(|error| failed("asking the daemon for its version", error))
        };
        self.negotiated.get_or_try_init(negotiate).await
    }

    /// Removes containers that processes of this machine left behind; answers their names.
    pub async fn remove_orphans(&self) -> Result<Vec<String>> {
        orphans::remove(self.daemon().await?).await
    }

    async fn image(&self, docker: &Docker, image: &Image) -> Result<Prepared> {
        let name = match (image, &self.options.image) {
            (Image::Named(name), _) | (Image::Host, Some(name)) => name,
            (Image::Host, None) => {
                return Err(BackendError::Refused {
                    reason: "no image was named".to_owned(),
                    fix: "name one that the daemon has: --image NAME".to_owned(),
                });
            }
            (Image::Folder(_) | Image::Layers(_), _) => {
                return Err(BackendError::Unsupported { backend: self.name(), what: "use a root folder" });
            }
        };
        if let Some(known) = self.known(name) {
            return Ok(known);
        }
        let helper = self.helper.get_or_try_init(|| read_helper(&self.options.helper)).await?;
        let (engine, store) = (self.options.engine, self.options.store.as_ref());
        let prepared = prepare(docker, engine, name, store, helper).await?;
        let mut known = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.clone(), prepared.clone());
        Ok(prepared)
    }

    fn known(&self, name: &str) -> Option<Prepared> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// A container that runs, by the daemon's own id of it.
    async fn begin(
        &self,
        docker: &Docker,
        spec: &SandboxSpec,
        prepared: &Prepared,
    ) -> Result<(String, Connection)> {
        let name = container::name(spec);
        // Before there is a container: what cannot be mounted is refused without one.
        let room = container::workspace_room(&spec.limits);
        let staged = Staged::make(&self.options.folder, &self.owner, spec, room)?;
        let seccomp = engine::seccomp(self.options.engine, &self.options.folder)?;
        let body = container::body(spec, &self.options, prepared, &self.owner, seccomp, staged.as_ref());
        #[cfg(feature = "leave-out")]
        let body = {
            let without = *self.mutation.lock().unwrap_or_else(PoisonError::into_inner);
            crate::leave_out::changed(body, self.options.engine, without)
        };
        let options = CreateContainerOptions { name: Some(name.clone()), ..Default::default() };
        let id = match docker.create_container(Some(options), body).await {
            Ok(created) => created.id,
            Err(error) => {
                // Somebody may have removed the prepared image; the next sandbox has it made again.
                if status(&error) == Some(404) {
                    let mut known = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
                    known.retain(|_, other| other != prepared);
                }
                return Err(failed("making the container", error));
            }
        };
        let mut begun = self.attach(docker, &name).await;
        if let (Ok(connection), Some(staged)) = (&begun, &staged)
            && let Err(error) = staged.check(connection).await
        {
            begun = Err(error);
        }
        match begun {
            Ok(connection) => Ok((id, connection)),
            Err(error) => {
                remove(docker, &name).await?;
                Err(error)
            }
        }
    }

    async fn attach(&self, docker: &Docker, name: &str) -> Result<Connection> {
        let options = AttachContainerOptions {
            stream: true,
            stdin: true,
            stdout: true,
            stderr: true,
            ..Default::default()
        };
        let attached = docker.attach_container(name, Some(options)).await;
        let attached = attached.map_err(|error| failed("connecting to the container", error))?;
        let words = LastWords::default();
        let stdout = Stdout::new(attached.output, words.clone());
        docker.start_container(name, None).await.map_err(|error| failed("starting the container", error))?;
        Connection::open(stdout, attached.input, self.options.lost_after).await.map_err(|error| {
            match words.text() {
                words if words.is_empty() => error,
                words => {
                    BackendError::failed("starting the helper in the container", std::io::Error::other(words))
                }
            }
        })
    }
}

async fn read_helper(path: &std::path::Path) -> Result<Arc<Vec<u8>>> {
    let read = std::fs::read(path);
    read.map(Arc::new).map_err(|error| BackendError::failed(format!("reading {}", path.display()), error))
}

/// Ends a container and waits until it is gone. One that is gone already is what was asked for.
pub(crate) async fn remove(docker: &Docker, name: &str) -> Result<()> {
    let options = RemoveContainerOptions { force: true, v: true, ..Default::default() };
    match docker.remove_container(name, Some(options)).await {
        Ok(()) => Ok(()),
        Err(error) if status(&error) == Some(404) => Ok(()),
        // Its own removal is under way.
        Err(error) if status(&error) == Some(409) => wait_removed(docker, name).await,
        Err(error) => Err(failed("removing the container", error)),
    }
}

async fn wait_removed(docker: &Docker, name: &str) -> Result<()> {
    for _ in 0..REMOVED_WITHIN_TURNS {
        if docker.inspect_container(name, None).await.is_err_and(|error| status(&error) == Some(404)) {
            return Ok(());
        }
        tokio::time::sleep(TURN).await;
    }
    Err(BackendError::failed("removing the container", std::io::ErrorKind::TimedOut.into()))
}

const TURN: Duration = Duration::from_millis(20);
const REMOVED_WITHIN_TURNS: u32 = 500;

#[async_trait]
impl Backend for DockerBackend {
    fn name(&self) -> &'static str {
        self.options.engine.name()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            pause: true,
            terminal: true,
            listen: true,
            connect: true,
            disk: false,
            writable_root: false,
            change_limits: self.options.engine.changes_limits(),
            watch: true,
            hand_over: false,
            mounts: true,
            file_times: true,
            // What goes to a daemon over a network goes in the clear.
            secrets: self.address.is_of_this_machine(),
        }
    }

    /// The helper, and what the daemon has beside each container.
    fn idle_bytes(&self) -> u64 {
        16 << 20
    }

    async fn health(&self) -> Result<()> {
        let ping = self.daemon().await?.ping().await;
        ping.map(drop).map_err(|error| failed("asking the daemon", error))
    }

    async fn create(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>> {
        spec.limits.validate()?;
        let unsupported = |what| BackendError::Unsupported { backend: self.name(), what };
        if matches!(spec.limits.disk, Disk::OnDisk { .. }) {
            return Err(unsupported(
                "keep files on disk: leave --disk out, or lower it to half of the memory",
            ));
        }
        if spec.writable_root {
            return Err(unsupported("make the root writable"));
        }
        if spec.files.is_some() {
            return Err(unsupported("begin with the files of another sandbox"));
        }
        let docker = self.daemon().await?;
        // Once, and whatever comes of it: what others left is no reason not to make one.
        let sweep = || async {
            drop(orphans::remove(docker).await);
            mounts::sweep(&self.options.folder);
        };
        self.swept.get_or_init(sweep).await;
        let prepared = self.image(docker, &spec.image).await?;
        let (id, connection) = self.begin(docker, &spec, &prepared).await?;
        let strict = spec.isolation == IsolationMode::Strict;
        let engine = self.options.engine;
        let sandbox = Contained::new(DockerSandbox::new(
            engine,
            docker.clone(),
            container::name(&spec),
            id,
            spec,
            connection,
        ));
        if strict {
            sandbox.check_walls().await?;
        }
        Ok(Box::new(sandbox))
    }
}
