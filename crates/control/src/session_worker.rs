//! The way to what has sessions: in this process, or elsewhere. Start, step, terminate.

use crate::worker::{OutputSink, Stream};
use async_trait::async_trait;
use cofferdam_api::{
    ArchiveWritten, FileChangeData, FileInfo, FileList, FileMatches, ProcessRequest, ProcessView, RichResult,
    SessionRequest, StepRequest, StepResult, TerminalSize,
};
use cofferdam_core::{GuestPath, SessionId, TaskId};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::watch;

/// One placement of a session on a worker.
#[derive(Debug, Clone)]
pub struct SessionOrder {
    pub id: SessionId,
    pub task_id: TaskId,
    /// The worker starts it once, however often it is asked to, and forgets an older one.
    pub generation: i64,
    pub request: SessionRequest,
}

/// A session whose sandbox is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStarted {
    pub sandbox_id: String,
}

/// One step of a session.
#[derive(Debug, Clone)]
pub struct StepOrder {
    pub session: SessionId,
    pub generation: i64,
    pub number: i64,
    pub request: StepRequest,
}

/// Takes what a step writes and shows, as it comes.
#[async_trait]
pub trait StepSink: OutputSink {
    /// Its turn has come: from here on it runs.
    async fn begun(&mut self);

    fn show(&mut self, result: RichResult);
}

/// How a step ended. Its output is not in the result: it came before.
#[derive(Debug)]
pub enum StepEnd {
    Result(Box<StepResult>),
    /// It could not be run.
    Errored(SessionFailure),
    /// Nobody knows how far it came.
    Lost {
        why: String,
    },
}

/// Why a worker did not do what it was asked: the code is for programs, the message for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFailure {
    pub code: String,
    pub message: String,
}

impl SessionFailure {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

/// One placement of a session, by whoever asks something of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub id: SessionId,
    pub generation: i64,
}

/// The bytes of a file, on their way in or out.
pub type FileReader = Box<dyn AsyncRead + Send + Sync + Unpin>;

/// A folder as one stream of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveKind {
    Tar,
    Zip,
}

impl ArchiveKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tar => "tar",
            Self::Zip => "zip",
        }
    }
}

/// What is looked for in files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSearch {
    /// A pattern with `*`, `**`, `?` and `[…]`.
    pub name: Option<String>,
    /// A regular expression, for each line.
    pub content: Option<String>,
    pub ignores_case: bool,
    pub limit: usize,
}

/// What changed in a folder after a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchTold {
    pub changes: Vec<FileChangeData>,
    /// Something before these was dropped.
    pub has_gap: bool,
    /// Up to where this goes.
    pub last_seq: u64,
    /// The folder is gone, and nothing more comes.
    pub is_over: bool,
}

/// Where the files of a session are written to.
pub type FileWriter = Box<dyn AsyncWrite + Send + Sync + Unpin>;

/// What was written of a session's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SavedFiles {
    pub entries: u64,
    pub bytes: u64,
    /// Devices, pipes and sockets, which are not kept.
    pub skipped: u64,
}

/// A session stands still until this is dropped. It goes on soon after that, not before.
pub struct Hold {
    _held: Box<dyn Send + Sync>,
}

impl Hold {
    /// Of something whose end lets the session go on.
    pub fn of(held: impl Send + Sync + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hold")
    }
}

fn cannot<T>() -> Result<T, SessionFailure> {
    Err(SessionFailure::new("unsupported", "the worker can neither pause sessions nor keep their files"))
}

/// One piece of a process's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessPiece {
    pub seq: u64,
    pub stream: Stream,
    pub bytes: Vec<u8>,
}

/// What a process wrote after a number, and how it stands. Where it has ended, nothing comes after this.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessTold {
    pub pieces: Vec<ProcessPiece>,
    /// Something before these was dropped.
    pub has_gap: bool,
    pub process: ProcessView,
}

/// A secret on its way into a sandbox. It is shown nowhere.
#[derive(Clone)]
pub struct SecretFile {
    pub path: GuestPath,
    pub value: zeroize::Zeroizing<String>,
}

impl std::fmt::Debug for SecretFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecretFile({})", self.path)
    }
}

/// Has sessions.
#[async_trait]
pub trait SessionWorker: Send + Sync {
    async fn start(&self, order: SessionOrder) -> Result<SessionStarted, SessionFailure>;

    /// Those whose sandboxes are gone though nobody ended them, each with why. They are listed until they are terminated.
    fn lost(&self) -> Vec<(Placed, String)> {
        Vec::new()
    }

    /// Runs a step to its end. `interrupted` says by whom it is to be ended, once it is.
    async fn step(
        &self,
        order: StepOrder,
        output: &mut dyn StepSink,
        interrupted: watch::Receiver<Option<String>>,
    ) -> StepEnd;

    /// Ends the interpreter of a context and the step that it runs; `not_found` where there is no such context.
    async fn restart_context(
        &self,
        id: &SessionId,
        generation: i64,
        language: &str,
        context: &str,
    ) -> Result<(), SessionFailure>;

    /// A failure's code is `not_found`, `not_permitted`, `invalid` or `disk_full`, or another word where the fault is
    /// not the caller's. So it is with all of these.
    async fn stat_file(&self, at: &Placed, path: &GuestPath) -> Result<FileInfo, SessionFailure>;

