//! The traits. Each handle stays usable after an error; a sandbox after `destroy` answers `Gone`.

use crate::{BackendError, ProcessSpec, Result, SandboxSpec, SharedFiles};
use async_trait::async_trait;
use cofferdam_core::{GuestPath, IsolationReport, Limits, ResourceUsage};
use std::fmt::Debug;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

pub type Reader = Box<dyn AsyncRead + Send + Sync + Unpin>;
pub type Writer = Box<dyn AsyncWrite + Send + Sync + Unpin>;

/// A connection to a port inside a sandbox.
pub trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// What a backend can do, told before anything is asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    pub pause: bool,
    pub terminal: bool,
    pub listen: bool,
    pub connect: bool,
    pub disk: bool,
    pub writable_root: bool,
    pub change_limits: bool,
    /// Whether changes of files can be watched.
    pub watch: bool,
    /// Whether files go from one sandbox to another as descriptors.
    pub hand_over: bool,
    /// Whether folders of the host can be mounted.
    pub mounts: bool,
    /// Whether files that are restored have the times that they had.
    pub file_times: bool,
    /// Whether there is a place in memory for secrets, and a way there that nobody else reads.
    pub secrets: bool,
}

/// What an idle sandbox takes that is nothing but namespaces, mounts and a small process.
pub const IDLE_SANDBOX_BYTES: u64 = 1 << 20;

/// Makes sandboxes.
#[async_trait]
pub trait Backend: Debug + Send + Sync {
    fn name(&self) -> &'static str;

    fn capabilities(&self) -> Capabilities;

    /// Whether a sandbox goes by itself, and wholly, when the process that made it does.
    fn ends_with_host(&self) -> bool {
        false
    }

    /// What an idle sandbox takes of the machine's memory, rounded up from measurements.
    fn idle_bytes(&self) -> u64 {
        IDLE_SANDBOX_BYTES
    }

    /// Whether sandboxes can be made now; the error says why not and what to do.
    async fn health(&self) -> Result<()>;

    async fn create(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>>;

    /// Makes a sandbox and starts its first process. A backend that can hand both over at once saves the time
    /// of an answer; the outer error is the sandbox's, the inner one the process's.
    async fn create_and_start(
        &self,
        spec: SandboxSpec,
        process: ProcessSpec,
    ) -> Result<(Box<dyn Sandbox>, Result<Box<dyn Process>>)> {
        let sandbox = self.create(spec).await?;
        let process = sandbox.start(process).await;
        Ok((sandbox, process))
    }
}

/// Names a process within its sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// How a process ended, as the kernel told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    Exited(i32),
    Signaled(i32),
    /// The sandbox went first; how the process ended is not known.
    Lost,
}

/// What kind of thing a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Folder,
    Link,
    Other,
}

/// What is known of something in a sandbox without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    pub kind: EntryKind,
    pub size_bytes: u64,
    /// The permission bits.
    pub mode: u32,
    pub modified_ms: i64,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Raw bytes: names inside a sandbox need not be text.
    pub name: Vec<u8>,
    pub kind: EntryKind,
    pub size_bytes: u64,
}

/// A plain file that one sandbox hands out for another, or for whoever reads it.
#[derive(Debug)]
pub struct OpenFile {
    pub name: String,
    pub stat: FileStat,
    /// Read from its first byte on.
    pub content: std::fs::File,
}

/// The most files that are handed out at once: each is a descriptor, and a process has few of them.
pub const MAX_OPEN_FILES: usize = 32;

/// What happened to a path that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Created,
    /// Its content or its mode.
    Modified,
    Removed,
    /// From another path below the one that is watched.
    Moved {
        from: Vec<u8>,
    },
}

/// One change, in the order in which they happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    Changed {
        /// Below the folder that is watched, in raw bytes.
        path: Vec<u8>,
        kind: EntryKind,
        change: Change,
    },
    /// More happened than could be followed, so something is missing from here on.
    Missed,
}

