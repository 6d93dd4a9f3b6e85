//! What the cases are written with: specs with defaults, running a script, waiting for a condition.

use crate::{
    Backend, BackendError, ExitStatus, Image, OomScope, Process, ProcessSpec, Reader, Result, Sandbox,
    SandboxSpec, Stdio,
};
use cofferdam_core::{Disk, GuestPath, IsolationMode, Limits, NetworkPolicy, SandboxId};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::Cursor;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, sleep, timeout};

/// For what should be immediate: a slow machine is given time, a hang is not.
pub const PROMPTLY: Duration = Duration::from_secs(10);

/// Long enough to see that nothing happens.
pub const A_WHILE: Duration = Duration::from_millis(300);

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(10);

pub const MIB: u64 = 1 << 20;

/// Enough for everything but the cases about memory, and little enough to run several at once.
const MEMORY_BYTES: u64 = 256 * MIB;

pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// The defaults, with `memory_bytes` and the disk that goes with it.
pub fn limits(memory_bytes: u64) -> Limits {
    Limits { memory_bytes, disk: Limits::memory_disk(memory_bytes), ..Limits::default() }
}

pub fn sandbox_spec() -> SandboxSpec {
    SandboxSpec {
        id: sandbox_id(),
        image: Image::Host,
        limits: limits(MEMORY_BYTES),
        network: NetworkPolicy::None,
        isolation: IsolationMode::Strict,
        oom_scope: OomScope::Process,
        writable_root: false,
        terminal: false,
        pausable: true,
        mounts: Vec::new(),
        files: None,
        workspace_root: workspace_root(),
    }
}

/// A folder on a disk, which the folder for temporary files often is not; TMPDIR may name one that is.
fn workspace_root() -> PathBuf {
    std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from)
}

/// `RandomState` is seeded by the operating system, which is random enough for a name.
fn sandbox_id() -> SandboxId {
    let [a, b] = [(); 2].map(|()| RandomState::new().hash_one(()).to_le_bytes());
    let mut random = [0; 10];
    random[..8].copy_from_slice(&a);
    random[8..].copy_from_slice(&b[..2]);
    SandboxId::from_random(random)
}

pub async fn sandbox(backend: &dyn Backend) -> Box<dyn Sandbox> {
    create(backend, sandbox_spec()).await
}

pub async fn sandbox_with(backend: &dyn Backend, limits: Limits) -> Box<dyn Sandbox> {
    create(backend, SandboxSpec { limits, ..sandbox_spec() }).await
}

/// A sandbox that has waited, so that a backend has had the time to make its first process ahead: whatever a case
/// starts first is that process, what it starts next is made when it is asked for.
pub async fn create(backend: &dyn Backend, spec: SandboxSpec) -> Box<dyn Sandbox> {
    let sandbox = backend.create(spec).await.expect("a sandbox");
    sandbox.isolation().await.expect("a report");
    sandbox
}

/// A sandbox that keeps its files on disk; without the ability: `None`, after a look at the refusal.
pub async fn sandbox_on_disk(
    backend: &dyn Backend,
    memory_bytes: u64,
    bytes: u64,
) -> Option<Box<dyn Sandbox>> {
    let limits = Limits { disk: Disk::OnDisk { bytes }, ..limits(memory_bytes) };
    let created = backend.create(SandboxSpec { limits, ..sandbox_spec() }).await;
    if backend.capabilities().disk {
        return Some(created.expect("a sandbox with a disk"));
    }
    assert_unsupported("a disk", created);
    None
}

/// A sandbox with a writable root; without the ability: `None`, after a look at the refusal.
pub async fn writable_sandbox(backend: &dyn Backend) -> Option<Box<dyn Sandbox>> {
    let created = backend.create(SandboxSpec { writable_root: true, ..sandbox_spec() }).await;
    if backend.capabilities().writable_root {
        return Some(created.expect("a sandbox with a writable root"));
    }
    assert_unsupported("a writable root", created);
    None
}

/// A process with pipes, no stdin, `PATH` alone in its environment, in `/workspace`.
pub fn process<A: Into<String>>(argv: impl IntoIterator<Item = A>) -> ProcessSpec {
    ProcessSpec {
        argv: argv.into_iter().map(Into::into).collect(),
        env: vec![("PATH".to_owned(), PATH.to_owned())],
        cwd: path("/workspace"),
        make_cwd: false,
        stdio: Stdio::Pipes { stdin: false },
    }
}

pub fn sh(script: &str) -> ProcessSpec {
    process(["/bin/sh", "-c", script])
}

pub fn with_stdin(spec: ProcessSpec) -> ProcessSpec {
    ProcessSpec { stdio: Stdio::Pipes { stdin: true }, ..spec }
}

pub fn path(text: &str) -> GuestPath {
    GuestPath::parse("path", text).expect("a path of the suite")
}

/// How a process ended and what it wrote.
pub struct Output {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, stdout {:?}, stderr {:?}", self.status, self.stdout(), self.stderr())
    }
}

impl Output {
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Whether it exited with a code other than 0, as opposed to being killed.
    pub fn failed(&self) -> bool {
        matches!(self.status, ExitStatus::Exited(code) if code != 0)
    }
}

pub async fn start(sandbox: &dyn Sandbox, spec: ProcessSpec) -> Box<dyn Process> {
    let argv = spec.argv.clone();
    sandbox.start(spec).await.unwrap_or_else(|error| panic!("{argv:?} does not start: {error}"))
}

