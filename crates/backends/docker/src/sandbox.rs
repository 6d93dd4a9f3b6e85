//! One container of a daemon: what is asked of the daemon for it.

use crate::backend::remove;
use crate::container::{HELPER_PIDS, cpu_quota};
use crate::daemon::{failed, status};
use crate::engine::Engine;
use bollard::Docker;
use bollard::models::ContainerUpdateBody;
use cofferdam_backend::{BackendError, Result, SandboxSpec, Stats, async_trait};
use cofferdam_core::{IsolationReport, Limits};
use cofferdam_guest::host::{Connection, Container};
use cofferdam_guest::report::{self, Asked};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct DockerSandbox {
    engine: Engine,
    docker: Docker,
    name: String,
    /// The daemon's own.
    id: String,
    spec: SandboxSpec,
    connection: Arc<Connection>,
}

impl DockerSandbox {
    pub(crate) fn new(
        engine: Engine,
        docker: Docker,
        name: String,
        id: String,
        spec: SandboxSpec,
        connection: Connection,
    ) -> Self {
        Self { engine, docker, name, id, spec, connection: Arc::new(connection) }
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
impl Container for DockerSandbox {
    fn backend(&self) -> &'static str {
        self.engine.name()
    }

    fn maker(&self) -> &'static str {
        "the daemon"
    }

    fn id(&self) -> Option<&str> {
        Some(&self.id)
    }

    fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    fn spec(&self) -> &SandboxSpec {
        &self.spec
    }

    fn changes_limits(&self) -> bool {
        self.engine.changes_limits()
    }

    async fn look(&self) -> Result<IsolationReport> {
        let facts = self.connection.look().await?;
        let inspected = self.docker.inspect_container(&self.name, None).await;
        let inspected = inspected.map_err(|error| failed("asking the daemon for its limits", error))?;
        let config = inspected.host_config.unwrap_or_default();
        let asked = Asked {
            backend: self.engine.name(),
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

    async fn stats(&self) -> Result<Stats> {
        let counted = self.connection.counted().await?;
        Ok(report::stats(&counted, HELPER_PIDS as u64))
    }

    async fn change_limits(&self, limits: &Limits) -> Result<()> {
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

    async fn destroy(&self) -> Result<()> {
        let removed = remove(&self.docker, &self.name).await;
        self.connection.end("it was destroyed");
        removed
    }
}
