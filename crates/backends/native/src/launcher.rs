//! The host's end of the launcher.

use crate::report;
use crate::streams::Packets;
use cofferdam_backend::{BackendError, Result};
use cofferdam_linux::launcher::{
    CreateRequest, LAUNCHER_EVENT_BYTES, LAUNCHER_MESSAGE_BYTES, LauncherEvent, LauncherRequest,
};
use cofferdam_linux::{Stage, socket};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// A launcher that was started and not yet connected to an async runtime.
#[derive(Debug)]
pub struct LauncherHandle {
    socket: OwnedFd,
}

impl LauncherHandle {
    /// Starts a launcher by executing a program that calls `run_on_stdin`.
    pub fn spawn(mut program: std::process::Command) -> io::Result<Self> {
        let (host, launcher) = socket::pair()?;
        program.stdin(launcher).stdout(std::process::Stdio::null()).spawn()?;
        Ok(Self { socket: host })
    }

    /// Takes the host's end of a launcher's socket.
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// Sends a network namespace for the first sandbox, its loopback up.
    pub fn give_network(&self, network: &OwnedFd) -> io::Result<()> {
        let mut buffer = [0; LAUNCHER_EVENT_BYTES];
        let message = LauncherRequest::Network.encode(&mut buffer)?;
        Ok(socket::send(self.socket.as_raw_fd(), message, &[network.as_raw_fd()])?)
    }

    pub(crate) fn connect(self) -> io::Result<Launcher> {
        let socket = Packets::new(self.socket)?;
        let inner = Inner {
            socket,
            waiting: Mutex::default(),
            gone: Mutex::new(None),
            next_sandbox: AtomicU32::new(1),
        };
        Ok(Launcher { inner: Arc::new(Handle { inner: Arc::new(inner), reader: Mutex::new(None) }) })
    }
}

pub(crate) type CreatedReceiver = oneshot::Receiver<CreateAnswer>;

type CreateAnswer = (Stage, i32);

#[derive(Default)]
struct Waiting {
    created: HashMap<u32, oneshot::Sender<CreateAnswer>>,
    destroyed: HashMap<u32, oneshot::Sender<i32>>,
}

struct Inner {
    socket: Packets,
    waiting: Mutex<Waiting>,
    gone: Mutex<Option<String>>,
    next_sandbox: AtomicU32,
}

/// A connected launcher; clones are handles to the same one. With the last of them its socket closes, and it ends.
#[derive(Clone)]
pub(crate) struct Launcher {
    inner: Arc<Handle>,
}

/// What the handles share.
struct Handle {
    inner: Arc<Inner>,
    reader: Mutex<Option<AbortHandle>>,
}

impl std::ops::Deref for Handle {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(reader) = lock(&self.reader).take() {
            reader.abort();
        }
    }
}

