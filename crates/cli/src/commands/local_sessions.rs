//! The sessions of the worker in the same process, behind the trait that control knows.

use super::desk::Desk;
use super::elsewhere::{Elsewhere, Place};
use super::local_worker::open_inputs;
use async_trait::async_trait;
use cofferdam_api::{
    ArchiveWritten, FileChangeData, FileChangeKind, FileInfo, FileKind, FileList, FileMatch, FileMatches,
    ProcessRequest, ProcessView, RichResult, StepError, StepResult, TerminalSize,
};
use cofferdam_backend::{Change, EntryKind, FileStat};
use cofferdam_control::{
    ArchiveKind, ArtifactDesk, FileReader, FileSearch, FileWriter, Hold, Placed, ProcessPiece, ProcessTold,
    SavedFiles, SecretFile, SessionFailure, SessionOrder, SessionStarted, SessionWorker, StepEnd, StepOrder,
    StepSink, Stream, WatchTold, like_job,
};
use cofferdam_core::{GuestPath, InvalidValue, SessionId, timestamp};
use cofferdam_worker::artifacts::ArtifactStore;
use cofferdam_worker::{
    ArchiveFormat, FileChange, FileIn, KernelLanguage, Listed, LiveOutput, Match, Matches, OutputStream,
    Pool, ProcessNews, ProcessState, Saved, Search, SessionError, SessionSpec, Sessions, Shown, StepOutput,
    Unpacked, WatchNews, cancellation, session_request,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Sandboxes kept ready from the start; demand brings more.
const READY: usize = 2;

/// SIGINT, as a terminal would: what is interrupted may go on living.
const SIGINT: i32 = 2;

#[derive(Debug)]
pub(super) struct LocalSessions {
    sessions: Arc<Sessions>,
    /// Of sessions on this machine's own programs, and of those on images.
    pool: Arc<Pool>,
    elsewhere: Arc<Elsewhere>,
}

impl LocalSessions {
    pub(super) fn start(pool: &Arc<Pool>, elsewhere: Arc<Elsewhere>) -> Self {
        let sessions = Arc::new(Sessions::new(Arc::clone(pool)));
        sessions.keep_ready(&SessionSpec::new(SessionId::from_random([0; 10]), 0), READY);
        Self { sessions, pool: Arc::clone(pool), elsewhere }
    }
}

/// Passes output on from the one trait to the other, and files and artifacts with it.
struct Sink<'s> {
    sink: &'s mut dyn StepSink,
    files: Vec<FileIn>,
    desk: Option<Arc<dyn ArtifactDesk>>,
}

#[async_trait]
impl LiveOutput for Sink<'_> {
    fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.sink.push(stream_of(stream), bytes);
    }

    async fn ready(&mut self) {
        self.sink.ready().await;
    }
}

#[async_trait]
impl StepOutput for Sink<'_> {
    async fn begun(&mut self) {
        self.sink.begun().await;
    }

    fn show(&mut self, shown: Shown) {
        let Shown { kind, data } = shown;
        self.sink.show(RichResult { kind, data });
    }

    fn files(&mut self) -> Vec<FileIn> {
        std::mem::take(&mut self.files)
    }

    fn artifacts(&mut self) -> Option<Box<dyn ArtifactStore>> {
        Some(Box::new(Desk(self.desk.take()?)))
    }
}

#[async_trait]
impl SessionWorker for LocalSessions {
    async fn start(&self, order: SessionOrder) -> Result<SessionStarted, SessionFailure> {
        let SessionOrder { id, task_id, generation, request } = order;
        let place = Place::of(&like_job(&request)).map_err(|error| failure(&error.into()))?;
        let spec = session_request::session(id, task_id, generation, request);
        let mut spec = spec.map_err(|error| failure(&error.into()))?;
        if let Some(place) = place {
            self.elsewhere.place_session(place, &self.pool, &mut spec).await?;
        }
        let sandbox_id = self.sessions.start(spec).await.map_err(|error| failure(&error))?.to_string();
        Ok(SessionStarted { sandbox_id })
    }

    fn lost(&self) -> Vec<(Placed, String)> {
        let lost = self.sessions.lost().into_iter();
        lost.map(|(id, generation, cause)| (Placed { id, generation }, cause)).collect()
    }

