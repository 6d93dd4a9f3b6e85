//! Processes of the sandbox, as handles.

use super::Connection;
use super::channel::{ChannelReader, ChannelWriter};
use super::connection::Sender;
use super::files::unexpected;
use super::words::start_error;
use crate::protocol::{Answer, Ask, Request, Start, message};
use cofferdam_backend::{
    BackendError, ExitStatus, Process, ProcessId, ProcessSpec, Reader, Result, Stdio, Writer, async_trait,
};
use cofferdam_core::InvalidValue;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::timeout;

/// What all handles of a process share.
pub(crate) struct Running {
    id: u32,
    streams: Mutex<Streams>,
    end: watch::Receiver<Option<ExitStatus>>,
    has_terminal: bool,
    is_gone: AtomicBool,
    sender: Sender,
}

#[derive(Default)]
struct Streams {
    stdin: Option<Writer>,
    stdout: Option<Reader>,
    stderr: Option<Reader>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("id", &self.id).field("end", &*self.end.borrow()).finish()
    }
}

fn check(spec: &ProcessSpec) -> Result<()> {
    let has_nul = |text: &str| text.contains('\0');
    if spec.argv.is_empty() {
        return Err(InvalidValue::new("argv", "", "it must name a program").into());
    }
    if let Some(bad) = spec.argv.iter().find(|argument| has_nul(argument)) {
        return Err(InvalidValue::new("argv", bad.as_str(), "it must not contain NUL").into());
    }
    if let Some((name, _)) = spec.env.iter().find(|(name, value)| has_nul(name) || has_nul(value)) {
        return Err(InvalidValue::new("env", name.as_str(), "it must not contain NUL").into());
    }
    Ok(())
}

/// How long processes may take to stand still: what waits for a disk comes to it later.
const STILL_WITHIN: Duration = Duration::from_secs(10);
const STILL_TURN: Duration = Duration::from_millis(2);

/// Some processes stand still already. Where the rest does not, or nobody waits for it, they go on.
struct Stopping<'c> {
    sender: &'c Sender,
    is_done: bool,
}

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            // Nobody waits for the answer.
            self.sender.send(message(&Request { number: 0, ask: Ask::GoOn }));
        }
    }
}

impl Connection {
    /// Stops every process. Files can be read and written meanwhile, and nothing inside does either.
    pub async fn stop_all(&self) -> Result<()> {
        if self.stands_still() {
            return Ok(());
        }
        let failed = |error: io::Error| BackendError::failed("stopping the processes", error);
        let began = Instant::now();
        let turn = timeout(STILL_WITHIN, Arc::clone(&self.turns).write_owned()).await;
        let turn = turn.map_err(|_| failed(io::ErrorKind::TimedOut.into()))?;
        let mut stopping = Stopping { sender: &self.sender, is_done: false };
        loop {
            let (process, state) = match self.ask(Ask::Stop).await? {
                Ok(Answer::Stopped { but: None }) => {
                    self.set_standing(Some(turn));
                    stopping.is_done = true;
                    return Ok(());
                }
                Ok(Answer::Stopped { but: Some(left) }) => left,
                Ok(_) => return Err(unexpected()),
                Err(failure) => return Err(failed(io::Error::from_raw_os_error(failure.errno))),
            };
            if began.elapsed() >= STILL_WITHIN {
                let text = format!("process {process} does not stop ({state:?})");
                return Err(failed(io::Error::new(io::ErrorKind::TimedOut, text)));
            }
            tokio::time::sleep(STILL_TURN).await;
        }
    }

    pub async fn let_all_go_on(&self) -> Result<()> {
        let gone_on = self.ask(Ask::GoOn).await?;
        self.set_standing(None);
        let failed = |error: io::Error| BackendError::failed("letting the processes go on", error);
        gone_on.map(drop).map_err(|failure| failed(io::Error::from_raw_os_error(failure.errno)))
    }

