//! The fake backend: what its programs do, what its sandboxes answer, and what was asked of them.

use super::files::FakeFiles;
use super::lock;
use super::process::{Guest, Program};
use super::sandbox::{FakeSandbox, World};
use cofferdam_backend::{
    Backend, Capabilities, ExitStatus, ProcessSpec, Result, Sandbox, SandboxSpec, Stats, async_trait,
};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};

#[derive(Default)]
pub struct FakeBackend {
    programs: HashMap<String, Program>,
    files: FakeFiles,
    stats: Stats,
    never_makes: bool,
    ends_with_host: bool,
    keeps_limits: bool,
    worlds: Mutex<Vec<Arc<World>>>,
}

impl FakeBackend {
    /// One program: `true`.
    pub fn new() -> Self {
        Self::default().with_program("true", |_| async { ExitStatus::Exited(0) })
    }

    /// Adds a program under a name; it runs when that is what a command's path ends in.
    #[must_use]
    pub fn with_program<F, Ended>(mut self, name: &str, program: F) -> Self
    where
        F: Fn(Guest) -> Ended + Send + Sync + 'static,
        Ended: Future<Output = ExitStatus> + Send + 'static,
    {
        self.programs.insert(name.to_owned(), Arc::new(move |guest| Box::pin(program(guest))));
        self
    }

    /// Sets what every sandbox says it used.
    #[must_use]
    pub fn with_stats(mut self, stats: Stats) -> Self {
        self.stats = stats;
        self
    }

    /// Sandboxes are asked for and never come.
    #[must_use]
    pub fn that_never_makes(mut self) -> Self {
        self.never_makes = true;
        self
    }

    /// Changes the files that every sandbox begins with.
    #[must_use]
    pub fn with_files(mut self, change: impl FnOnce(&mut FakeFiles)) -> Self {
        change(&mut self.files);
        self
    }

    /// As if every sandbox went with the process that made it.
    pub fn that_ends_with_host(mut self) -> Self {
        self.ends_with_host = true;
        self
    }

    /// As if limits stayed what they were when a sandbox was made.
    #[must_use]
    pub fn that_keeps_limits(mut self) -> Self {
        self.keeps_limits = true;
        self
    }

    /// How many sandboxes were made.
    pub fn created(&self) -> usize {
        lock(&self.worlds).len()
    }

    /// How many of them still stand.
    pub fn standing(&self) -> usize {
        lock(&self.worlds).iter().filter(|world| world.stands()).count()
    }

    /// The sandbox that was asked for last.
    pub fn last_spec(&self) -> Option<SandboxSpec> {
        lock(&self.worlds).last().map(|world| world.spec.clone())
    }

    /// Every process that was started, in every sandbox.
    pub fn started(&self) -> Vec<ProcessSpec> {
        lock(&self.worlds).iter().flat_map(|world| lock(&world.started).clone()).collect()
    }

    /// The signals that were sent, in every sandbox.
    pub fn signals(&self) -> Vec<i32> {
        lock(&self.worlds).iter().flat_map(|world| lock(&world.signals).clone()).collect()
    }

    /// The sizes that terminals were given after their start.
    pub fn resizes(&self) -> Vec<(u16, u16)> {
        lock(&self.worlds).iter().flat_map(|world| lock(&world.resizes).clone()).collect()
    }

    /// The files of the last sandbox, even after it is gone.
    pub fn files(&self) -> FakeFiles {
        lock(&self.worlds).last().map(|world| lock(&world.files).clone()).unwrap_or_default()
    }
}

#[async_trait]
impl Backend for FakeBackend {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            pause: false,
            terminal: true,
            listen: false,
            connect: false,
            disk: true,
            writable_root: true,
            change_limits: !self.keeps_limits,
            watch: false,
            hand_over: false,
            mounts: false,
            file_times: true,
            secrets: true,
        }
    }

    fn ends_with_host(&self) -> bool {
        self.ends_with_host
    }

    async fn health(&self) -> Result<()> {
        Ok(())
    }

    async fn create(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>> {
        if self.never_makes {
            std::future::pending::<()>().await;
        }
        let mut files = self.files.clone();
        files.put("/workspace/.artifacts", super::Node::Folder);
        let world = Arc::new(World::new(spec, files, self.stats.clone(), self.programs.clone()));
        lock(&self.worlds).push(Arc::clone(&world));
        Ok(Box::new(FakeSandbox(world)))
    }
}

impl fmt::Debug for FakeBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeBackend").field("programs", &self.programs.keys()).finish_non_exhaustive()
    }
}
