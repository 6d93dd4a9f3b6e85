//! A sandbox, a kernel in it, and what a cell told.

use cofferdam_backend::{Backend, Image, OomScope, Sandbox, SandboxSpec};
use cofferdam_core::{IsolationMode, Limits, NetworkPolicy, SandboxId};
use cofferdam_kernels::{
    Cell, CellEnd, CellError, CellOutcome, CellSink, Kernel, KernelLanguage, KernelOptions, RichResult,
    Stream,
};
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_native::{LauncherHandle, NativeBackend};
use std::hash::{BuildHasher, RandomState};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// A slow machine is given time, a hang is not.
pub(crate) const PROMPTLY: Duration = Duration::from_secs(60);

/// Short, so that tests of a kill are quick, and long enough for whoever heeds a signal.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

pub(crate) fn backend() -> NativeBackend {
    let launcher = LauncherHandle::spawn(Command::new(env!("CARGO_BIN_EXE_cofferdam-kernel-tests")));
    NativeBackend::new(launcher.expect("a launcher"), default_runtime_folder()).expect("a backend")
}

fn sandbox_id() -> SandboxId {
    let random = RandomState::new().hash_one(()).to_le_bytes();
    SandboxId::from_random(std::array::from_fn(|i| random[i % 8].wrapping_add(i as u8)))
}

/// A kernel and all that it lives on.
pub(crate) struct Notebook {
    pub(crate) kernel: Kernel,
    pub(crate) sandbox: Arc<dyn Sandbox>,
    _backend: NativeBackend,
}

#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) shown: Vec<RichResult>,
}

impl CellSink for Told {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.stdout.extend_from_slice(bytes),
            Stream::Stderr => self.stderr.extend_from_slice(bytes),
        }
    }

    fn display(&mut self, result: RichResult) {
        self.shown.push(result);
    }
}

/// One cell, run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) end: CellEnd,
    pub(crate) told: Told,
}

impl Ran {
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.told.stdout).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.told.stderr).into_owned()
    }

    /// The value of the last expression, as text.
    pub(crate) fn plain(&self) -> &str {
        assert_eq!(self.told.shown.len(), 1, "{self:?}");
        &self.told.shown[0].data["text/plain"]
    }

    pub(crate) fn error(&self) -> &CellError {
        self.end.error.as_ref().unwrap_or_else(|| panic!("{self:?}"))
    }

    /// That it went through, with nothing on stderr.
    pub(crate) fn well(self) -> Self {
        assert_eq!(self.end.outcome, CellOutcome::Completed, "{self:?}");
        assert_eq!(self.stderr(), "", "{self:?}");
        self
    }
}

pub(crate) fn cell(code: &str) -> Cell {
    Cell { code: code.to_owned(), ..Cell::default() }
}

pub(crate) fn options() -> KernelOptions {
    let env = [
        ("HOME", "/workspace"),
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("LANG", "C.UTF-8"),
        ("CYNODE_JOB_ID", "ses-1"),
    ];
    KernelOptions {
        env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        workdir: "/workspace".to_owned(),
        grace: GRACE,
        compiled: None,
    }
}

pub(crate) fn sandbox_spec(memory_bytes: u64) -> SandboxSpec {
    let limits = Limits { memory_bytes, disk: Limits::memory_disk(memory_bytes), ..Limits::default() };
    SandboxSpec {
        id: sandbox_id(),
        image: Image::Host,
        limits,
        network: NetworkPolicy::None,
        isolation: IsolationMode::Strict,
        oom_scope: OomScope::Process,
        writable_root: false,
        terminal: false,
        pausable: true,
        workspace_root: "/var/tmp".into(),
        mounts: Vec::new(),
        files: None,
    }
}

pub(crate) async fn sandbox(backend: &dyn Backend, memory_bytes: u64) -> Arc<dyn Sandbox> {
    Arc::from(backend.create(sandbox_spec(memory_bytes)).await.expect("a sandbox"))
}

impl Notebook {
    pub(crate) async fn open(language: KernelLanguage) -> Self {
        Self::with(language, 512 << 20, options()).await
    }

    pub(crate) async fn with(language: KernelLanguage, memory_bytes: u64, options: KernelOptions) -> Self {
        let backend = backend();
        let sandbox = sandbox(&backend, memory_bytes).await;
        let kernel = Kernel::start(&sandbox, language, options).await.expect("a kernel");
        Self { kernel, sandbox, _backend: backend }
    }

    pub(crate) async fn run(&mut self, code: &str) -> Ran {
        self.run_cell(cell(code)).await
    }

    pub(crate) async fn run_cell(&mut self, cell: Cell) -> Ran {
        let mut told = Told::default();
        let code = cell.code.clone();
        let end = tokio::time::timeout(PROMPTLY, self.kernel.run(cell, &mut told)).await;
        let end = end.unwrap_or_else(|_| panic!("{code}: never ended, after {told:?}"));
        Ran { end: end.expect("a cell is run"), told }
    }

    /// Runs a cell, and interrupts it when it has written `when`.
    pub(crate) async fn run_and_interrupt(&mut self, code: &str, when: &str) -> Ran {
        struct Watch {
            told: Told,
            when: String,
            seen: Arc<tokio::sync::Notify>,
        }
        impl CellSink for Watch {
            fn output(&mut self, stream: Stream, bytes: &[u8]) {
                self.told.output(stream, bytes);
                if String::from_utf8_lossy(&self.told.stdout).contains(&self.when) {
                    self.seen.notify_one();
                }
            }

            fn display(&mut self, result: RichResult) {
                self.told.display(result);
            }
        }
        let seen = Arc::new(tokio::sync::Notify::new());
        let mut watch = Watch { told: Told::default(), when: when.to_owned(), seen: Arc::clone(&seen) };
        let interrupter = self.kernel.interrupter();
        let both = async {
            tokio::join!(self.kernel.run(cell(code), &mut watch), async {
                seen.notified().await;
                assert!(interrupter.interrupt().await, "no cell ran");
            })
        };
        let (end, ()) = tokio::time::timeout(PROMPTLY, both).await.expect("it ends");
        Ran { end: end.expect("a cell is run"), told: watch.told }
    }
}
