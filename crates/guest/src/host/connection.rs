//! The connection: who waits for which answer, where the bytes of a channel go, and what happens at its end.

use super::channel::Channel;
use crate::protocol::{
    Answer, Ask, End, Event, Failure, Frame, Frames, Kind, Request, credit, credited, frame, message,
};
use cofferdam_backend::{BackendError, ExitStatus, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock, mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// How long a helper may take to say that it is there, on a machine that is busy.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Why there is nothing at the other end any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone(pub String);

/// Sends frames; after the end of the connection they go nowhere.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    frames: mpsc::UnboundedSender<Vec<u8>>,
    shared: Arc<Mutex<Shared>>,
}

impl Sender {
    // Unbounded as a queue, bounded by what goes into it: streams by their credit, requests by who waits for them.
    pub(super) fn send(&self, frame: Vec<u8>) {
        let _ = self.frames.send(frame);
    }

    /// A handle of a channel is gone; with the last one the channel goes.
    pub(super) fn forget(&self, channel: u32) {
        let mut shared = lock(&self.shared);
        // The table's own, and the one of the handle that is going.
        if shared.channels.get(&channel).is_some_and(|channel| Arc::strong_count(channel) <= 2) {
            shared.channels.remove(&channel);
        }
    }
}

pub(super) struct ProcessEnd(pub(super) watch::Sender<Option<ExitStatus>>);

#[derive(Default)]
struct Shared {
    gone: Option<Gone>,
    answers: HashMap<u32, oneshot::Sender<std::result::Result<Answer, Failure>>>,
    channels: HashMap<u32, Arc<Channel>>,
    ends: HashMap<u32, ProcessEnd>,
    listeners: HashMap<u32, mpsc::Sender<Arc<Channel>>>,
    frames: Option<mpsc::UnboundedSender<Vec<u8>>>,
    /// Held while processes stand still.
    standing: Option<OwnedRwLockWriteGuard<()>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("gone", &self.gone).finish_non_exhaustive()
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A helper that answered. Dropping it ends the connection, and with it the helper.
#[derive(Debug)]
pub struct Connection {
    pub(super) sender: Sender,
    shared: Arc<Mutex<Shared>>,
    next: AtomicU32,
    tasks: [AbortHandle; 2],
    gone: watch::Receiver<bool>,
    pub(super) processes: Mutex<HashMap<u32, Arc<super::process::Running>>>,
    /// Shared by what is being started; nothing is while processes stand still.
    pub(super) turns: Arc<RwLock<()>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.end("it was dropped");
    }
}

impl Connection {
    /// Takes the two ends of the helper's streams and waits until it is there. `lost_after` is what the helper was
    /// told: it hears from here several times in that time.
    pub async fn open(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        lost_after: Duration,
    ) -> Result<Self> {
        let (frames, queue) = mpsc::unbounded_channel();
        let shared = Shared { frames: Some(frames.clone()), ..Shared::default() };
        let shared = Arc::new(Mutex::new(shared));
        let sender = Sender { frames, shared: Arc::clone(&shared) };
        let (ready, is_ready) = oneshot::channel();
        let (gone_sender, gone) = watch::channel(false);
        let reading = read(input, Arc::clone(&shared), ready, gone_sender);
        let tasks = [tokio::spawn(reading), tokio::spawn(write(output, queue, lost_after / 5))]
            .map(|task| task.abort_handle());
        let connection = Self {
            sender,
            shared,
            next: AtomicU32::new(1),
            tasks,
            gone,
            processes: Mutex::default(),
            turns: Arc::default(),
        };
        match timeout(READY_WITHIN, is_ready).await {
            Ok(Ok(())) => Ok(connection),
            Ok(Err(_)) => Err(connection.gone_error()),
            Err(_) => {
                Err(BackendError::Gone { cause: format!("its helper said nothing for {READY_WITHIN:?}") })
            }
        }
    }

