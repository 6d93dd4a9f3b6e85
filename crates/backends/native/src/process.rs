//! One process in a sandbox, as the host holds it.

use crate::connection::Connection;
use cofferdam_backend::{BackendError, ExitStatus, Process, ProcessId, Reader, Result, Writer, async_trait};
use cofferdam_linux::sys;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// What every handle to a process shares.
pub(crate) struct ProcessState {
    pub(crate) id: u32,
    pub(crate) exit: watch::Sender<Option<ExitStatus>>,
    pub(crate) streams: Mutex<Streams>,
}

/// The streams that nobody has taken yet.
#[derive(Default)]
pub(crate) struct Streams {
    pub(crate) stdin: Option<Writer>,
    pub(crate) stdout: Option<Reader>,
    pub(crate) stderr: Option<Reader>,
    /// The terminal itself, for its size.
    pub(crate) terminal: Option<OwnedFd>,
}

impl ProcessState {
    pub(crate) fn new(id: u32) -> Self {
        Self { id, exit: watch::Sender::new(None), streams: Mutex::default() }
    }

    pub(crate) fn streams(&self) -> std::sync::MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the end, once; what comes later changes nothing.
    pub(crate) fn ended(&self, status: ExitStatus) {
        self.exit.send_if_modified(|known| known.is_none().then(|| *known = Some(status)).is_some());
    }
}

#[derive(Clone)]
pub(crate) struct NativeProcess {
    pub(crate) state: Arc<ProcessState>,
    pub(crate) connection: Arc<Connection>,
}

impl std::fmt::Debug for NativeProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeProcess").field("id", &self.state.id).finish_non_exhaustive()
    }
}

#[async_trait]
impl Process for NativeProcess {
    fn id(&self) -> ProcessId {
        ProcessId(self.state.id)
    }

    fn take_stdin(&self) -> Option<Writer> {
        self.state.streams().stdin.take()
    }

    fn take_stdout(&self) -> Option<Reader> {
        self.state.streams().stdout.take()
    }

    fn take_stderr(&self) -> Option<Reader> {
        self.state.streams().stderr.take()
    }

    async fn resize(&self, rows: u16, columns: u16) -> Result<()> {
        let streams = self.state.streams();
        let Some(terminal) = &streams.terminal else {
            return Err(BackendError::Unsupported {
                backend: "native",
                what: "resize a process without a terminal",
            });
        };
        sys::set_window_size(terminal.as_raw_fd(), rows, columns)
            .map_err(|e| BackendError::failed("resizing the terminal", e.into()))
    }

    async fn signal(&self, signal: i32) -> Result<()> {
        self.connection.signal(self.state.id, signal)
    }

    async fn wait(&self) -> Result<ExitStatus> {
        let mut exit = self.state.exit.subscribe();
        let known = exit.wait_for(Option::is_some).await;
        Ok(known.ok().and_then(|status| *status).unwrap_or(ExitStatus::Lost))
    }
}
