//! The sessions of a worker elsewhere, behind the trait that control knows.

mod exchange;
mod step;

use crate::backoff::Backoff;
use crate::call::{CallError, Peer};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{
    ArchiveWritten, FileInfo, FileList, FileMatches, PlaceStart, PlaceStarted, ProcessNews, ProcessNewsPiece,
    ProcessRequest, ProcessView, SavedNews, SessionCall, TerminalSize, WatchNews,
};
use cofferdam_control::{
    ArchiveKind, FileReader, FileSearch, FileWriter, Hold, Placed, ProcessPiece, ProcessTold, SavedFiles,
    SecretFile, SessionFailure, SessionOrder, SessionStarted, SessionWorker, StepEnd, StepOrder, StepSink,
    Stream, WatchTold,
};
use cofferdam_core::{GuestPath, SessionId};
use exchange::{ask, failure, fetch, fetch_into, hold, send, unreachable};
use reqwest::Method;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// For so long a session is asked for whose sandbox is not made yet.
const START: Duration = Duration::from_secs(60);

/// A worker that cannot even be reached is not tried for long: it looks by itself which sessions are its own.
const TRIES: u32 = 3;

const NOW: Duration = Duration::ZERO;

#[derive(Debug)]
pub(crate) struct HttpSessions {
    id: String,
    peer: Peer,
    /// Whether its address may be used at all.
    is_allowed: bool,
}

impl HttpSessions {
    pub(crate) fn new(id: &str, peer: Peer, is_allowed: bool) -> Self {
        Self { id: id.to_owned(), peer, is_allowed }
    }

    fn check(&self) -> Result<(), SessionFailure> {
        match self.is_allowed {
            true => Ok(()),
            false => Err(unreachable(&format!("{} is not on loopback and has no TLS", self.peer.url))),
        }
    }

    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        at: &Placed,
        call: SessionCall,
        wait: Duration,
    ) -> Result<T, SessionFailure> {
        self.check()?;
        ask(&self.peer, at, call, wait).await
    }

    async fn send<T: serde::de::DeserializeOwned>(
        &self,
        at: &Placed,
        call: SessionCall,
        content: FileReader,
    ) -> Result<T, SessionFailure> {
        self.check()?;
        send(&self.peer, at, call, content).await
    }
}