    /// A number that was not used before, for a request, a channel, a process or a listener.
    pub(super) fn number(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn check(&self) -> Result<()> {
        let is_gone = lock(&self.shared).gone.is_some();
        if is_gone { Err(self.gone_error()) } else { Ok(()) }
    }

    /// Nothing, or why it is gone.
    pub fn is_there(&self) -> Result<()> {
        self.check()
    }

    fn gone_error(&self) -> BackendError {
        let cause = lock(&self.shared).gone.clone().map_or_else(|| "it ended".to_owned(), |gone| gone.0);
        BackendError::Gone { cause }
    }

    /// Becomes true at the end of the connection, as the other side makes it.
    pub fn gone(&self) -> watch::Receiver<bool> {
        self.gone.clone()
    }

    /// Ends everything on this side: streams are at their end, processes are lost.
    pub fn end(&self, cause: &str) {
        end(&self.shared, cause);
    }

    /// Asks, and waits for the answer. The outer error is the connection's.
    pub(super) async fn ask(&self, ask: Ask) -> Result<std::result::Result<Answer, Failure>> {
        self.begin(ask)?.await.map_err(|_| self.gone_error())
    }

    pub(super) fn begin(&self, ask: Ask) -> Result<oneshot::Receiver<std::result::Result<Answer, Failure>>> {
        let number = self.number();
        let (answer, is_answered) = oneshot::channel();
        {
            let mut shared = lock(&self.shared);
            if shared.gone.is_some() {
                drop(shared);
                return Err(self.gone_error());
            }
            shared.answers.insert(number, answer);
        }
        self.sender.send(message(&Request { number, ask }));
        Ok(is_answered)
    }

    pub(super) fn channel(&self) -> (u32, Arc<Channel>) {
        let number = self.number();
        let channel = Channel::new(number);
        let mut shared = lock(&self.shared);
        if shared.gone.is_some() {
            channel.end();
            channel.close();
        }
        shared.channels.insert(number, Arc::clone(&channel));
        (number, channel)
    }

    pub(super) fn stands_still(&self) -> bool {
        lock(&self.shared).standing.is_some()
    }

    /// Keeps anything from being started, until it is told otherwise or nothing can be.
    pub(super) fn set_standing(&self, turn: Option<OwnedRwLockWriteGuard<()>>) {
        let mut shared = lock(&self.shared);
        shared.standing = turn.filter(|_| shared.gone.is_none());
    }

    pub(super) fn expect_end(&self, process: u32, end: watch::Sender<Option<ExitStatus>>) {
        lock(&self.shared).ends.insert(process, ProcessEnd(end));
    }

    pub(super) fn forget_end(&self, process: u32) {
        lock(&self.shared).ends.remove(&process);
    }

    pub(super) fn expect_connections(&self, listener: u32, queue: mpsc::Sender<Arc<Channel>>) {
        lock(&self.shared).listeners.insert(listener, queue);
    }
}

fn end(shared: &Mutex<Shared>, cause: &str) {
    let mut shared = lock(shared);
    if shared.gone.is_some() {
        return;
    }
    shared.gone = Some(Gone(cause.to_owned()));
    // Whoever waits for an answer learns by its sender's end.
    shared.answers.clear();
    shared.frames = None;
    shared.standing = None;
    shared.listeners.clear();
    for (_, channel) in shared.channels.drain() {
        channel.end();
        channel.close();
    }
    for (_, ProcessEnd(end)) in shared.ends.drain() {
        end.send_replace(Some(ExitStatus::Lost));
    }
}

async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
    at_least_every: Duration,
) {
    loop {
        let frame = match timeout(at_least_every, queue.recv()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => return,
            // To no channel: it says that somebody is there.
            Err(_) => credit(0, 0),
        };
        if output.write_all(&frame).await.is_err() {
            return;
        }
        if queue.is_empty() && output.flush().await.is_err() {
            return;
        }
    }
}

async fn read(
    mut input: impl AsyncRead + Unpin,
    shared: Arc<Mutex<Shared>>,
    ready: oneshot::Sender<()>,
    gone: watch::Sender<bool>,
) {
    let mut ready = Some(ready);
    let mut frames = Frames::default();
    let mut buffer = vec![0; 64 << 10];
    let cause = loop {
        match input.read(&mut buffer).await {
            Ok(0) => break "its helper ended".to_owned(),
            Ok(read) => frames.push(&buffer[..read]),
            Err(error) => break format!("the connection to its helper broke: {error}"),
        }
        if let Err(error) = take(&mut frames, &shared, &mut ready) {
            break error.to_string();
        }
    };
    end(&shared, &cause);
    gone.send_replace(true);
}

fn take(
    frames: &mut Frames,
    shared: &Mutex<Shared>,
    ready: &mut Option<oneshot::Sender<()>>,
) -> std::io::Result<()> {
    while let Some(Frame { kind, channel, content }) = frames.take()? {
        if kind == Kind::Message {
            let event = serde_json::from_slice(&content)?;
            dispatch(event, shared, ready);
            continue;
        }
        let Some(channel) = lock(shared).channels.get(&channel).cloned() else { continue };
        match kind {
            Kind::Data => channel.receive(content),
            Kind::Eof => channel.end(),
            Kind::Close => channel.close(),
            Kind::Credit => channel.add_credit(credited(&content)),
            Kind::Message => {}
        }
    }
    Ok(())
}

fn dispatch(event: Event, shared: &Mutex<Shared>, ready: &mut Option<oneshot::Sender<()>>) {
    match event {
        Event::Ready => {
            if let Some(ready) = ready.take() {
                let _ = ready.send(());
            }
        }
        Event::Reply { number, result } => {
            if let Some(answer) = lock(shared).answers.remove(&number) {
                let _ = answer.send(result);
            }
        }
        Event::Ended { process, end } => {
            if let Some(ProcessEnd(sender)) = lock(shared).ends.remove(&process) {
                sender.send_replace(Some(match end {
                    End::Exited(code) => ExitStatus::Exited(code),
                    End::Signaled(signal) => ExitStatus::Signaled(signal),
                }));
            }
        }
        Event::Accepted { listener, channel: number } => {
            let mut shared = lock(shared);
            let channel = Channel::new(number);
            let queued = shared.listeners.get(&listener).map(|queue| queue.try_send(Arc::clone(&channel)));
            if let Some(Ok(())) = queued {
                shared.channels.insert(number, channel);
            } else if let Some(frames) = &shared.frames {
                // A queue that is full, or nobody who accepts any more.
                let _ = frames.send(frame(Kind::Close, number, &[]));
                let _ = frames.send(frame(Kind::Eof, number, &[]));
            }
        }
    }
}
