//! A container as a sandbox: what is done inside is the helper's, what is done to it is its maker's.

use super::Connection;
use crate::report;
use cofferdam_backend::{
    BackendError, Entry, EntryKind, FileStat, Listener, OpenFile, Process, ProcessId, ProcessSpec, Reader,
    Result, Sandbox, SandboxSpec, Stats, Stdio, Stream, Watcher, async_trait,
};
use cofferdam_core::{GuestPath, IsolationReport, Limits};
use std::fmt::Debug;
use std::sync::Arc;
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

    fn connection(&self) -> &Arc<Connection>;

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

    fn unsupported(&self, what: &'static str) -> BackendError {
        BackendError::Unsupported { backend: self.container.backend(), what }
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

    async fn gone(&self) -> String {
        let connection = self.container.connection();
        // An end of whoever would tell is the same end.
        let _ = connection.gone().wait_for(|is_gone| *is_gone).await;
        match connection.is_there() {
            Err(BackendError::Gone { cause }) => cause,
            _ => "it ended".to_owned(),
        }
    }

    async fn start(&self, spec: ProcessSpec) -> Result<Box<dyn Process>> {
        if matches!(spec.stdio, Stdio::Terminal { .. }) && !self.container.spec().terminal {
            let what = "give a terminal in a sandbox that was made without";
            return Err(self.unsupported(what));
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
        self.container.connection().write_file(path, mode, None, content).await
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

    async fn restore_file(
        &self,
        path: &GuestPath,
        mode: u32,
        modified_ms: i64,
        content: Reader,
    ) -> Result<u64> {
        self.container.connection().write_file(path, mode & 0o777, Some(modified_ms), content).await
    }

    async fn restore_folder(&self, path: &GuestPath, mode: u32, modified_ms: i64) -> Result<()> {
        self.container.connection().restore_folder(path, mode, modified_ms).await
    }

    async fn open_files(&self, _folder: &GuestPath, _names: Vec<String>) -> Result<Vec<OpenFile>> {
        Err(self.unsupported("hand out files"))
    }

    async fn take_files(&self, _folder: &GuestPath, _files: Vec<OpenFile>) -> Result<u64> {
        Err(self.unsupported("take files"))
    }

    async fn watch(&self, path: &GuestPath) -> Result<Box<dyn Watcher>> {
        self.container.connection().watch(path).await
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
            return Err(self.unsupported(what));
        }
        self.container.connection().is_there()?;
        self.container.change_limits(limits).await
    }

    async fn pause(&self) -> Result<()> {
        self.container.connection().stop_all().await
    }

    async fn resume(&self) -> Result<()> {
        self.container.connection().let_all_go_on().await
    }

    async fn destroy(&self) -> Result<()> {
        self.container.destroy().await
    }
}