impl std::fmt::Debug for Launcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launcher").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Launcher {
    pub(crate) fn next_sandbox(&self) -> u32 {
        self.inner.next_sandbox.fetch_add(1, Ordering::Relaxed)
    }

    fn send(&self, request: &LauncherRequest, fds: &[RawFd]) -> Result<()> {
        self.start_reading();
        let mut buffer = [0; LAUNCHER_MESSAGE_BYTES];
        let sent = request.encode(&mut buffer).and_then(|message| self.inner.socket.send(message, fds));
        sent.map_err(|errno| match lock(&self.inner.gone).clone().or_else(|| self.last_words()) {
            Some(cause) => BackendError::Gone { cause },
            None => BackendError::failed("asking the launcher", errno.into()),
        })
    }

    /// What a launcher that has just ended said before.
    fn last_words(&self) -> Option<String> {
        let mut buffer = [0; LAUNCHER_EVENT_BYTES];
        let (n, _) = self.inner.socket.receive_now(&mut buffer).ok()?;
        match LauncherEvent::decode(&buffer[..n]).ok()? {
            LauncherEvent::Unusable { stage, errno } => Some(report::step_failed(stage, errno)),
            _ => None,
        }
    }

    pub(crate) fn add_image(&self, image: u32, layers: &[(String, OwnedFd)]) -> Result<()> {
        let names = layers.iter().map(|(name, _)| name.clone()).collect();
        let fds: Vec<RawFd> = layers.iter().map(|(_, fd)| fd.as_raw_fd()).collect();
        self.send(&LauncherRequest::AddImage { image, names, paths: Vec::new() }, &fds)
    }

    /// The same, for the launcher to open: without root, this process cannot.
    pub(crate) fn add_image_by_path(&self, image: u32, layers: &[(String, PathBuf)]) -> Result<()> {
        let names = layers.iter().map(|(name, _)| name.clone()).collect();
        let paths = layers.iter().map(|(_, path)| path.to_string_lossy().into_owned()).collect();
        self.send(&LauncherRequest::AddImage { image, names, paths }, &[])
    }

    /// Tells where groups lie, so that the launcher can remove them even when this process is gone.
    pub(crate) fn set_groups(&self, folders: &[RawFd], init: Option<RawFd>) -> Result<()> {
        let mut fds = folders.to_vec();
        fds.extend(init);
        self.send(&LauncherRequest::Groups { has_init: init.is_some() }, &fds)
    }

    /// Asks for a sandbox. The receiver hears only of a failure: that it stands is init's to say.
    pub(crate) fn create(
        &self,
        request: CreateRequest,
        control: &OwnedFd,
        lock_file: &OwnedFd,
        disk: Option<&OwnedFd>,
    ) -> Result<CreatedReceiver> {
        let (sender, receiver) = oneshot::channel();
        lock(&self.inner.waiting).created.insert(request.sandbox, sender);
        let (control, lock_file) = (control.as_raw_fd(), lock_file.as_raw_fd());
        let request = LauncherRequest::Create(request);
        match disk {
            Some(disk) => self.send(&request, &[control, lock_file, disk.as_raw_fd()])?,
            None => self.send(&request, &[control, lock_file])?,
        }
        Ok(receiver)
    }

    /// Asks for a sandbox's end; the answer, an error number, comes through the receiver.
    pub(crate) fn destroy(&self, sandbox: u32) -> Result<oneshot::Receiver<i32>> {
        let (sender, receiver) = oneshot::channel();
        lock(&self.inner.waiting).destroyed.insert(sandbox, sender);
        self.send(&LauncherRequest::Destroy { sandbox }, &[])?;
        Ok(receiver)
    }

    /// Asks for a sandbox's end without waiting for it.
    pub(crate) fn destroy_quietly(&self, sandbox: u32) {
        let _ = self.send(&LauncherRequest::Destroy { sandbox }, &[]);
    }

    /// Why nothing more will come from the launcher.
    pub(crate) fn gone(&self) -> BackendError {
        let cause = lock(&self.inner.gone).clone();
        BackendError::Gone { cause: cause.unwrap_or_else(|| "the launcher ended".to_owned()) }
    }

    /// Whether it has ended, as far as is known.
    pub(crate) fn check(&self) -> Result<()> {
        let is_gone = lock(&self.inner.gone).is_some();
        if is_gone { Err(self.gone()) } else { Ok(()) }
    }

    /// The reader runs from the first message on, as long as anyone holds the launcher.
    fn start_reading(&self) {
        let mut reader = lock(&self.inner.reader);
        if reader.is_none() {
            *reader = Some(tokio::spawn(read_events(Arc::clone(&self.inner.inner))).abort_handle());
        }
    }
}

async fn read_events(inner: Arc<Inner>) {
    let mut buffer = [0; LAUNCHER_EVENT_BYTES];
    let cause = loop {
        match inner.socket.receive(&mut buffer).await {
            Ok((0, _)) => break "the launcher ended".to_owned(),
            Ok((n, _)) => match LauncherEvent::decode(&buffer[..n]) {
                Ok(event) => {
                    if let Some(cause) = dispatch(&inner, event) {
                        break cause;
                    }
                }
                Err(errno) => break format!("the launcher said something unknown: {errno}"),
            },
            Err(error) => break error.to_string(),
        }
    };
    *lock(&inner.gone) = Some(cause);
    // Dropping the senders tells everyone who waits.
    *lock(&inner.waiting) = Waiting::default();
}

/// Hands an event to whoever waits for it; a cause if the launcher is done for.
fn dispatch(inner: &Inner, event: LauncherEvent) -> Option<String> {
    let mut waiting = lock(&inner.waiting);
    match event {
        LauncherEvent::NotCreated { sandbox, stage, errno } => {
            if let Some(sender) = waiting.created.remove(&sandbox) {
                let _ = sender.send((stage, errno));
            }
        }
        LauncherEvent::Destroyed { sandbox, errno } => {
            // Whoever waits for news of its making has got them by now.
            waiting.created.remove(&sandbox);
            if let Some(sender) = waiting.destroyed.remove(&sandbox) {
                let _ = sender.send(errno);
            }
        }
        LauncherEvent::Unusable { stage, errno } => return Some(report::step_failed(stage, errno)),
    }
    None
}
