//! Processes of a session that somebody watches: a terminal, a server, a long command. What one writes is kept for a
//! while and up to a limit, so that whoever comes back can go on from where they were.

use super::live::Live;
use super::{SessionError, Sessions};
use crate::output::OutputStream;
use crate::task_env::workspace;
use cofferdam_backend::{ExitStatus, Process, ProcessSpec, Reader, Stdio, Writer};
use cofferdam_core::{GuestPath, InvalidValue, Outcome, SessionId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Mutex as Turns, watch};
use tokio::time::{Instant, timeout_at};

/// What is kept of one process's output, for who comes back. What is older is dropped.
const KEPT_BYTES: usize = 1 << 20;

/// What a piece takes besides its bytes. A program that writes single letters makes a piece of each.
const PIECE_BYTES: usize = 64;

/// So much is handed out at once, and so held for each of those who follow.
const BATCH_BYTES: usize = 256 << 10;

/// So many processes of one session are known, those that have ended among them. The oldest of these go first.
const MAX_PROCESSES: usize = 64;

/// Input that a process does not read is not waited for any longer.
const INPUT_MAX: Duration = Duration::from_secs(10);

/// A stream that has nothing for so long after the end of its process has nothing of it. What a process wrote to a pipe
/// is there when it ends; what it wrote to a terminal comes a moment later.
const SILENT: Duration = Duration::from_millis(20);

/// Whoever else holds the stream, and writes on and on, is not waited for.
const SETTLED_MAX: Duration = Duration::from_millis(500);

const READ_BYTES: usize = 32 << 10;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// What is to be started.
#[derive(Debug, Clone)]
pub struct ProcessOrder {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub workdir: Option<GuestPath>,
    /// Rows and columns.
    pub terminal: Option<(u16, u16)>,
    pub timeout: Option<Duration>,
}

/// A process, as it is known now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessState {
    /// 1 for the session's first.
    pub number: u64,
    pub argv: Vec<String>,
    pub is_terminal: bool,
    pub started_ms: i64,
    pub ended: Option<(Outcome, i64)>,
    /// The number of its last piece of output.
    pub last_seq: u64,
}

/// One piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessPiece {
    pub seq: u64,
    pub stream: OutputStream,
    pub bytes: Vec<u8>,
}

/// What comes after a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessNews {
    pub pieces: Vec<ProcessPiece>,
    /// Something before the first of these was dropped, and was not seen.
    pub has_gap: bool,
    /// How it stands; where it has ended, these pieces are the last.
    pub state: ProcessState,
}

/// The processes of one session.
#[derive(Debug, Default)]
pub(super) struct Processes {
    known: Mutex<BTreeMap<u64, Arc<Watched>>>,
}

struct Watched {
    process: Box<dyn Process>,
    stdin: Turns<Option<Writer>>,
    log: Mutex<Log>,
    changed: watch::Sender<u64>,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Watched").field(&self.log().state).finish()
    }
}

struct Log {
    state: ProcessState,
    pieces: VecDeque<ProcessPiece>,
    bytes: usize,
    open: usize,
    /// Streams that may still have something of the process's own.
    unsettled: usize,
}

impl Log {
    /// What is kept after a number, up to a batch.
    fn after(&self, after: u64) -> Vec<ProcessPiece> {
        let from = self.pieces.partition_point(|piece| piece.seq <= after);
        let mut bytes = 0;
        let fits = |piece: &&ProcessPiece| {
            let is_first = bytes == 0;
            bytes += piece.bytes.len() + PIECE_BYTES;
            is_first || bytes <= BATCH_BYTES
        };
        self.pieces.range(from..).take_while(fits).cloned().collect()
    }
}

impl Processes {
    fn known(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Watched>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, number: u64) -> Result<Arc<Watched>, SessionError> {
        self.known().get(&number).cloned().ok_or(SessionError::NoProcess)
    }

    /// Takes a number for another one. One that has ended makes room, the oldest first.
    fn add(&self, make: impl FnOnce(u64) -> Watched) -> Result<Arc<Watched>, SessionError> {
        let mut known = self.known();
        if known.len() >= MAX_PROCESSES {
            let over = known.iter().find(|(_, watched)| watched.log().state.ended.is_some());
            let Some(number) = over.map(|(number, _)| *number) else {
                let fix = format!("a session has at most {MAX_PROCESSES} of them at once");
                return Err(InvalidValue::new("processes", MAX_PROCESSES.to_string(), fix).into());
            };
            known.remove(&number);
        }
        let number = known.last_key_value().map_or(1, |(last, _)| last + 1);
        let watched = Arc::new(make(number));
        known.insert(number, Arc::clone(&watched));
        Ok(watched)
    }
}