    pub async fn start(&self, spec: ProcessSpec) -> Result<Box<dyn Process>> {
        check(&spec)?;
        // Held until it has begun, or has not: between the two it must not be stopped.
        let _turn = self.turns.read().await;
        self.check()?;
        let process = self.number();
        let (has_stdin, terminal) = match spec.stdio {
            Stdio::Pipes { stdin } => (stdin, None),
            Stdio::Terminal { rows, columns } => (true, Some((rows, columns))),
        };
        let mut streams = Streams::default();
        let stdin = has_stdin.then(|| {
            let (number, channel) = self.channel();
            streams.stdin = Some(Box::new(ChannelWriter::new(&channel, &self.sender)));
            number
        });
        let (stdout, channel) = self.channel();
        streams.stdout = Some(Box::new(ChannelReader::new(&channel, &self.sender)));
        let stderr = terminal.is_none().then(|| {
            let (number, channel) = self.channel();
            streams.stderr = Some(Box::new(ChannelReader::new(&channel, &self.sender)));
            number
        });
        let (ended, end) = watch::channel(None);
        self.expect_end(process, ended);
        let start = Start {
            process,
            argv: spec.argv.clone(),
            env: spec.env.clone(),
            cwd: spec.cwd.to_string(),
            make_cwd: spec.make_cwd,
            stdin,
            stdout,
            stderr,
            terminal,
        };
        if let Err(failure) = self.ask(Ask::Start(start)).await? {
            self.forget_end(process);
            return Err(start_error(&spec, failure));
        }
        let running = Arc::new(Running {
            id: process,
            streams: Mutex::new(streams),
            end,
            has_terminal: terminal.is_some(),
            is_gone: AtomicBool::new(false),
            sender: self.sender.clone(),
        });
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).insert(process, Arc::clone(&running));
        Ok(Box::new(GuestProcess(running)))
    }

    /// What kills every process of the sandbox when it is called.
    pub fn ender(&self) -> impl Fn() + Send + Sync + 'static {
        let sender = self.sender.clone();
        move || sender.send(message(&Request { number: 0, ask: Ask::EndAll }))
    }

    pub fn attach(&self, id: ProcessId) -> Result<Box<dyn Process>> {
        self.check()?;
        let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        match processes.get(&id.0) {
            Some(running) => Ok(Box::new(GuestProcess(Arc::clone(running)))),
            None => Err(InvalidValue::new("process", id.0.to_string(), "no process has this number").into()),
        }
    }
}

#[derive(Debug)]
struct GuestProcess(Arc<Running>);

impl Running {
    fn take<T>(&self, take: impl FnOnce(&mut Streams) -> Option<T>) -> Option<T> {
        take(&mut self.streams.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends a request whose answer nobody waits for; to a process that ended it is none.
    fn tell(&self, ask: Ask) -> Result<()> {
        match *self.end.borrow() {
            Some(ExitStatus::Lost) => {
                self.is_gone.store(true, Ordering::Relaxed);
                Err(BackendError::Gone { cause: "its helper ended".to_owned() })
            }
            Some(_) => Ok(()),
            None => {
                self.sender.send(message(&Request { number: 0, ask }));
                Ok(())
            }
        }
    }
}

#[async_trait]
impl Process for GuestProcess {
    fn id(&self) -> ProcessId {
        ProcessId(self.0.id)
    }

    fn take_stdin(&self) -> Option<Writer> {
        self.0.take(|streams| streams.stdin.take())
    }

    fn take_stdout(&self) -> Option<Reader> {
        self.0.take(|streams| streams.stdout.take())
    }

    fn take_stderr(&self) -> Option<Reader> {
        self.0.take(|streams| streams.stderr.take())
    }

    async fn resize(&self, rows: u16, columns: u16) -> Result<()> {
        if !self.0.has_terminal {
            let error = io::Error::from_raw_os_error(rustix::io::Errno::NOTTY.raw_os_error());
            return Err(BackendError::failed("resizing a terminal", error));
        }
        self.0.tell(Ask::Resize { process: self.0.id, rows, columns })
    }

    async fn signal(&self, signal: i32) -> Result<()> {
        self.0.tell(Ask::Signal { process: self.0.id, signal })
    }

    async fn wait(&self) -> Result<ExitStatus> {
        let mut end = self.0.end.clone();
        // Its sender's end without a word is the connection's.
        let status = end.wait_for(Option::is_some).await;
        Ok(status.ok().and_then(|status| *status).unwrap_or(ExitStatus::Lost))
    }
}
