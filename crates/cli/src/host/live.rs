//! Output to our own stdout and stderr while the job runs.
//!
//! They may block for as long as somebody holds a pager open, and the job's deadline has to hold meanwhile:
//! a thread does the writing. It starts with the first byte, so that a silent job costs none.

use super::screen::Screened;
use cofferdam_backend::async_trait;
use cofferdam_worker::{LiveOutput, OutputStream};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Bytes that may wait to be written before the job has to wait, too.
const QUEUED_MAX_BYTES: usize = 1 << 20;

pub(crate) type Sink = Box<dyn Write + Send>;

/// One of our own streams, without a buffer between. A terminal gets only what draws.
pub(crate) fn sink(stream: impl AsFd + IsTerminal) -> io::Result<Sink> {
    let file = File::from(stream.as_fd().try_clone_to_owned()?);
    Ok(if stream.is_terminal() { Box::new(Screened::new(file)) } else { Box::new(file) })
}

/// Writes to two sinks, in the order in which output came.
pub(crate) struct LiveWriter {
    sinks: Option<(Sink, Sink)>,
    sender: Option<mpsc::Sender<Chunk>>,
    shared: Arc<Shared>,
}

struct Chunk {
    stream: OutputStream,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Shared {
    queued: AtomicUsize,
    /// The thread has written everything, or was never needed.
    idle: AtomicBool,
    /// Our stdout takes nothing more: mostly, because whoever read it is gone.
    closed: AtomicBool,
    /// Why output is missing, if it is.
    failure: Mutex<Option<io::Error>>,
    changed: Notify,
    hung_up: Notify,
}

impl Shared {
    fn failure(&self) -> MutexGuard<'_, Option<io::Error>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until nobody reads our stdout any more.
pub(crate) struct HangUp(Arc<Shared>);

impl HangUp {
    pub(crate) async fn happened(&self) {
        while !self.0.closed.load(Ordering::Acquire) {
            self.0.hung_up.notified().await;
        }
    }
}

impl LiveWriter {
    pub(crate) fn new(stdout: Sink, stderr: Sink) -> Self {
        Self { sinks: Some((stdout, stderr)), sender: None, shared: Arc::default() }
    }

    pub(crate) fn hang_up(&self) -> HangUp {
        HangUp(Arc::clone(&self.shared))
    }

    /// Whether there was nothing to write so far.
    pub(crate) fn is_silent(&self) -> bool {
        self.sinks.is_some()
    }

    /// Waits until everything is written; for ever, if it must be. Fails if some of it was not.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        // Without a sender the thread ends once its queue is empty; without a thread there is nothing to do.
        if self.sender.take().is_some() {
            while !self.shared.idle.load(Ordering::Acquire) {
                self.shared.changed.notified().await;
            }
        }
        self.shared.failure().take().map_or(Ok(()), Err)
    }

    fn start(&mut self) -> Option<&mpsc::Sender<Chunk>> {
        if let Some((stdout, stderr)) = self.sinks.take() {
            let (sender, receiver) = mpsc::channel();
            let shared = Arc::clone(&self.shared);
            let write = move || write_all(&receiver, stdout, stderr, &shared);
            match std::thread::Builder::new().name("output".to_owned()).spawn(write) {
                Ok(_) => self.sender = Some(sender),
                Err(error) => *self.shared.failure() = Some(error),
            }
        }
        self.sender.as_ref()
    }
}

#[async_trait]
impl LiveOutput for LiveWriter {
    fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.shared.queued.fetch_add(bytes.len(), Ordering::AcqRel);
        let chunk = Chunk { stream, bytes: bytes.to_vec() };
        let sent = self.start().is_some_and(|sender| sender.send(chunk).is_ok());
        if !sent {
            self.shared.queued.store(0, Ordering::Release);
        }
    }

    async fn ready(&mut self) {
        while self.shared.queued.load(Ordering::Acquire) > QUEUED_MAX_BYTES {
            self.shared.changed.notified().await;
        }
    }
}

/// The thread: writes what comes, until nobody can send any more. A sink that failed gets nothing more.
fn write_all(receiver: &mpsc::Receiver<Chunk>, stdout: Sink, stderr: Sink, shared: &Shared) {
    let (mut stdout, mut stderr) = (Some(stdout), Some(stderr));
    while let Ok(Chunk { stream, bytes }) = receiver.recv() {
        let sink = match stream {
            OutputStream::Stdout => &mut stdout,
            OutputStream::Stderr => &mut stderr,
        };
        if let Some(Err(error)) = sink.as_mut().map(|sink| write(sink, &bytes)) {
            *sink = None;
            shared.failure().get_or_insert(error);
            if stream == OutputStream::Stdout {
                shared.closed.store(true, Ordering::Release);
                shared.hung_up.notify_one();
            }
        }
        shared.queued.fetch_sub(bytes.len(), Ordering::AcqRel);
        shared.changed.notify_one();
    }
    // A terminal is brought back as the sink goes, which is before anybody is told.
    drop((stdout, stderr));
    shared.idle.store(true, Ordering::Release);
    shared.changed.notify_one();
}

fn write(sink: &mut Sink, bytes: &[u8]) -> io::Result<()> {
    sink.write_all(bytes)?;
    sink.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes writes while it is open, and remembers them.
    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn everything_is_written_before_it_finishes() {
        let (out, err) = (Memory::default(), Memory::default());
        let mut live = LiveWriter::new(Box::new(out.clone()), Box::new(err.clone()));
        for _ in 0..100 {
            live.push(OutputStream::Stdout, &[b'o'; 50_000]);
            live.ready().await;
        }
        live.push(OutputStream::Stderr, b"e");
        live.finish().await.unwrap();
        assert_eq!((out.0.lock().unwrap().len(), err.0.lock().unwrap().len()), (5_000_000, 1));
    }

    #[tokio::test]
    async fn silence_needs_no_thread() {
        let mut live = LiveWriter::new(Box::new(Closed), Box::new(Closed));
        live.finish().await.unwrap();
        assert!(live.is_silent());
    }

    #[tokio::test]
    async fn a_closed_stdout_is_told_and_blocks_nothing() {
        let mut live = LiveWriter::new(Box::new(Closed), Box::new(Memory::default()));
        let hang_up = live.hang_up();
        for _ in 0..100 {
            live.push(OutputStream::Stdout, &[0; 50_000]);
            live.ready().await;
        }
        hang_up.happened().await;
        assert_eq!(live.finish().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