impl Watched {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    fn push(&self, stream: OutputStream, bytes: &[u8]) {
        {
            let mut log = self.log();
            log.state.last_seq += 1;
            let seq = log.state.last_seq;
            log.bytes += bytes.len() + PIECE_BYTES;
            log.pieces.push_back(ProcessPiece { seq, stream, bytes: bytes.to_vec() });
            while log.bytes > KEPT_BYTES {
                let Some(first) = log.pieces.pop_front() else { break };
                log.bytes -= first.bytes.len() + PIECE_BYTES;
            }
        }
        self.tell();
    }

    async fn follow(self: Arc<Self>, stream: OutputStream, reader: Option<Reader>) {
        if let Some(mut reader) = reader {
            let mut buffer = vec![0; READ_BYTES];
            if self.follow_process(stream, &mut reader, &mut buffer).await {
                self.settled();
                // Something that the process left behind holds its streams.
                while let Ok(count @ 1..) = reader.read(&mut buffer).await {
                    self.push(stream, &buffer[..count]);
                }
                self.log().open -= 1;
                return self.tell();
            }
        }
        self.log().open -= 1;
        self.settled();
    }

    /// Takes all that the process itself writes. Says whether the stream is still open then.
    async fn follow_process(&self, stream: OutputStream, reader: &mut Reader, buffer: &mut [u8]) -> bool {
        let mut ended = std::pin::pin!(self.process.wait());
        loop {
            let read = tokio::select! {
                biased;
                read = reader.read(buffer) => read,
                _ = &mut ended => break,
            };
            // A terminal ends with an error where a pipe is at its end.
            let Ok(count @ 1..) = read else { return false };
            self.push(stream, &buffer[..count]);
        }
        let last = Instant::now() + SETTLED_MAX;
        loop {
            match timeout_at(last.min(Instant::now() + SILENT), reader.read(buffer)).await {
                Ok(Ok(count @ 1..)) => self.push(stream, &buffer[..count]),
                Ok(_) => return false,
                Err(_) => return true,
            }
        }
    }

    fn settled(&self) {
        self.log().unsettled -= 1;
        self.tell();
    }