    async fn step(
        &self,
        order: StepOrder,
        output: &mut dyn StepSink,
        mut interrupted: watch::Receiver<Option<String>>,
    ) -> StepEnd {
        let StepOrder { session, generation, number, mut request } = order;
        let (mut files, named) = match session_request::files(std::mem::take(&mut request.files)) {
            Ok(made) => made,
            Err(error) => return StepEnd::Errored(failure(&error.into())),
        };
        let spec = match session_request::step(number, request) {
            Ok(spec) => spec,
            Err(error) => return StepEnd::Errored(failure(&error.into())),
        };
        let (canceller, cancel) = cancellation();
        let desk = output.artifacts();
        if let Err(message) = open_inputs(&mut files, named, desk.as_deref()).await {
            return StepEnd::Errored(SessionFailure::new("files_refused", message));
        }
        let mut sink = Sink { sink: output, files, desk };
        let run = self.sessions.step(&session, generation, spec, &mut sink, cancel);
        let listen = async {
            if let Ok(by) = interrupted.wait_for(Option::is_some).await.map(|by| by.clone()) {
                canceller.cancel(by.unwrap_or_default(), SIGINT);
            }
            std::future::pending::<()>().await;
        };
        let end = tokio::select! {
            end = run => end,
            () = listen => unreachable!("it waits for ever"),
        };
        match end {
            Ok(end) => StepEnd::Result(Box::new(result(end))),
            Err(SessionError::Unknown) => {
                StepEnd::Lost { why: "its session is not there any more".to_owned() }
            }
            Err(error @ SessionError::Lost { .. }) => StepEnd::Lost { why: error.text() },
            Err(error) => StepEnd::Errored(failure(&error)),
        }
    }

    async fn restart_context(
        &self,
        id: &SessionId,
        generation: i64,
        language: &str,
        context: &str,
    ) -> Result<(), SessionFailure> {
        let language: KernelLanguage =
            language.parse().map_err(|error: InvalidValue| failure(&error.into()))?;
        let restarted = self.sessions.restart_context(id, generation, language, context).await;
        restarted.map_err(|error| failure(&error))
    }

    async fn stat_file(&self, at: &Placed, path: &GuestPath) -> Result<FileInfo, SessionFailure> {
        let stat = self.sessions.stat_file(&at.id, at.generation, path).await;
        stat.map(|stat| info(path, &stat)).map_err(|error| failure(&error))
    }

    async fn read_file(
        &self,
        at: &Placed,
        path: &GuestPath,
    ) -> Result<(FileInfo, FileReader), SessionFailure> {
        let opened = self.sessions.read_file(&at.id, at.generation, path).await;
        opened.map(|(stat, reader)| (info(path, &stat), reader)).map_err(|error| failure(&error))
    }

    async fn read_file_from(
        &self,
        at: &Placed,
        path: &GuestPath,
        first: u64,
    ) -> Result<(FileInfo, FileReader), SessionFailure> {
        let opened = self.sessions.read_file_from(&at.id, at.generation, path, first).await;
        opened.map(|(stat, reader)| (info(path, &stat), reader)).map_err(|error| failure(&error))
    }

    async fn read_archive(
        &self,
        at: &Placed,
        path: &GuestPath,
        kind: ArchiveKind,
    ) -> Result<FileReader, SessionFailure> {
        let opened = self.sessions.read_archive(&at.id, at.generation, path, format(kind)).await;
        opened.map_err(|error| failure(&error))
    }

    async fn write_archive(
        &self,
        at: &Placed,
        path: &GuestPath,
        kind: ArchiveKind,
        content: FileReader,
    ) -> Result<ArchiveWritten, SessionFailure> {
        let written = self.sessions.write_archive(&at.id, at.generation, path, format(kind), content).await;
        let Unpacked { files, size_bytes } = written.map_err(|error| failure(&error))?;
        Ok(ArchiveWritten { files, size_bytes })
    }

    async fn search_files(
        &self,
        at: &Placed,
        path: &GuestPath,
        search: FileSearch,
    ) -> Result<FileMatches, SessionFailure> {
        let FileSearch { name, content, ignores_case, limit } = search;
        let search =
            Search::new(name.as_deref(), content.as_deref(), ignores_case, limit).map_err(|error| {
                SessionFailure::new("invalid_pattern", format!("{}: {}", error.field, error.fix))
            })?;
        let found = self.sessions.search_files(&at.id, at.generation, path, search).await;
        let Matches { found, is_cut } = found.map_err(|error| failure(&error))?;
        let shown = |Match { path, kind, size_bytes, line }: Match| {
            let (line, text) = line.unzip();
            FileMatch { path, kind: kind_of(kind), size_bytes, line, text }
        };
        Ok(FileMatches { matches: found.into_iter().map(shown).collect(), truncated: is_cut })
    }

    async fn watch_files(
        &self,
        at: &Placed,
        path: &GuestPath,
        after: Option<u64>,
        time: Duration,
    ) -> Result<WatchTold, SessionFailure> {
        let news = self.sessions.watch_files(&at.id, at.generation, path, after, time).await;
        let WatchNews { changes, has_gap, last_seq, is_over } = news.map_err(|error| failure(&error))?;
        Ok(WatchTold { changes: changes.into_iter().map(change).collect(), has_gap, last_seq, is_over })
    }