/// What a sandbox used so far and which limits it ran into. Unknown is `None`, never 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    pub usage: ResourceUsage,
    pub oom_kills: Option<u64>,
    pub memory_limit_hits: Option<u64>,
    pub pids_limit_hits: Option<u64>,
    pub cpu_throttled: Option<u64>,
    pub disk_free_bytes: Option<u64>,
    pub disk_free_inodes: Option<u64>,
}

/// An enclosure: processes, files and ports. Dropping it destroys it, too, only without a report.
#[async_trait]
pub trait Sandbox: Debug + Send + Sync {
    /// What the daemon that has made it calls it, where one has.
    fn container_id(&self) -> Option<String> {
        None
    }

    /// Waits until it is gone though nobody destroyed it, and says why. Who cannot tell never answers.
    async fn gone(&self) -> String {
        std::future::pending().await
    }

    async fn start(&self, spec: ProcessSpec) -> Result<Box<dyn Process>>;

    /// Another handle to a process of this sandbox.
    fn attach(&self, id: ProcessId) -> Result<Box<dyn Process>>;

    /// Opens a plain file for reading; links are not followed.
    async fn read_file(&self, path: &GuestPath) -> Result<Reader>;

    /// Makes or replaces a plain file with what comes out of `content`, parents included.
    async fn write_file(&self, path: &GuestPath, mode: u32, content: Reader) -> Result<u64>;

    /// Like `read_file`, from a byte on.
    async fn read_file_from(&self, path: &GuestPath, first: u64) -> Result<Reader> {
        let mut reader = self.read_file(path).await?;
        let passed = tokio::io::copy(&mut (&mut reader).take(first), &mut tokio::io::sink()).await;
        passed.map_err(|error| BackendError::failed(format!("reading {path}"), error))?;
        Ok(reader)
    }

    async fn make_folder(&self, path: &GuestPath) -> Result<()>;

    /// The entries of a folder, at most `limit` of them.
    async fn list_files(&self, path: &GuestPath, limit: usize) -> Result<Vec<Entry>>;

    /// What a path names, without following a link.
    async fn stat(&self, _path: &GuestPath) -> Result<FileStat> {
        Err(BackendError::Unsupported { backend: "sandbox's", what: "look at a file" })
    }

    /// Removes a plain file or a link, or a folder that is empty.
    async fn remove(&self, _path: &GuestPath, _kind: EntryKind) -> Result<()> {
        Err(BackendError::Unsupported { backend: "sandbox's", what: "remove a file" })
    }

    /// Gives something another name; what has that name already is replaced, at once. Parents are made.
    async fn rename(&self, _from: &GuestPath, _to: &GuestPath) -> Result<()> {
        Err(BackendError::Unsupported { backend: "sandbox's", what: "rename a file" })
    }

    /// Sets the permission bits of a plain file or a folder, those that let it run as somebody else excepted.
    async fn set_mode(&self, _path: &GuestPath, _mode: u32) -> Result<()> {
        Err(BackendError::Unsupported { backend: "sandbox's", what: "change a file's mode" })
    }

    /// Makes a link, parents included. Nothing here ever follows it.
    async fn make_link(&self, _path: &GuestPath, _target: &[u8]) -> Result<()> {
        Err(BackendError::Unsupported { backend: "sandbox's", what: "make a link" })
    }

    /// A plain file and what is known of it, in one look; links are not followed.
    async fn open_file(&self, path: &GuestPath) -> Result<(FileStat, Reader)> {
        Ok((self.stat(path).await?, self.read_file(path).await?))
    }

    /// Plain files of one folder, at most `MAX_OPEN_FILES` of them, in the order of their names; links are not followed.
    /// Who cannot do that says so of none, too.
    async fn open_files(&self, _folder: &GuestPath, _names: Vec<String>) -> Result<Vec<OpenFile>> {
        Err(BackendError::Unsupported { backend: "sandbox's", what: "hand out files" })
    }