    /// Waits for the end of the process, or brings it about when its time is over.
    async fn attend(self: Arc<Self>, live: Arc<Live>, killed_before: u64, timeout: Option<Duration>) {
        let late = async {
            match timeout {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        let (status, is_late) = tokio::select! {
            biased;
            status = self.process.wait() => (status, false),
            () = late => {
                let _ = self.process.signal(SIGTERM).await;
                let ended = tokio::time::timeout(live.grace(), self.process.wait()).await;
                let status = match ended {
                    Ok(status) => status,
                    Err(_) => {
                        let _ = self.process.signal(SIGKILL).await;
                        self.process.wait().await
                    }
                };
                (status, true)
            }
        };
        let outcome = match status {
            _ if is_late => Outcome::TimedOut,
            Ok(ExitStatus::Exited(code)) => Outcome::Exited { code },
            Ok(ExitStatus::Signaled(SIGKILL)) if live.oom_kills().await > killed_before => Outcome::OomKilled,
            Ok(ExitStatus::Signaled(signal)) => Outcome::Signaled { signal },
            Ok(ExitStatus::Lost) => Outcome::Lost,
            Err(error) => Outcome::Failed { code: "wait_failed".to_owned(), message: error.to_string() },
        };
        self.stdin.lock().await.take();
        let ended_ms = now_ms();
        // Whoever hears of the end has heard of all that came before it.
        let _ = self.changed.subscribe().wait_for(|_| self.log().unsettled == 0).await;
        self.log().state.ended = Some((outcome, ended_ms));
        self.tell();
    }
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

impl Sessions {
    /// Starts a process that goes on for as long as it likes, or the session lives.
    pub async fn start_process(
        &self,
        id: &SessionId,
        generation: i64,
        order: ProcessOrder,
    ) -> Result<ProcessState, SessionError> {
        let live = self.find(id, generation)?;
        let ProcessOrder { argv, env, workdir, terminal, timeout } = order;
        let stdio = match terminal {
            Some((rows, columns)) => Stdio::Terminal { rows, columns },
            None => Stdio::Pipes { stdin: true },
        };
        let env = live.process_env(&env, terminal.is_some())?;
        let cwd = workdir.unwrap_or_else(workspace);
        let make_cwd = cwd != workspace();
        let killed_before = live.oom_kills().await;
        let spec = ProcessSpec { argv: argv.clone(), env, cwd, make_cwd, stdio };
        let process = live.sandbox.start(spec).await.map_err(SessionError::Start)?;
        let (stdin, stdout, stderr) = (process.take_stdin(), process.take_stdout(), process.take_stderr());
        let is_terminal = terminal.is_some();
        let watched = live.processes.add(|number| {
            let started_ms = now_ms();
            let state = ProcessState { number, argv, is_terminal, started_ms, ended: None, last_seq: 0 };
            let log = Log { state, pieces: VecDeque::new(), bytes: 0, open: 2, unsettled: 2 };
            let (stdin, log) = (Turns::new(stdin), Mutex::new(log));
            Watched { process, stdin, log, changed: watch::Sender::new(0) }
        })?;
        for (stream, reader) in [(OutputStream::Stdout, stdout), (OutputStream::Stderr, stderr)] {
            tokio::spawn(Arc::clone(&watched).follow(stream, reader));
        }
        tokio::spawn(Arc::clone(&watched).attend(live, killed_before, timeout));
        Ok(watched.log().state.clone())
    }

    pub fn list_processes(&self, id: &SessionId, generation: i64) -> Result<Vec<ProcessState>, SessionError> {
        let live = self.find(id, generation)?;
        Ok(live.processes.known().values().map(|watched| watched.log().state.clone()).collect())
    }

    /// What a process wrote after a number. Where there is nothing, waits for it, or for the end, up to a time.
    pub async fn process_news(
        &self,
        id: &SessionId,
        generation: i64,
        number: u64,
        after: u64,
        time: Duration,
    ) -> Result<ProcessNews, SessionError> {
        let watched = self.find(id, generation)?.processes.find(number)?;
        let mut changed = watched.changed.subscribe();
        let deadline = Instant::now() + time;
        loop {
            changed.mark_unchanged();
            let (news, is_over) = {
                let log = watched.log();
                let pieces = log.after(after);
                let first = pieces.first().map_or(log.state.last_seq + 1, |piece| piece.seq);
                let has_gap = first > after.saturating_add(1);
                // The end is told once all of its output is there, unless something else holds its streams.
                let mut state = log.state.clone();
                let is_all = pieces.last().is_none_or(|piece| piece.seq == state.last_seq);
                let is_over = state.ended.is_some() && is_all && (log.open == 0 || pieces.is_empty());
                if !is_over {
                    state.ended = None;
                }
                (ProcessNews { pieces, has_gap, state }, is_over)
            };
            if is_over || !news.pieces.is_empty() || Instant::now() >= deadline {
                return Ok(news);
            }
            let _ = timeout_at(deadline, changed.changed()).await;
        }
    }

    /// Writes to a process, and with `is_last` closes its input. A terminal is told by its own sign for that.
    pub async fn write_process(
        &self,
        id: &SessionId,
        generation: i64,
        number: u64,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<(), SessionError> {
        let watched = self.find(id, generation)?.processes.find(number)?;
        let mut stdin = watched.stdin.lock().await;
        let Some(writer) = stdin.as_mut() else { return Err(SessionError::InputClosed) };
        let is_terminal = watched.log().state.is_terminal;
        let write = async {
            writer.write_all(bytes).await?;
            if is_last && is_terminal {
                writer.write_all(b"\x04").await?;
            }
            writer.flush().await
        };
        match tokio::time::timeout(INPUT_MAX, write).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(SessionError::InputClosed),
            Err(_) => return Err(SessionError::InputFull),
        }
        if is_last
            && !is_terminal
            && let Some(mut writer) = stdin.take()
        {
            let _ = writer.shutdown().await;
        }
        Ok(())
    }

    pub async fn signal_process(
        &self,
        id: &SessionId,
        generation: i64,
        number: u64,
        signal: i32,
    ) -> Result<(), SessionError> {
        let watched = self.find(id, generation)?.processes.find(number)?;
        if watched.log().state.ended.is_some() {
            return Ok(());
        }
        Ok(watched.process.signal(signal).await?)
    }

    pub async fn resize_process(
        &self,
        id: &SessionId,
        generation: i64,
        number: u64,
        rows: u16,
        columns: u16,
    ) -> Result<(), SessionError> {
        let watched = self.find(id, generation)?.processes.find(number)?;
        if !watched.log().state.is_terminal {
            return Err(InvalidValue::new("rows", rows.to_string(), "the process has no terminal").into());
        }
        Ok(watched.process.resize(rows, columns).await?)
    }
}