    async fn write_file(
        &self,
        at: &Placed,
        path: &GuestPath,
        mode: u32,
        content: FileReader,
    ) -> Result<u64, SessionFailure> {
        let written = self.sessions.write_file(&at.id, at.generation, path, mode, content).await;
        written.map_err(|error| failure(&error))
    }

    async fn list_files(
        &self,
        at: &Placed,
        path: &GuestPath,
        depth: usize,
        limit: usize,
    ) -> Result<FileList, SessionFailure> {
        let listed = self.sessions.list_files(&at.id, at.generation, path, depth, limit).await;
        let (found, truncated) = listed.map_err(|error| failure(&error))?;
        let files = found.into_iter().map(|Listed { path, kind, size_bytes }| FileInfo {
            path,
            kind: kind_of(kind),
            size_bytes,
            mode: None,
            modified_at: None,
        });
        Ok(FileList { files: files.collect(), truncated })
    }

    async fn make_folder(&self, at: &Placed, path: &GuestPath) -> Result<(), SessionFailure> {
        self.sessions.make_folder(&at.id, at.generation, path).await.map_err(|error| failure(&error))
    }

    async fn move_file(&self, at: &Placed, from: &GuestPath, to: &GuestPath) -> Result<(), SessionFailure> {
        self.sessions.move_file(&at.id, at.generation, from, to).await.map_err(|error| failure(&error))
    }

    async fn remove_file(&self, at: &Placed, path: &GuestPath, all: bool) -> Result<(), SessionFailure> {
        self.sessions.remove_file(&at.id, at.generation, path, all).await.map_err(|error| failure(&error))
    }

    async fn start_process(
        &self,
        at: &Placed,
        request: ProcessRequest,
    ) -> Result<ProcessView, SessionFailure> {
        let order = session_request::process(request).map_err(|error| failure(&error.into()))?;
        let started = self.sessions.start_process(&at.id, at.generation, order).await;
        started.map(process).map_err(|error| failure(&error))
    }

    async fn list_processes(&self, at: &Placed) -> Result<Vec<ProcessView>, SessionFailure> {
        let listed = self.sessions.list_processes(&at.id, at.generation);
        listed.map(|all| all.into_iter().map(process).collect()).map_err(|error| failure(&error))
    }

    async fn process_output(
        &self,
        at: &Placed,
        number: u64,
        after: u64,
        time: Duration,
    ) -> Result<ProcessTold, SessionFailure> {
        let news = self.sessions.process_news(&at.id, at.generation, number, after, time).await;
        let ProcessNews { pieces, has_gap, state } = news.map_err(|error| failure(&error))?;
        let piece = |piece: cofferdam_worker::ProcessPiece| ProcessPiece {
            seq: piece.seq,
            stream: stream_of(piece.stream),
            bytes: piece.bytes,
        };
        Ok(ProcessTold { pieces: pieces.into_iter().map(piece).collect(), has_gap, process: process(state) })
    }

