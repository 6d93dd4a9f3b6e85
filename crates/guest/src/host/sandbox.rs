//! A container as a sandbox: what is done inside is the helper's, what is done to it is its maker's.

use super::Connection;
use crate::report;
use cofferdam_backend::{
    BackendError, Entry, EntryKind, FileStat, Listener, Process, ProcessId, ProcessSpec, Reader, Result,
    Sandbox, SandboxSpec, Stats, Stdio, Stream, async_trait,
};
use cofferdam_core::{GuestPath, IsolationReport, Limits};
use std::fmt::Debug;
use tokio::sync::OnceCell;

/// What is done to a container from outside.
#[async_trait]
pub trait Container: Debug + Send + Sync {
    /// The backend's name.
    fn backend(&self) -> &'static str;

    /// Who puts up its walls, as errors say it.
    fn maker(&self) -> &'static str;

    /// What a daemon calls it.
    fn id(&self) -> Option<&str> {
        None
    }

    fn connection(&self) -> &Connection;

    fn spec(&self) -> &SandboxSpec;

    /// Whether a kernel of its own is the wall.
    fn has_own_kernel(&self) -> bool {
        false
    }

    /// Whether its limits can change while it is there.
    fn changes_limits(&self) -> bool {
        true
    }

    /// What is in force, seen from inside and from outside.
    async fn look(&self) -> Result<IsolationReport>;

    async fn stats(&self) -> Result<Stats>;

    async fn change_limits(&self, limits: &Limits) -> Result<()>;

    async fn pause(&self) -> Result<()>;

    async fn resume(&self) -> Result<()>;

    async fn destroy(&self) -> Result<()>;
}

/// A container behind the trait that every sandbox has.
#[derive(Debug)]
pub struct Contained<C> {
    container: C,
    report: OnceCell<IsolationReport>,
}

impl<C: Container> Contained<C> {
    pub fn new(container: C) -> Self {
        Self { container, report: OnceCell::new() }
    }

    async fn report(&self) -> Result<&IsolationReport> {
        self.report.get_or_try_init(|| self.container.look()).await
    }

    /// Refuses a container that lacks what was asked for.
    pub async fn check_walls(&self) -> Result<()> {
        let missing = report::missing(self.report().await?, self.container.has_own_kernel());
        if missing.is_empty() {
            return Ok(());
        }
        let reason = format!("{} does not enforce {}", self.container.maker(), missing.join(", "));
        self.container.destroy().await?;
        let fix = "use --backend native, or accept that with --isolation best-effort".to_owned();
        Err(BackendError::Refused { reason, fix })
    }
}

#[async_trait]
impl<C: Container> Sandbox for Contained<C> {
    fn container_id(&self) -> Option<String> {
        self.container.id().map(str::to_owned)
    }

    async fn start(&self, spec: ProcessSpec) -> Result<Box<dyn Process>> {
        if matches!(spec.stdio, Stdio::Terminal { .. }) && !self.container.spec().terminal {
            let what = "give a terminal in a sandbox that was made without";
            return Err(BackendError::Unsupported { backend: self.container.backend(), what });
        }
        self.container.connection().start(spec).await
    }

    fn attach(&self, id: ProcessId) -> Result<Box<dyn Process>> {
        self.container.connection().attach(id)
    }

    async fn read_file(&self, path: &GuestPath) -> Result<Reader> {
        self.container.connection().read_file(path).await
    }

    async fn write_file(&self, path: &GuestPath, mode: u32, content: Reader) -> Result<u64> {
        self.container.connection().write_file(path, mode, content).await
    }

    async fn make_folder(&self, path: &GuestPath) -> Result<()> {
        self.container.connection().make_folder(path).await
    }

    async fn list_files(&self, path: &GuestPath, limit: usize) -> Result<Vec<Entry>> {
        self.container.connection().list_files(path, limit).await
    }

    async fn stat(&self, path: &GuestPath) -> Result<FileStat> {
        self.container.connection().stat(path).await
    }

    async fn remove(&self, path: &GuestPath, kind: EntryKind) -> Result<()> {
        self.container.connection().remove(path, kind).await
    }

    async fn rename(&self, from: &GuestPath, to: &GuestPath) -> Result<()> {
        self.container.connection().rename(from, to).await
    }

    async fn set_mode(&self, path: &GuestPath, mode: u32) -> Result<()> {
        self.container.connection().set_mode(path, mode).await
    }

    async fn make_link(&self, path: &GuestPath, target: &[u8]) -> Result<()> {
        self.container.connection().make_link(path, target).await
    }

    async fn read_link(&self, path: &GuestPath) -> Result<Vec<u8>> {
        self.container.connection().read_link(path).await
    }

    async fn connect(&self, port: u16) -> Result<Box<dyn Stream>> {
        self.container.connection().connect(port).await
    }

    async fn listen(&self, port: u16) -> Result<Box<dyn Listener>> {
        self.container.connection().listen(port).await
    }

    async fn stats(&self) -> Result<Stats> {
        self.container.stats().await
    }

    async fn isolation(&self) -> Result<IsolationReport> {
        self.report().await.cloned()
    }

    async fn change_limits(&self, limits: &Limits) -> Result<()> {
        limits.validate()?;
        if !self.container.changes_limits() {
            let what = "change the limits of a sandbox that is there";
            return Err(BackendError::Unsupported { backend: self.container.backend(), what });
        }
        self.container.connection().is_there()?;
        self.container.change_limits(limits).await
    }

    async fn pause(&self) -> Result<()> {
        self.container.connection().is_there()?;
        self.container.pause().await
    }

    async fn resume(&self) -> Result<()> {
        self.container.connection().is_there()?;
        self.container.resume().await
    }

    async fn destroy(&self) -> Result<()> {
        self.container.destroy().await
    }
}