    /// Makes each of them anew in a folder, as `restore_file` does: content, mode and time. Says how many bytes those
    /// were. Who cannot do that says so of none, too.
    async fn take_files(&self, _folder: &GuestPath, _files: Vec<OpenFile>) -> Result<u64> {
        Err(BackendError::Unsupported { backend: "sandbox's", what: "take files" })
    }

    /// All its files as they are now, without copying them: for sandboxes that begin with them (`SandboxSpec::files`).
    /// It must be paused. Where that is not possible, or would bring something that a copy of the workspace does not,
    /// this is `Unsupported`, and nothing was done.
    async fn share_files(&self) -> Result<SharedFiles> {
        Err(BackendError::Unsupported { backend: "sandbox's", what: "share its files" })
    }

    /// Makes or replaces a plain file as `write_file` does, as it was at a time.
    async fn restore_file(
        &self,
        path: &GuestPath,
        mode: u32,
        _modified_ms: i64,
        content: Reader,
    ) -> Result<u64> {
        self.write_file(path, mode, content).await
    }

    /// Sets the permission bits of a folder, and when it was last changed. Set-id bits are not set.
    async fn restore_folder(&self, _path: &GuestPath, _mode: u32, _modified_ms: i64) -> Result<()> {
        Err(BackendError::Unsupported { backend: "sandbox's", what: "set the mode of a folder" })
    }

    /// Where a link leads, in raw bytes.
    async fn read_link(&self, _path: &GuestPath) -> Result<Vec<u8>> {
        Err(BackendError::Unsupported { backend: "sandbox's", what: "read a link" })
    }

    /// Follows what changes in a folder and in those below it, from now on.
    async fn watch(&self, _path: &GuestPath) -> Result<Box<dyn Watcher>> {
        Err(BackendError::Unsupported { backend: "sandbox's", what: "watch files" })
    }

    /// Connects to a port on the sandbox's loopback.
    async fn connect(&self, port: u16) -> Result<Box<dyn Stream>>;

    /// Listens on the sandbox's loopback; what connects inside is accepted by the host.
    async fn listen(&self, port: u16) -> Result<Box<dyn Listener>>;

    async fn stats(&self) -> Result<Stats>;

    /// What encloses it, proven. Where no process has run yet, one is made to prove its part and ends at once.
    async fn isolation(&self) -> Result<IsolationReport>;

    /// Replaces the limits that can change while it lives: CPU, memory and processes.
    async fn change_limits(&self, limits: &Limits) -> Result<()>;

    async fn pause(&self) -> Result<()>;

    async fn resume(&self) -> Result<()>;

    /// Ends every process and removes everything. When it returns, nothing runs any more.
    async fn destroy(&self) -> Result<()>;
}

/// A process in a sandbox.
#[async_trait]
pub trait Process: Debug + Send + Sync {
    fn id(&self) -> ProcessId;

    /// Each stream can be taken once, by whichever handle comes first. A terminal has no stderr.
    fn take_stdin(&self) -> Option<Writer>;
    fn take_stdout(&self) -> Option<Reader>;
    fn take_stderr(&self) -> Option<Reader>;

    async fn resize(&self, rows: u16, columns: u16) -> Result<()>;

    /// Sends a signal to the process and its group.
    async fn signal(&self, signal: i32) -> Result<()>;

    /// Waits for its end; may be called again, by any handle, and answers the same.
    async fn wait(&self) -> Result<ExitStatus>;
}

/// Follows the changes in a folder, until it is dropped.
#[async_trait]
pub trait Watcher: Send + Sync {
    /// What changed since the last call, in order; waits until something has. `Gone` once nothing more can come.
    async fn next(&mut self) -> Result<Vec<Watched>>;
}

/// A port inside a sandbox on which the host accepts.
#[async_trait]
pub trait Listener: Send + Sync {
    async fn accept(&self) -> Result<Box<dyn Stream>>;
}