    async fn write_process(
        &self,
        at: &Placed,
        number: u64,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<(), SessionFailure> {
        let written = self.sessions.write_process(&at.id, at.generation, number, bytes, is_last).await;
        written.map_err(|error| failure(&error))
    }

    async fn signal_process(&self, at: &Placed, number: u64, signal: i32) -> Result<(), SessionFailure> {
        let sent = self.sessions.signal_process(&at.id, at.generation, number, signal).await;
        sent.map_err(|error| failure(&error))
    }

    async fn resize_process(
        &self,
        at: &Placed,
        number: u64,
        size: TerminalSize,
    ) -> Result<(), SessionFailure> {
        let TerminalSize { rows, columns } = size;
        let resized = self.sessions.resize_process(&at.id, at.generation, number, rows, columns).await;
        resized.map_err(|error| failure(&error))
    }

    async fn freeze(&self, at: &Placed) -> Result<(), SessionFailure> {
        self.sessions.freeze(&at.id, at.generation).await.map_err(|error| failure(&error))
    }

    async fn thaw(&self, at: &Placed) -> Result<(), SessionFailure> {
        self.sessions.thaw(&at.id, at.generation).await.map_err(|error| failure(&error))
    }

    async fn hold(&self, at: &Placed) -> Result<Hold, SessionFailure> {
        self.freeze(at).await?;
        Ok(Hold::of(Held { sessions: Arc::clone(&self.sessions), at: at.clone() }))
    }

    async fn save(&self, at: &Placed, to: FileWriter, most: u64) -> Result<SavedFiles, SessionFailure> {
        let saved = self.sessions.save(&at.id, at.generation, to, most).await;
        let Saved { entries, bytes, skipped } = saved.map_err(|error| failure(&error))?;
        Ok(SavedFiles { entries, bytes, skipped })
    }

    async fn restore(&self, at: &Placed, from: FileReader) -> Result<(), SessionFailure> {
        self.sessions.restore(&at.id, at.generation, from).await.map_err(|error| failure(&error))
    }

    async fn copy(&self, from: &Placed, to: &Placed) -> Result<(), SessionFailure> {
        let copied = self.sessions.copy((&from.id, from.generation), (&to.id, to.generation)).await;
        copied.map(drop).map_err(|error| failure(&error))
    }

    async fn give_secrets(&self, at: &Placed, secrets: Vec<SecretFile>) -> Result<(), SessionFailure> {
        for SecretFile { path, value } in secrets {
            let content = Box::new(std::io::Cursor::new(value.as_bytes().to_vec()));
            let given = self.sessions.give_secret(&at.id, at.generation, &path, content).await;
            given.map_err(|error| failure(&error))?;
        }
        Ok(())
    }

    async fn terminate(&self, id: &SessionId, generation: i64) {
        self.sessions.terminate(id, generation).await;
    }
}

/// Lets a session go on when it is dropped.
struct Held {
    sessions: Arc<Sessions>,
    at: Placed,
}

impl Drop for Held {
    fn drop(&mut self) {
        let (sessions, at) = (Arc::clone(&self.sessions), self.at.clone());
        tokio::spawn(async move {
            // One that cannot go on says so at its next step; one that is gone need not.
            let _ = sessions.thaw(&at.id, at.generation).await;
        });
    }
}

fn format(kind: ArchiveKind) -> ArchiveFormat {
    match kind {
        ArchiveKind::Tar => ArchiveFormat::Tar,
        ArchiveKind::Zip => ArchiveFormat::Zip,
    }
}

fn change(change: FileChange) -> FileChangeData {
    let FileChange { seq, path, kind, change } = change;
    let (change, from) = match change {
        Change::Created => (FileChangeKind::Created, None),
        Change::Modified => (FileChangeKind::Modified, None),
        Change::Removed => (FileChangeKind::Removed, None),
        Change::Moved { from } => (FileChangeKind::Moved, Some(String::from_utf8_lossy(&from).into_owned())),
    };
    let seq = i64::try_from(seq).unwrap_or(i64::MAX);
    FileChangeData { seq, path, kind: kind_of(kind), change, from }
}

fn stream_of(stream: OutputStream) -> Stream {
    match stream {
        OutputStream::Stdout => Stream::Stdout,
        OutputStream::Stderr => Stream::Stderr,
    }
}

fn process(state: ProcessState) -> ProcessView {
    let ProcessState { number, argv, is_terminal, started_ms, ended, last_seq } = state;
    let (outcome, ended_ms) = ended.unzip();
    ProcessView {
        number,
        command: argv,
        is_terminal,
        started_at: timestamp(started_ms),
        ended_at: ended_ms.map(timestamp),
        outcome,
        last_seq,
    }
}

fn info(path: &GuestPath, stat: &FileStat) -> FileInfo {
    FileInfo {
        path: path.to_string(),
        kind: kind_of(stat.kind),
        size_bytes: stat.size_bytes,
        mode: Some(format!("{:o}", stat.mode)),
        modified_at: Some(timestamp(stat.modified_ms)),
    }
}

fn kind_of(kind: EntryKind) -> FileKind {
    match kind {
        EntryKind::File => FileKind::File,
        EntryKind::Folder => FileKind::Folder,
        EntryKind::Link => FileKind::Link,
        EntryKind::Other => FileKind::Other,
    }
}

fn failure(error: &SessionError) -> SessionFailure {
    SessionFailure::new(error.code(), error.text())
}

/// The wire's form of an end. Output comes another way.
fn result(end: cofferdam_worker::StepEnd) -> StepResult {
    let cofferdam_worker::StepEnd {
        outcome,
        exit_code,
        limits_hit,
        duration,
        error,
        execution_count,
        is_restarted,
        state_kept,
        artifacts,
        artifacts_skipped,
        warnings,
    } = end;
    StepResult {
        exit_code,
        outcome,
        stdout: String::new(),
        stdout_base64: None,
        stdout_truncated: false,
        stderr: String::new(),
        stderr_base64: None,
        stderr_truncated: false,
        results: Vec::new(),
        results_truncated: false,
        error: error.map(|[name, value, traceback]| StepError { name, value, traceback }),
        execution_count,
        kernel_restarted: is_restarted,
        state_kept,
        limits_hit,
        duration_ms: duration.as_millis() as u64,
        artifacts,
        artifacts_skipped,
        warnings,
    }
}