/// Starts a process and waits for its end, and for the end of its output.
pub async fn run(sandbox: &dyn Sandbox, spec: ProcessSpec) -> Output {
    finish(&*start(sandbox, spec).await).await
}

pub async fn finish(process: &dyn Process) -> Output {
    let (stdout, stderr) = (process.take_stdout(), process.take_stderr());
    let (stdout, stderr, status) = tokio::join!(read_all(stdout), read_all(stderr), process.wait());
    Output { status: status.expect("an exit status"), stdout, stderr }
}

async fn read_all(reader: Option<Reader>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut reader) = reader {
        reader.read_to_end(&mut bytes).await.expect("output that can be read to its end");
    }
    bytes
}

/// Runs a script that must exit with 0, for its stdout.
pub async fn sh_ok(sandbox: &dyn Sandbox, script: &str) -> String {
    let output = run(sandbox, sh(script)).await;
    assert_eq!(output.status, ExitStatus::Exited(0), "{script}: {output:?}");
    output.stdout()
}

pub async fn assert_still_runs(sandbox: &dyn Sandbox) {
    assert_eq!(sh_ok(sandbox, "echo on").await, "on\n");
}

/// Starts a script that says `ready` when it is; answers the rest of its output, too.
pub async fn start_ready(sandbox: &dyn Sandbox, spec: ProcessSpec) -> (Box<dyn Process>, Reader) {
    let process = start(sandbox, spec).await;
    let mut stdout = process.take_stdout().expect("stdout");
    if let Err(problem) = try_read_until(&mut stdout, "ready").await {
        // What it says itself is worth more than that it did not say what it should.
        let last = timeout(A_WHILE, finish(&*process)).await;
        panic!("{problem}; {}", last.map_or_else(|_| "it goes on".to_owned(), |last| format!("{last:?}")));
    }
    (process, stdout)
}

/// Reads until the text appeared and its line is over; answers everything that was read.
pub async fn read_until(reader: &mut (impl AsyncRead + Unpin + ?Sized), text: &str) -> String {
    try_read_until(reader, text).await.unwrap_or_else(|problem| panic!("{problem}"))
}

async fn try_read_until(
    reader: &mut (impl AsyncRead + Unpin + ?Sized),
    text: &str,
) -> std::result::Result<String, String> {
    let mut seen = Vec::new();
    let read = async {
        loop {
            let line = String::from_utf8_lossy(&seen);
            if line.find(text).is_some_and(|at| line[at..].contains('\n')) {
                break Ok(line.into_owned());
            }
            match reader.read_u8().await {
                Ok(byte) => seen.push(byte),
                Err(error) => break Err(format!("{error} before {text:?}: {line:?}")),
            }
        }
    };
    let read = timeout(PROMPTLY, read).await;
    read.unwrap_or_else(|_| {
        Err(format!("no {text:?} within {PROMPTLY:?}: {:?}", String::from_utf8_lossy(&seen)))
    })
}

/// Reads a stream to its end, which must come promptly.
pub async fn read_to_end(reader: &mut (impl AsyncRead + Unpin + ?Sized)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = promptly("the end of a stream", reader.read_to_end(&mut bytes)).await;
    read.expect("a stream that ends without an error");
    bytes
}

/// Fails, with the name of what was waited for, instead of hanging.
pub async fn promptly<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PROMPTLY, future).await.unwrap_or_else(|_| panic!("{what}: not within {PROMPTLY:?}"))
}

/// Looks at a condition until it holds.
pub async fn wait_until(what: &str, limit: Duration, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition().await {
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        sleep(POLL).await;
    }
}

pub async fn write(sandbox: &dyn Sandbox, file: &str, mode: u32, content: &[u8]) -> Result<u64> {
    let content = Box::new(Cursor::new(content.to_vec()));
    promptly(file, sandbox.write_file(&path(file), mode, content)).await
}

/// Reads a whole file; opening it must not block.
pub async fn read(sandbox: &dyn Sandbox, file: &str) -> Result<Vec<u8>> {
    let mut reader = promptly(file, sandbox.read_file(&path(file))).await?;
    Ok(read_to_end(&mut reader).await)
}

/// The error of something that must not work.
pub fn error_of<T>(what: &str, result: Result<T>) -> BackendError {
    match result {
        Ok(_) => panic!("{what}: it worked"),
        Err(error) => error,
    }
}

pub fn assert_unsupported<T>(what: &str, result: Result<T>) {
    let error = error_of(what, result);
    assert!(matches!(error, BackendError::Unsupported { .. }), "{what}: {error:?}");
}

pub fn assert_not_found<T>(what: &str, result: Result<T>) {
    let error = error_of(what, result);
    assert!(matches!(error, BackendError::NotFound { .. }), "{what}: {error:?}");
}

pub fn assert_not_permitted<T>(what: &str, result: Result<T>) {
    let error = error_of(what, result);
    assert!(matches!(error, BackendError::NotPermitted { .. }), "{what}: {error:?}");
}

pub fn assert_invalid<T>(what: &str, result: Result<T>) {
    let error = error_of(what, result);
    assert!(matches!(error, BackendError::Invalid(_)), "{what}: {error:?}");
}

/// That it failed, and that the sandbox itself is not what is wrong.
pub fn assert_refused<T>(what: &str, result: Result<T>) {
    let error = error_of(what, result);
    assert!(!matches!(error, BackendError::Gone { .. }), "{what}: {error:?}");
}

pub fn assert_gone<T>(what: &str, result: Result<T>) {
    let error = error_of(what, result);
    assert!(matches!(error, BackendError::Gone { .. }), "{what}: {error:?}");
}
