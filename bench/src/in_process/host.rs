//! The part of a server that sandboxes need: a runtime, a launcher and a backend, on one root filesystem.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cofferdam_backend::{
    Backend, BackendError, ExitStatus, Image, OomScope, Process, ProcessSpec, Sandbox, SandboxSpec, Stdio,
};
use cofferdam_core::{GuestPath, IsolationMode, Limits, NetworkPolicy, SandboxId};
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_linux::sys;
use cofferdam_native::{LauncherHandle, NativeBackend};
use tokio::io::AsyncReadExt;
use tokio::runtime::{Builder, Runtime};

use super::LAUNCHER;
use crate::failure::{Doing, Failure, Result};
use crate::workload::Workload;

pub(crate) struct Host {
    /// Of one thread, so that a sample crosses none.
    pub(super) runtime: Runtime,
    backend: Arc<dyn Backend>,
    image: Image,
}

/// Of all hosts: two backends may have the same place for their sandboxes.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Whether a sandbox lives for one job or for a session, which can be paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Job,
    Session,
}

impl Host {
    pub(super) fn start(rootfs: &Path) -> Result<Self> {
        raise_open_files();
        let program = std::env::current_exe().doing("finding this program")?;
        let mut launcher = Command::new(program);
        launcher.arg(LAUNCHER);
        let launcher = LauncherHandle::spawn(launcher).doing("starting a launcher")?;
        let native = || {
            let backend = NativeBackend::new(launcher, default_runtime_folder());
            let failed = |error| BackendError::failed("connecting to the launcher", error);
            backend.map(|backend| Arc::new(backend) as Arc<dyn Backend>).map_err(failed)
        };
        Self::of(native, Image::Folder(rootfs.to_owned()))
    }

    /// With another backend, made inside of the runtime.
    pub(crate) fn of(
        backend: impl FnOnce() -> std::result::Result<Arc<dyn Backend>, BackendError>,
        image: Image,
    ) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().doing("making a runtime")?;
        let backend = {
            let _inside = runtime.enter();
            backend().map_err(failed)?
        };
        Ok(Self { runtime, backend, image })
    }

    pub(super) fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.backend)
    }

    pub(super) fn image(&self) -> Image {
        self.image.clone()
    }

    /// Everything enforced, with the defaults of a job.
    pub(super) fn sandbox(&self, used_for: Use) -> SandboxSpec {
        let mut id = [0; 10];
        id[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        SandboxSpec {
            id: SandboxId::from_random(id),
            image: self.image(),
            limits: Limits::default(),
            network: NetworkPolicy::None,
            isolation: IsolationMode::Strict,
            oom_scope: OomScope::Sandbox,
            writable_root: false,
            terminal: false,
            pausable: used_for == Use::Session,
            workspace_root: std::env::temp_dir(),
            mounts: Vec::new(),
            files: None,
        }
    }

    /// A sandbox that has run nothing yet, and whose walls are all proven.
    pub(super) async fn warm(&self) -> Result<Box<dyn Sandbox>> {
        let sandbox = self.backend.create(self.sandbox(Use::Session)).await.map_err(failed)?;
        sandbox.isolation().await.map_err(failed)?;
        Ok(sandbox)
    }

    /// From the request to the exit status.
    pub(super) async fn cold(
        &self,
        sandbox: SandboxSpec,
        process: ProcessSpec,
    ) -> Result<(Duration, Box<dyn Sandbox>)> {
        let start = Instant::now();
        let (sandbox, process) = self.backend.create_and_start(sandbox, process).await.map_err(failed)?;
        let process = process.map_err(failed)?;
        finished(&*process).await?;
        Ok((start.elapsed(), sandbox))
    }

    /// Runs a workload once with its output kept, and is content only if that is the workload's.
    pub(crate) fn check(&self, workload: Workload) -> Result<()> {
        self.runtime.block_on(async {
            let request = self.backend.create_and_start(self.sandbox(Use::Job), process(workload)?).await;
            let (sandbox, process) = request.map_err(failed)?;
            let process = process.map_err(failed)?;
            let mut stdout = process.take_stdout().ok_or_else(|| Failure::new("no stdout"))?;
            let mut output = Vec::new();
            stdout.read_to_end(&mut output).await.doing("reading stdout")?;
            finished(&*process).await?;
            sandbox.destroy().await.map_err(failed)?;
            if output == workload.expected_stdout().as_bytes() {
                return Ok(());
            }
            Err(Failure::new(format!("does not run {}", workload.label())))
        })
    }
}

/// In the environment that whole commands get, with a home that is there.
pub(super) fn process(workload: Workload) -> Result<ProcessSpec> {
    let variables = [("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), ("LANG", "C.UTF-8"), ("HOME", "/workspace")];
    let cwd = GuestPath::parse("cwd", "/workspace").map_err(|error| Failure::new(error.to_string()))?;
    Ok(ProcessSpec {
        argv: workload.argv().iter().map(|&word| word.into()).collect(),
        env: variables.map(|(name, value)| (name.into(), value.into())).to_vec(),
        cwd,
        make_cwd: false,
        stdio: Stdio::Pipes { stdin: false },
    })
}

pub(super) async fn finished(process: &dyn Process) -> Result<()> {
    match process.wait().await.map_err(failed)? {
        ExitStatus::Exited(0) => Ok(()),
        other => Err(Failure::new(format!("the program ended with {other:?}"))),
    }
}

pub(super) fn failed(error: BackendError) -> Failure {
    Failure::new(error.to_string())
}

/// A thousand sandboxes take three descriptors each, here and in the launcher, which inherits the limit. Where
/// it cannot be raised, making them says so.
fn raise_open_files() {
    let resource = libc::RLIMIT_NOFILE as i32;
    if let Ok((soft, hard)) = sys::getrlimit(resource)
        && soft < hard
    {
        let _ = sys::setrlimit(resource, hard);
    }
}
