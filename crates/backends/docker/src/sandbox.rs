//! One container as a sandbox: the helper does what is done inside, the daemon what is done to it.

use crate::backend::remove;
use crate::container::{HELPER_PIDS, cpu_quota};
use crate::daemon::{failed, status};
use bollard::Docker;
use bollard::models::ContainerUpdateBody;
use cofferdam_backend::{
    BackendError, Entry, EntryKind, FileStat, Listener, Process, ProcessId, ProcessSpec, Reader, Result,
    Sandbox, SandboxSpec, Stats, Stdio, Stream, async_trait,
};
use cofferdam_core::{GuestPath, IsolationReport, Limits};
use cofferdam_guest::host::Connection;
use cofferdam_guest::report::{self, Asked};
use tokio::sync::OnceCell;

#[derive(Debug)]
pub(crate) struct DockerSandbox {
    docker: Docker,
    name: String,
    spec: SandboxSpec,
    connection: Connection,
    report: OnceCell<IsolationReport>,
}

impl DockerSandbox {
    pub(crate) fn new(docker: Docker, name: String, spec: SandboxSpec, connection: Connection) -> Self {
        Self { docker, name, spec, connection, report: OnceCell::new() }
    }

    async fn look(&self) -> Result<IsolationReport> {
        let facts = self.connection.look().await?;
        let inspected = self.docker.inspect_container(&self.name, None).await;
        let inspected = inspected.map_err(|error| failed("asking the daemon for its limits", error))?;
        let config = inspected.host_config.unwrap_or_default();
        let asked = Asked {
            backend: "docker",
            mode: self.spec.isolation,
            by: "the daemon",
            memory: config.memory == Some(self.spec.limits.memory_bytes as i64),
            swap_off: config.memory_swap == config.memory,
            pids: config.pids_limit.is_some_and(|pids| pids > 0),
            cpus: config.cpu_quota.is_some_and(|quota| quota > 0),
            devices: true,
            disk_bytes: self.spec.limits.disk.bytes(),
            writable_root: self.spec.writable_root,
            own_ids: false,
            own_kernel: false,
        };
        Ok(report::isolation(&facts, &asked))
    }

    /// Refuses a container that lacks what was asked of the daemon.
    pub(crate) async fn check_walls(&self) -> Result<()> {
        let report = self.report.get_or_try_init(|| self.look()).await?;
        match report::missing(report, false) {
            missing if missing.is_empty() => Ok(()),
            missing => {
                self.destroy().await?;
                Err(BackendError::Refused {
                    reason: format!("the daemon does not enforce {}", missing.join(", ")),
                    fix: "use --backend native, or accept that with --isolation best-effort".to_owned(),
                })
            }
        }
    }

    async fn gone_or(&self, step: &str, error: bollard::errors::Error) -> BackendError {
        // The container is not there, or does not run.
        if matches!(status(&error), Some(404 | 409)) {
            return BackendError::Gone { cause: "its container is gone".to_owned() };
        }
        failed(step, error)
    }
}

impl Drop for DockerSandbox {
    fn drop(&mut self) {
        self.connection.end("it was dropped");
        // The connection closes with this handle, which ends the helper and its container by itself; asking for it
        // as well is quicker.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (docker, name) = (self.docker.clone(), self.name.clone());
            runtime.spawn(async move { remove(&docker, &name).await });
        }
    }
}

#[async_trait]
impl Sandbox for DockerSandbox {
    async fn start(&self, spec: ProcessSpec) -> Result<Box<dyn Process>> {
        if matches!(spec.stdio, Stdio::Terminal { .. }) && !self.spec.terminal {
            let what = "give a terminal in a sandbox that was made without";
            return Err(BackendError::Unsupported { backend: "docker", what });
        }
        self.connection.start(spec).await
    }

    fn attach(&self, id: ProcessId) -> Result<Box<dyn Process>> {
        self.connection.attach(id)
    }

    async fn read_file(&self, path: &GuestPath) -> Result<Reader> {
        self.connection.read_file(path).await
    }

    async fn write_file(&self, path: &GuestPath, mode: u32, content: Reader) -> Result<u64> {
        self.connection.write_file(path, mode, content).await
    }

    async fn make_folder(&self, path: &GuestPath) -> Result<()> {
        self.connection.make_folder(path).await
    }

    async fn list_files(&self, path: &GuestPath, limit: usize) -> Result<Vec<Entry>> {
        self.connection.list_files(path, limit).await
    }

    async fn stat(&self, path: &GuestPath) -> Result<FileStat> {
        self.connection.stat(path).await
    }

    async fn remove(&self, path: &GuestPath, kind: EntryKind) -> Result<()> {
        self.connection.remove(path, kind).await
    }

    async fn rename(&self, from: &GuestPath, to: &GuestPath) -> Result<()> {
        self.connection.rename(from, to).await
    }

    async fn set_mode(&self, path: &GuestPath, mode: u32) -> Result<()> {
        self.connection.set_mode(path, mode).await
    }

    async fn make_link(&self, path: &GuestPath, target: &[u8]) -> Result<()> {
        self.connection.make_link(path, target).await
    }

    async fn read_link(&self, path: &GuestPath) -> Result<Vec<u8>> {
        self.connection.read_link(path).await
    }

    async fn connect(&self, port: u16) -> Result<Box<dyn Stream>> {
        self.connection.connect(port).await
    }

    async fn listen(&self, port: u16) -> Result<Box<dyn Listener>> {
        self.connection.listen(port).await
    }

    async fn stats(&self) -> Result<Stats> {
        let counted = self.connection.counted().await?;
        Ok(report::stats(&counted, HELPER_PIDS as u64))
    }

    async fn isolation(&self) -> Result<IsolationReport> {
        self.report.get_or_try_init(|| self.look()).await.cloned()
    }

    async fn change_limits(&self, limits: &Limits) -> Result<()> {
        limits.validate()?;
        self.connection.is_there()?;
        let memory = limits.memory_bytes as i64;
        let body = ContainerUpdateBody {
            memory: Some(memory),
            memory_swap: Some(memory),
            cpu_quota: Some(cpu_quota(limits)),
            pids_limit: Some(i64::from(limits.pids) + HELPER_PIDS),
            ..Default::default()
        };
        match self.docker.update_container(&self.name, body).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.gone_or("changing the limits", error).await),
        }
    }

    async fn pause(&self) -> Result<()> {
        self.connection.is_there()?;
        match self.docker.pause_container(&self.name).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.gone_or("pausing the container", error).await),
        }
    }

    async fn resume(&self) -> Result<()> {
        self.connection.is_there()?;
        match self.docker.unpause_container(&self.name).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.gone_or("resuming the container", error).await),
        }
    }

    async fn destroy(&self) -> Result<()> {
        let removed = remove(&self.docker, &self.name).await;
        self.connection.end("it was destroyed");
        removed
    }
}
