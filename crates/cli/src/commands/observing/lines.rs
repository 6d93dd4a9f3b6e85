//! Lines on their way to stderr. A thread writes them, so that whoever reads them slowly holds nobody up: what does
//! not fit in the queue is dropped, and a line says how many were.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// A second's worth at the highest rate; a line has some 200 bytes.
const QUEUE: usize = 4096;

enum Message {
    Line(Vec<u8>),
    End,
}

/// The way to the thread.
#[derive(Clone)]
pub(super) struct Writer {
    queue: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

/// The thread.
pub(super) struct Lines {
    queue: SyncSender<Message>,
    thread: JoinHandle<()>,
}

pub(super) fn start() -> (Writer, Lines) {
    let (queue, waiting) = sync_channel(QUEUE);
    let dropped = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&dropped);
    let thread = std::thread::spawn(move || write(&waiting, &counted, &mut io::stderr()));
    (Writer { queue: queue.clone(), dropped }, Lines { queue, thread })
}

fn write(waiting: &Receiver<Message>, dropped: &AtomicU64, to: &mut impl Write) {
    while let Ok(Message::Line(line)) = waiting.recv() {
        let _ = to.write_all(&line);
        let count = dropped.swap(0, Ordering::Relaxed);
        if count > 0 {
            let text = "lines were dropped: stderr takes them too slowly";
            let _ = writeln!(to, "{{\"level\":\"WARN\",\"message\":\"{count} {text}\",\"dropped\":{count}}}");
        }
    }
}

impl Lines {
    /// Writes what is left; a reader that takes nothing is not waited for.
    pub(super) fn end(self) {
        let _ = self.queue.try_send(Message::End);
        for _ in 0..100 {
            if self.thread.is_finished() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl<'w> MakeWriter<'w> for Writer {
    type Writer = Line<'w>;

    fn make_writer(&'w self) -> Line<'w> {
        Line { to: self, bytes: Vec::new() }
    }
}

/// One line; it goes when it is dropped.
pub(super) struct Line<'w> {
    to: &'w Writer,
    bytes: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if self.to.queue.try_send(Message::Line(std::mem::take(&mut self.bytes))).is_err() {
            self.to.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that takes nothing costs lines, not time.
    #[test]
    fn what_is_not_taken_is_dropped_and_told() {
        let (queue, waiting) = sync_channel(2);
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = Writer { queue, dropped: Arc::clone(&dropped) };
        for i in 0..5 {
            writeln!(writer.make_writer(), "line {i}").unwrap();
        }
        assert_eq!(dropped.load(Ordering::Relaxed), 3);
        drop(writer);
        let mut written = Vec::new();
        write(&waiting, &dropped, &mut written);
        let text = String::from_utf8(written).unwrap();
        assert!(text.starts_with("line 0\n{") && text.ends_with("line 1\n"), "{text}");
        assert!(text.contains("\"dropped\":3"), "{text}");
    }
}