fn text(path: &GuestPath) -> String {
    path.as_str().to_owned()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[async_trait]
impl SessionWorker for HttpSessions {
    async fn start(&self, order: SessionOrder) -> Result<SessionStarted, SessionFailure> {
        self.check()?;
        if !self.peer.breaker.allows(Instant::now()) {
            return Err(unreachable(&format!("{} has failed too often just now", self.peer.url)));
        }
        let SessionOrder { id, task_id, generation, request } = order;
        let body = PlaceStart {
            worker_id: self.id.clone(),
            session_id: id.to_string(),
            task_id: task_id.as_str().to_owned(),
            generation,
            request,
        };
        let (began, mut backoff, mut unreached) = (Instant::now(), Backoff::default(), 0);
        loop {
            let error = match self.peer.call(Method::POST, "/sessions", Some(&body)).await {
                Ok(answer) => {
                    let started: PlaceStarted = serde_json::from_value(answer)
                        .map_err(|error| unreachable(&format!("what the worker says is unknown: {error}")))?;
                    return Ok(SessionStarted { sandbox_id: started.sandbox_id });
                }
                Err(error) => error,
            };
            match &error {
                CallError::Refused { .. } => return Err(failure(error)),
                CallError::Unreached(..) if unreached + 1 >= TRIES => return Err(failure(error)),
                CallError::Unreached(..) => unreached += 1,
                // It goes on being made, and is found when it is asked for again.
                CallError::Unanswered(..) if began.elapsed() > START => return Err(failure(error)),
                CallError::Unanswered(..) => {}
            }
            backoff.pause().await;
        }
    }

    async fn step(
        &self,
        order: StepOrder,
        output: &mut dyn StepSink,
        interrupted: watch::Receiver<Option<String>>,
    ) -> StepEnd {
        match self.check() {
            Ok(()) => step::run(&self.peer, order, output, interrupted).await,
            Err(failure) => StepEnd::Errored(failure),
        }
    }

    async fn restart_context(
        &self,
        id: &SessionId,
        generation: i64,
        language: &str,
        context: &str,
    ) -> Result<(), SessionFailure> {
        let (language, context) = (language.to_owned(), context.to_owned());
        let at = Placed { id: id.clone(), generation };
        self.ask(&at, SessionCall::RestartContext { language, context }, NOW).await
    }

    async fn stat_file(&self, at: &Placed, path: &GuestPath) -> Result<FileInfo, SessionFailure> {
        self.ask(at, SessionCall::StatFile { path: text(path) }, NOW).await
    }

    async fn read_file(
        &self,
        at: &Placed,
        path: &GuestPath,
    ) -> Result<(FileInfo, FileReader), SessionFailure> {
        self.read_file_from(at, path, 0).await
    }

    async fn read_file_from(
        &self,
        at: &Placed,
        path: &GuestPath,
        first: u64,
    ) -> Result<(FileInfo, FileReader), SessionFailure> {
        self.check()?;
        fetch(&self.peer, at, SessionCall::ReadFile { path: text(path), first }).await
    }

    async fn read_archive(
        &self,
        at: &Placed,
        path: &GuestPath,
        kind: ArchiveKind,
    ) -> Result<FileReader, SessionFailure> {
        self.check()?;
        let call = SessionCall::ReadArchive { path: text(path), kind: kind.as_str().to_owned() };
        let ((), content) = fetch(&self.peer, at, call).await?;
        Ok(content)
    }

    async fn write_archive(
        &self,
        at: &Placed,
        path: &GuestPath,
        kind: ArchiveKind,
        content: FileReader,
    ) -> Result<ArchiveWritten, SessionFailure> {
        let call = SessionCall::WriteArchive { path: text(path), kind: kind.as_str().to_owned() };
        self.send(at, call, content).await
    }

    async fn search_files(
        &self,
        at: &Placed,
        path: &GuestPath,
        search: FileSearch,
    ) -> Result<FileMatches, SessionFailure> {
        let FileSearch { name, content, ignores_case, limit } = search;
        let (path, limit) = (text(path), limit as u64);
        self.ask(at, SessionCall::SearchFiles { path, name, content, ignores_case, limit }, NOW).await
    }

    async fn watch_files(
        &self,
        at: &Placed,
        path: &GuestPath,
        after: Option<u64>,
        time: Duration,
    ) -> Result<WatchTold, SessionFailure> {
        let call = SessionCall::WatchFiles { path: text(path), after, time_ms: millis(time) };
        let WatchNews { changes, has_gap, last_seq, is_over } = self.ask(at, call, time).await?;
        Ok(WatchTold { changes, has_gap, last_seq, is_over })
    }

    async fn write_file(
        &self,
        at: &Placed,
        path: &GuestPath,
        mode: u32,
        content: FileReader,
    ) -> Result<u64, SessionFailure> {
        self.send(at, SessionCall::WriteFile { path: text(path), mode }, content).await
    }

    async fn list_files(
        &self,
        at: &Placed,
        path: &GuestPath,
        depth: usize,
        limit: usize,
    ) -> Result<FileList, SessionFailure> {
        let (depth, limit) = (depth as u64, limit as u64);
        self.ask(at, SessionCall::ListFiles { path: text(path), depth, limit }, NOW).await
    }

    async fn make_folder(&self, at: &Placed, path: &GuestPath) -> Result<(), SessionFailure> {
        self.ask(at, SessionCall::MakeFolder { path: text(path) }, NOW).await
    }

    async fn move_file(&self, at: &Placed, from: &GuestPath, to: &GuestPath) -> Result<(), SessionFailure> {
        self.ask(at, SessionCall::MoveFile { from: text(from), to: text(to) }, NOW).await
    }

    async fn remove_file(&self, at: &Placed, path: &GuestPath, all: bool) -> Result<(), SessionFailure> {
        self.ask(at, SessionCall::RemoveFile { path: text(path), all }, NOW).await
    }

    async fn start_process(
        &self,
        at: &Placed,
        request: ProcessRequest,
    ) -> Result<ProcessView, SessionFailure> {
        self.ask(at, SessionCall::StartProcess { request }, NOW).await
    }

    async fn list_processes(&self, at: &Placed) -> Result<Vec<ProcessView>, SessionFailure> {
        self.ask(at, SessionCall::ListProcesses, NOW).await
    }

    async fn process_output(
        &self,
        at: &Placed,
        number: u64,
        after: u64,
        time: Duration,
    ) -> Result<ProcessTold, SessionFailure> {
        let call = SessionCall::ProcessOutput { number, after, time_ms: millis(time) };
        let ProcessNews { pieces, has_gap, process } = self.ask(at, call, time).await?;
        let piece = |ProcessNewsPiece { seq, is_stderr, base64 }: ProcessNewsPiece| {
            let stream = if is_stderr { Stream::Stderr } else { Stream::Stdout };
            let bytes = STANDARD.decode(base64).map_err(|error| unreachable(&error.to_string()))?;
            Ok(ProcessPiece { seq, stream, bytes })
        };
        let pieces = pieces.into_iter().map(piece).collect::<Result<_, SessionFailure>>()?;
        Ok(ProcessTold { pieces, has_gap, process })
    }

    async fn write_process(
        &self,
        at: &Placed,
        number: u64,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<(), SessionFailure> {
        let content = Box::new(std::io::Cursor::new(bytes.to_vec()));
        self.send(at, SessionCall::WriteProcess { number, is_last }, content).await
    }

    async fn signal_process(&self, at: &Placed, number: u64, signal: i32) -> Result<(), SessionFailure> {
        self.ask(at, SessionCall::SignalProcess { number, signal }, NOW).await
    }

    async fn resize_process(
        &self,
        at: &Placed,
        number: u64,
        size: TerminalSize,
    ) -> Result<(), SessionFailure> {
        self.ask(at, SessionCall::ResizeProcess { number, size }, NOW).await
    }

    async fn freeze(&self, at: &Placed) -> Result<(), SessionFailure> {
        self.ask(at, SessionCall::Freeze, NOW).await
    }

    async fn thaw(&self, at: &Placed) -> Result<(), SessionFailure> {
        self.ask(at, SessionCall::Thaw, NOW).await
    }

    async fn hold(&self, at: &Placed) -> Result<Hold, SessionFailure> {
        self.check()?;
        hold(&self.peer, at).await
    }

    async fn save(&self, at: &Placed, to: FileWriter, most: u64) -> Result<SavedFiles, SessionFailure> {
        self.check()?;
        let saved = fetch_into(&self.peer, at, SessionCall::Save { most }, to).await?;
        let SavedNews { entries, bytes, skipped } = saved;
        Ok(SavedFiles { entries, bytes, skipped })
    }

    async fn restore(&self, at: &Placed, from: FileReader) -> Result<(), SessionFailure> {
        self.send(at, SessionCall::Restore, from).await
    }

    async fn copy(&self, from: &Placed, to: &Placed) -> Result<(), SessionFailure> {
        let call = SessionCall::Copy { from: from.id.to_string(), from_generation: from.generation };
        // It takes as long as there are files.
        self.send(to, call, Box::new(tokio::io::empty())).await
    }

    async fn give_secrets(&self, at: &Placed, secrets: Vec<SecretFile>) -> Result<(), SessionFailure> {
        for SecretFile { path, value } in secrets {
            let content = Box::new(std::io::Cursor::new(value.as_bytes().to_vec()));
            self.send::<()>(at, SessionCall::GiveSecret { path: text(&path) }, content).await?;
        }
        Ok(())
    }

    /// A worker that cannot be reached is told later that the session is not its own, and ends it then.
    async fn terminate(&self, id: &SessionId, generation: i64) {
        let path = format!("/sessions/{id}?generation={generation}");
        let mut backoff = Backoff::default();
        for _ in 0..TRIES {
            match self.peer.call(Method::DELETE, &path, None::<&()>).await {
                Ok(_) | Err(CallError::Refused { .. }) => return,
                Err(CallError::Unreached(..) | CallError::Unanswered(..)) => backoff.pause().await,
            }
        }
    }
}