    async fn read_file(
        &self,
        at: &Placed,
        path: &GuestPath,
    ) -> Result<(FileInfo, FileReader), SessionFailure>;

    /// A file from a byte on.
    async fn read_file_from(
        &self,
        at: &Placed,
        path: &GuestPath,
        first: u64,
    ) -> Result<(FileInfo, FileReader), SessionFailure> {
        let (info, mut reader) = self.read_file(at, path).await?;
        let passed = tokio::io::copy(&mut (&mut reader).take(first), &mut tokio::io::sink()).await;
        passed.map_err(|error| SessionFailure::new("sandbox_failed", error.to_string()))?;
        Ok((info, reader))
    }

    /// A folder as an archive, made while it is read.
    async fn read_archive(
        &self,
        _at: &Placed,
        _path: &GuestPath,
        _kind: ArchiveKind,
    ) -> Result<FileReader, SessionFailure> {
        Err(not_there("archives"))
    }

    /// Unpacks an archive into a folder. A failure's code is `archive_refused` where it is the archive's fault; its
    /// message begins with the name of the entry.
    async fn write_archive(
        &self,
        _at: &Placed,
        _path: &GuestPath,
        _kind: ArchiveKind,
        _content: FileReader,
    ) -> Result<ArchiveWritten, SessionFailure> {
        Err(not_there("archives"))
    }

    async fn search_files(
        &self,
        _at: &Placed,
        _path: &GuestPath,
        _search: FileSearch,
    ) -> Result<FileMatches, SessionFailure> {
        Err(not_there("a search"))
    }

    /// What changed in a folder after a number; where nothing did, what does within a time. Without a number it begins
    /// now, and the answer says where that is.
    async fn watch_files(
        &self,
        _at: &Placed,
        _path: &GuestPath,
        _after: Option<u64>,
        _time: Duration,
    ) -> Result<WatchTold, SessionFailure> {
        Err(not_there("watching files"))
    }

    async fn write_file(
        &self,
        at: &Placed,
        path: &GuestPath,
        mode: u32,
        content: FileReader,
    ) -> Result<u64, SessionFailure>;

    async fn list_files(
        &self,
        at: &Placed,
        path: &GuestPath,
        depth: usize,
        limit: usize,
    ) -> Result<FileList, SessionFailure>;

    async fn make_folder(&self, at: &Placed, path: &GuestPath) -> Result<(), SessionFailure>;

    async fn move_file(&self, at: &Placed, from: &GuestPath, to: &GuestPath) -> Result<(), SessionFailure>;

    async fn remove_file(&self, at: &Placed, path: &GuestPath, all: bool) -> Result<(), SessionFailure>;

    async fn start_process(
        &self,
        at: &Placed,
        request: ProcessRequest,
    ) -> Result<ProcessView, SessionFailure>;

    async fn list_processes(&self, at: &Placed) -> Result<Vec<ProcessView>, SessionFailure>;

    /// What came after a number; where nothing did, what comes within a time.
    async fn process_output(
        &self,
        at: &Placed,
        number: u64,
        after: u64,
        time: Duration,
    ) -> Result<ProcessTold, SessionFailure>;

    /// `input_closed` or `input_full` where a process does not read.
    async fn write_process(
        &self,
        at: &Placed,
        number: u64,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<(), SessionFailure>;

    async fn signal_process(&self, at: &Placed, number: u64, signal: i32) -> Result<(), SessionFailure>;

    async fn resize_process(
        &self,
        at: &Placed,
        number: u64,
        size: TerminalSize,
    ) -> Result<(), SessionFailure>;

    /// Stops everything in a session, until it was thawed as often as it was frozen.
    async fn freeze(&self, _at: &Placed) -> Result<(), SessionFailure> {
        cannot()
    }

    async fn thaw(&self, _at: &Placed) -> Result<(), SessionFailure> {
        cannot()
    }

    /// The same for as long as what is returned is kept: also where this process dies, the session goes on.
    async fn hold(&self, _at: &Placed) -> Result<Hold, SessionFailure> {
        cannot()
    }

    /// Writes the files of a frozen session away, at most so many bytes of them. What was written without an error is
    /// whole.
    async fn save(&self, _at: &Placed, _to: FileWriter, _most: u64) -> Result<SavedFiles, SessionFailure> {
        cannot()
    }

    /// Puts back what was saved, in a session that nobody has used yet.
    async fn restore(&self, _at: &Placed, _from: FileReader) -> Result<(), SessionFailure> {
        cannot()
    }

    /// Does both for two sessions of this worker, the one frozen and the other not used yet. `unsupported` is said before
    /// anything was done.
    async fn copy(&self, _from: &Placed, _to: &Placed) -> Result<(), SessionFailure> {
        cannot()
    }

    /// Writes secrets where only the session's own processes can read them, in memory. None of it is ever saved.
    async fn give_secrets(&self, _at: &Placed, _secrets: Vec<SecretFile>) -> Result<(), SessionFailure> {
        cannot()
    }

    /// Ends a session and everything in it. When this returns, nothing of it runs any more.
    async fn terminate(&self, id: &SessionId, generation: i64);
}

/// A worker of an older kind.
fn not_there(what: &str) -> SessionFailure {
    SessionFailure::new("unsupported", format!("the session's worker does not have {what}"))
}
