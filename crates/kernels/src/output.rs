//! A kernel's stdout and stderr.
//!
//! They are read all the time, so that what runs on in the background never waits for the next cell. While a cell
//! runs, a reader that is ahead of the sink waits; between cells, a little is kept for the next one and the rest
//! is dropped. When a cell has ended, its kernel writes a marker to both, so that what came before is the cell's
//! and what comes after is not.

use cofferdam_backend::Reader;
use memchr::memmem::Finder;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::AsyncReadExt;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What may wait for the sink of a running cell.
const RUNNING_MAX_BYTES: usize = 1 << 20;

/// What is kept between cells: enough to see what happened.
const IDLE_MAX_BYTES: usize = 256 << 10;

/// A pipe holds as much.
const READ_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    is_running: bool,
    dropped_bytes: u64,
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    filled: Notify,
    drained: Notify,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One stream and the task that reads it.
#[derive(Debug)]
pub(crate) struct Output {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
    carry: Vec<u8>,
    marker: Option<Finder<'static>>,
}

impl Drop for Output {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Output {
    pub(crate) fn new(reader: Option<Reader>) -> Self {
        let shared = Arc::new(Shared::default());
        let task = tokio::spawn(read(Arc::clone(&shared), reader));
        Self { shared, task, carry: Vec::new(), marker: None }
    }

    /// Begins a cell that ends with this marker. Returns how much was dropped before it.
    pub(crate) fn begin(&mut self, marker: &[u8]) -> u64 {
        self.marker = Some(Finder::new(marker).into_owned());
        let mut state = self.shared.state();
        state.is_running = true;
        if !state.bytes.is_empty() {
            self.shared.filled.notify_one();
        }
        std::mem::take(&mut state.dropped_bytes)
    }

    pub(crate) fn end(&mut self) {
        self.marker = None;
        self.shared.state().is_running = false;
        self.shared.drained.notify_one();
    }

    /// Whether all of the cell's output was taken.
    pub(crate) fn is_done(&self) -> bool {
        self.marker.is_none()
    }

    /// Waits until there is something to take, or nothing will come any more. Never returns once it is done.
    pub(crate) async fn filled(&self) {
        if self.is_done() {
            std::future::pending::<()>().await;
        }
        self.shared.filled.notified().await;
    }

    /// Whether no more will come.
    pub(crate) fn has_ended(&self) -> bool {
        self.shared.state().has_ended
    }

    /// What has come and belongs to the cell.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let Some(marker) = &self.marker else { return Vec::new() };
        let mut state = self.shared.state();
        let mut bytes = std::mem::take(&mut self.carry);
        if bytes.is_empty() {
            bytes = std::mem::take(&mut state.bytes);
        } else {
            bytes.append(&mut state.bytes);
        }
        if let Some(at) = marker.find(&bytes) {
            state.bytes = bytes.split_off(at + marker.needle().len());
            bytes.truncate(at);
            self.marker = None;
        } else if !state.has_ended {
            self.carry = bytes.split_off(bytes.len() - begun(&bytes, marker.needle()));
        }
        drop(state);
        self.shared.drained.notify_one();
        bytes
    }
}

/// How many bytes at the end may be the beginning of the marker.
fn begun(bytes: &[u8], marker: &[u8]) -> usize {
    let longest = bytes.len().min(marker.len().saturating_sub(1));
    (1..=longest).rev().find(|n| marker.starts_with(&bytes[bytes.len() - n..])).unwrap_or(0)
}

async fn read(shared: Arc<Shared>, reader: Option<Reader>) {
    let mut buffer = vec![0; READ_BYTES];
    if let Some(mut reader) = reader {
        // An error ends a stream as its end does; how the process ended is told elsewhere.
        while let Ok(n @ 1..) = reader.read(&mut buffer).await {
            keep(&shared, &buffer[..n]).await;
        }
    }
    shared.state().has_ended = true;
    shared.filled.notify_one();
}

async fn keep(shared: &Shared, bytes: &[u8]) {
    loop {
        {
            let mut state = shared.state();
            let most = if state.is_running { RUNNING_MAX_BYTES } else { IDLE_MAX_BYTES };
            if state.bytes.len() + bytes.len() <= most {
                state.bytes.extend_from_slice(bytes);
                break;
            }
            if !state.is_running {
                state.dropped_bytes += bytes.len() as u64;
                return;
            }
        }
        shared.drained.notified().await;
    }
    shared.filled.notify_one();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;

    const MARKER: &[u8] = b"\x1emark\x1e";

    async fn until_done(output: &mut Output) -> Vec<u8> {
        let mut all = Vec::new();
        while !output.is_done() {
            tokio::time::timeout(Duration::from_secs(5), output.filled()).await.expect("the marker comes");
            all.extend(output.take());
        }
        all
    }

    #[tokio::test]
    async fn a_cell_has_what_came_before_its_marker_however_it_is_cut() {
        for piece in 1..20 {
            let (mut writer, reader) = tokio::io::duplex(1 << 20);
            let mut output = Output::new(Some(Box::new(reader)));
            output.begin(MARKER);
            let mut first = Vec::new();
            for part in [b"one \x1ema \x1e".as_slice(), MARKER, b"two"].concat().chunks(piece) {
                writer.write_all(part).await.unwrap();
                tokio::task::yield_now().await;
                first.extend(output.take());
            }
            first.extend(until_done(&mut output).await);
            assert_eq!(first, b"one \x1ema \x1e", "{piece}");
            output.end();
            output.begin(MARKER);
            writer.write_all(MARKER).await.unwrap();
            assert_eq!(until_done(&mut output).await, b"two", "{piece}");
        }
    }

    #[tokio::test]
    async fn between_cells_a_writer_never_waits_and_little_is_kept() {
        let (mut writer, reader) = tokio::io::duplex(4096);
        let mut output = Output::new(Some(Box::new(reader)));
        let much = vec![b'x'; 4 << 20];
        let written = tokio::time::timeout(Duration::from_secs(20), writer.write_all(&much)).await;
        written.expect("nobody holds it up").unwrap();
        writer.write_all(MARKER).await.unwrap();
        drop(writer);
        while !output.has_ended() {
            tokio::task::yield_now().await;
        }
        let dropped = output.begin(MARKER);
        let kept = output.take().len();
        assert!(kept <= IDLE_MAX_BYTES && kept > 0, "{kept}");
        assert_eq!(dropped as usize + kept, much.len() + MARKER.len());
    }

    #[tokio::test]
    async fn a_writer_that_is_ahead_of_a_running_cell_waits() {
        let (mut writer, reader) = tokio::io::duplex(4096);
        let mut output = Output::new(Some(Box::new(reader)));
        output.begin(MARKER);
        let much = vec![b'x'; 3 * RUNNING_MAX_BYTES];
        let waits = tokio::time::timeout(Duration::from_millis(200), writer.write_all(&much)).await;
        assert!(waits.is_err(), "it was taken without a limit");
        assert!(output.take().len() <= RUNNING_MAX_BYTES);
    }
}
