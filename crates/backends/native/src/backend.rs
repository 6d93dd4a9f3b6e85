//! Making sandboxes.

use crate::connection::{Connection, ReadyReceiver};
use crate::image::Images;
use crate::launcher::{CreatedReceiver, Launcher, LauncherHandle};
use crate::report;
use crate::sandbox::{NativeSandbox, check_start};
use cofferdam_backend::{
    Backend, BackendError, Capabilities, OomScope, Process, ProcessSpec, Result, Sandbox, SandboxSpec,
    async_trait,
};
use cofferdam_core::{Disk, IsolationMode};
use cofferdam_linux::cgroup::{self, Layout};
use cofferdam_linux::launcher::CreateRequest;
use cofferdam_linux::{ControlSet, Stage, socket};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Bytes of workspace for each file that it may hold: enough for source trees, too few to exhaust the kernel.
const BYTES_PER_INODE: u64 = 16 << 10;

/// Even the smallest workspace holds the handful of folders that it starts with, and some files.
const MIN_INODES: u64 = 256;

/// Makes sandboxes on this machine.
#[derive(Debug)]
pub struct NativeBackend {
    launcher: Launcher,
    images: Images,
    layout: OnceLock<Arc<Layout>>,
    /// What the attack suite leaves out of the next sandboxes, and where it makes them fail.
    #[cfg(feature = "leave-out")]
    pub mutation: std::sync::Mutex<(ControlSet, Option<Stage>)>,
}

impl NativeBackend {
    /// Connects to a launcher; needs a tokio runtime.
    pub fn new(launcher: LauncherHandle, runtime_folder: PathBuf) -> std::io::Result<Self> {
        Ok(Self {
            launcher: launcher.connect()?,
            images: Images::new(runtime_folder),
            layout: OnceLock::new(),
            #[cfg(feature = "leave-out")]
            mutation: std::sync::Mutex::default(),
        })
    }

    fn layout(&self) -> Arc<Layout> {
        Arc::clone(self.layout.get_or_init(|| Arc::new(cgroup::detect())))
    }

    #[cfg(feature = "leave-out")]
    fn mutation(&self) -> (ControlSet, Option<Stage>) {
        *self.mutation.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    #[cfg(not(feature = "leave-out"))]
    fn mutation(&self) -> (ControlSet, Option<Stage>) {
        (ControlSet::EMPTY, None)
    }

    fn request(&self, spec: &SandboxSpec, image: u32, sandbox: u32) -> Result<CreateRequest> {
        let Disk::Memory { bytes } = spec.limits.disk else {
            return Err(BackendError::Unsupported {
                backend: "native",
                what: "keep a workspace on disk yet",
            });
        };
        let (leave_out, fail_at) = self.mutation();
        let required = match spec.isolation {
            IsolationMode::Strict => report::required(),
            IsolationMode::BestEffort => ControlSet::EMPTY,
        };
        Ok(CreateRequest {
            sandbox,
            image,
            memory_bytes: spec.limits.memory_bytes,
            pids: spec.limits.pids,
            cpu_millis: spec.limits.cpus.millis(),
            oom_group: spec.oom_scope == OomScope::Sandbox,
            files_bytes: bytes,
            files_inodes: (bytes / BYTES_PER_INODE).max(MIN_INODES),
            writable_root: spec.writable_root,
            terminal: spec.terminal,
            required,
            leave_out,
            fail_at,
            hostname: "sandbox".to_owned(),
        })
    }
}

#[async_trait]
impl Backend for NativeBackend {
    fn name(&self) -> &'static str {
        "native"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            pause: true,
            terminal: true,
            listen: true,
            connect: true,
            disk: false,
            writable_root: false,
            change_limits: true,
        }
    }

    async fn health(&self) -> Result<()> {
        match &*self.layout() {
            Layout::None { reason } => Err(report::no_limits(reason)),
            _ => Ok(()),
        }
    }

    async fn create(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>> {
        let pending = self.begin(spec)?;
        Ok(Box::new(pending.finish().await?))
    }

    async fn create_and_start(
        &self,
        spec: SandboxSpec,
        process: ProcessSpec,
    ) -> Result<(Box<dyn Sandbox>, Result<Box<dyn Process>>)> {
        check_start(&spec, &process)?;
        let pending = self.begin(spec)?;
        // Init finds the request waiting when it is done with the set-up.
        let start = Connection::begin_start(&pending.connection, process)?;
        let sandbox: Box<dyn Sandbox> = Box::new(pending.finish().await?);
        let started = start.finish().await.map(|process| Box::new(process) as Box<dyn Process>);
        Ok((sandbox, started))
    }
}

/// A sandbox that the launcher was asked for.
struct Pending {
    spec: SandboxSpec,
    number: u32,
    launcher: Launcher,
    layout: Arc<Layout>,
    connection: Arc<Connection>,
    created: CreatedReceiver,
    ready: ReadyReceiver,
}

impl NativeBackend {
    fn begin(&self, spec: SandboxSpec) -> Result<Pending> {
        spec.limits.validate()?;
        if spec.writable_root {
            return Err(BackendError::Unsupported { backend: "native", what: "make the root writable yet" });
        }
        let image = self.images.open(&spec.image, &self.launcher)?;
        let number = self.launcher.next_sandbox();
        let request = self.request(&spec, image, number)?;
        let failed = |step: &'static str| move |e: std::io::Error| BackendError::failed(step, e);
        let (host, inner) = socket::pair().map_err(|e| failed("making a socket")(e.into()))?;
        let created = self.launcher.create(request, inner)?;
        let (connection, ready) = Connection::new(host).map_err(failed("connecting a socket"))?;
        // Looked up while the sandbox is being made.
        let layout = self.layout();
        Ok(Pending { spec, number, launcher: self.launcher.clone(), layout, connection, created, ready })
    }
}

impl Pending {
    async fn finish(self) -> Result<NativeSandbox> {
        let Self { spec, number, launcher, layout, connection, created, ready } = self;
        let created = created.await.map_err(|_| launcher.gone())?;
        let created = created.map_err(|(stage, errno)| report::create_error(stage, errno, &layout))?;
        let sandbox = NativeSandbox {
            spec,
            number,
            slot: created.slot,
            connection,
            launcher,
            layout,
            proven: created.controls,
            is_destroyed: tokio::sync::Mutex::new(false),
            is_paused: false.into(),
        };
        match ready.await {
            Ok(Ok(_)) => Ok(sandbox),
            Ok(Err((stage, errno, missing))) => {
                Err(report::ready_error(stage, errno, missing, &sandbox.layout))
            }
            Err(_) => Err(BackendError::Gone { cause: "its init died while it was being made".to_owned() }),
        }
    }
}
