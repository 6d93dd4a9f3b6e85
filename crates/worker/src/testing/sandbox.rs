//! A fake sandbox.

use super::files::{FakeFiles, Node};
use super::lock;
use super::process::{FakeProcess, Program};
use cofferdam_backend::{
    BackendError, Entry, EntryKind, Listener, Process, ProcessId, ProcessSpec, Reader, Result, Sandbox,
    SandboxSpec, Stats, Stream, async_trait,
};
use cofferdam_core::{GuestPath, IsolationReport, Limits};
use std::collections::HashMap;
use std::fmt;
use std::io::Cursor;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::AsyncReadExt;
use tokio::task::AbortHandle;

/// Everything inside one sandbox, and the record of what was done to it.
pub(super) struct World {
    pub(super) spec: SandboxSpec,
    pub(super) files: Mutex<FakeFiles>,
    pub(super) started: Mutex<Vec<ProcessSpec>>,
    pub(super) signals: Mutex<Vec<i32>>,
    pub(super) resizes: Mutex<Vec<(u16, u16)>>,
    stats: Stats,
    programs: HashMap<String, Program>,
    processes: Mutex<Vec<FakeProcess>>,
    running: Mutex<Vec<AbortHandle>>,
    gone: AtomicBool,
    /// Whether nobody is left who could be asked for its end.
    pub(super) is_orphan: AtomicBool,
}

impl World {
    pub(super) fn new(
        spec: SandboxSpec,
        files: FakeFiles,
        stats: Stats,
        programs: HashMap<String, Program>,
    ) -> Self {
        Self {
            spec,
            files: Mutex::new(files),
            started: Mutex::default(),
            signals: Mutex::default(),
            resizes: Mutex::default(),
            stats,
            programs,
            processes: Mutex::default(),
            running: Mutex::default(),
            gone: AtomicBool::new(false),
            is_orphan: AtomicBool::new(false),
        }
    }

    pub(super) fn stands(&self) -> bool {
        !self.gone.load(Ordering::SeqCst)
    }

    /// Runs something until it ends or the sandbox does.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        lock(&self.running).push(tokio::spawn(task).abort_handle());
    }

    fn end(&self) {
        self.gone.store(true, Ordering::SeqCst);
        lock(&self.running).drain(..).for_each(|task| task.abort());
    }

    fn check(&self) -> Result<()> {
        match self.stands() {
            true => Ok(()),
            false => Err(BackendError::Gone { cause: "destroyed".to_owned() }),
        }
    }
}

#[derive(Debug)]
pub(super) struct FakeSandbox(pub(super) Arc<World>);

impl Drop for FakeSandbox {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[async_trait]
impl Sandbox for FakeSandbox {
    async fn start(&self, spec: ProcessSpec) -> Result<Box<dyn Process>> {
        self.0.check()?;
        let path = spec.argv.first().cloned().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        let Some(program) = self.0.programs.get(name) else { return Err(BackendError::NotFound { path }) };
        lock(&self.0.started).push(spec.clone());
        let mut processes = lock(&self.0.processes);
        let id = ProcessId(processes.len() as u32 + 2);
        let process = FakeProcess::start(id, spec, Arc::clone(program), &self.0);
        processes.push(process.clone());
        Ok(Box::new(process))
    }

    fn attach(&self, id: ProcessId) -> Result<Box<dyn Process>> {
        let found = lock(&self.0.processes).iter().find(|process| process.id() == id).cloned();
        let process = found.ok_or_else(|| BackendError::NotFound { path: format!("process {}", id.0) })?;
        Ok(Box::new(process))
    }

    async fn read_file(&self, path: &GuestPath) -> Result<Reader> {
        self.0.check()?;
        Ok(Box::new(Cursor::new(lock(&self.0.files).read(path)?)))
    }

    async fn write_file(&self, path: &GuestPath, mode: u32, mut content: Reader) -> Result<u64> {
        self.0.check()?;
        let mut bytes = Vec::new();
        let read = content.read_to_end(&mut bytes).await;
        let size = read.map_err(|error| BackendError::failed("reading what to write", error))?;
        lock(&self.0.files).put(path.as_str(), Node::File { mode, content: bytes });
        Ok(size as u64)
    }

    async fn make_folder(&self, path: &GuestPath) -> Result<()> {
        self.0.check()?;
        lock(&self.0.files).put(path.as_str(), Node::Folder);
        Ok(())
    }

    async fn list_files(&self, path: &GuestPath, limit: usize) -> Result<Vec<Entry>> {
        self.0.check()?;
        lock(&self.0.files).list(path, limit)
    }

    async fn remove(&self, path: &GuestPath, _: EntryKind) -> Result<()> {
        self.0.check()?;
        lock(&self.0.files).remove(path)
    }

    async fn connect(&self, _: u16) -> Result<Box<dyn Stream>> {
        Err(BackendError::Unsupported { backend: "fake", what: "connect to ports" })
    }

    async fn listen(&self, _: u16) -> Result<Box<dyn Listener>> {
        Err(BackendError::Unsupported { backend: "fake", what: "listen on ports" })
    }

    async fn stats(&self) -> Result<Stats> {
        self.0.check()?;
        Ok(self.0.stats.clone())
    }

    async fn isolation(&self) -> Result<IsolationReport> {
        let mode = self.0.spec.isolation;
        Ok(IsolationReport { backend: "fake".to_owned(), mode, controls: Vec::new() })
    }

    async fn change_limits(&self, _: &Limits) -> Result<()> {
        self.0.check()
    }

    async fn pause(&self) -> Result<()> {
        Err(BackendError::Unsupported { backend: "fake", what: "pause" })
    }

    async fn resume(&self) -> Result<()> {
        Err(BackendError::Unsupported { backend: "fake", what: "resume" })
    }

    async fn destroy(&self) -> Result<()> {
        self.0.end();
        // Aborted tasks let go of their streams when the runtime next gets to them.
        tokio::task::yield_now().await;
        match self.0.is_orphan.load(Ordering::SeqCst) {
            true => Err(BackendError::Gone { cause: "nobody is left to ask".to_owned() }),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("id", &self.spec.id).finish_non_exhaustive()
    }
}
