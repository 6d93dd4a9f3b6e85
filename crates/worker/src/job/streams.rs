//! The bytes that go in and out of a process.
//!
//! While it lives, output is passed on as fast as whoever watches takes it, and kept up to a limit. Once the
//! sandbox is gone, what is left in the pipes is read to its end without waiting for anybody.

use crate::output::{LiveOutput, OutputStream};
use cofferdam_backend::{Process, Reader, Writer};
use cofferdam_core::{CapturedOutput, OUTPUT_KEPT_BYTES};
use std::convert::Infallible;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

/// Half of what a pipe holds: few reads for much output, little memory for little.
const READ_BYTES: usize = 32 << 10;

/// How long a stream may take to show its end, before it is taken to be held by another process.
const AT_ONCE: Duration = Duration::from_millis(1);

/// Who collects output to pass it on in larger pieces is asked again after this long without any, so that a process
/// which falls silent is heard.
const PAUSE: Duration = Duration::from_millis(100);

/// The end of a dead process's output comes at once. Waiting longer means that something is badly wrong.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// What a terminal's reader takes for the end of its input.
const END_OF_TRANSMISSION: &[u8] = b"\x04";

/// Reading from a terminal whose other side is closed fails with this, where a pipe would be at its end.
const EIO: i32 = 5;

/// The three streams of one process.
pub(crate) struct Streams {
    output: Output,
    input: Option<Input>,
}

/// What was kept of the output, and what is known of the rest.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) stdout: CapturedOutput,
    pub(super) stderr: CapturedOutput,
    /// When each stream first went past its limit.
    pub(super) dropped_at: Vec<Duration>,
    /// Why some of the output is missing, if it is.
    pub(super) lost: Option<String>,
    pub(super) stdin_error: Option<String>,
}

impl Streams {
    /// Takes the streams of a process that began at `began`; `stdin` is what it shall read.
    pub(crate) fn take(process: &dyn Process, stdin: Option<Reader>, terminal: bool, began: Instant) -> Self {
        let side = |reader| Side {
            reader,
            buffer: Vec::new(),
            kept: CapturedOutput::default(),
            dropped_at: None,
            error: None,
            terminal,
        };
        let input = stdin.and_then(|source| {
            Some(Input { source, writer: Some(process.take_stdin()?), terminal, error: None })
        });
        Self {
            output: Output {
                stdout: side(process.take_stdout()),
                stderr: side(process.take_stderr()),
                began,
            },
            input,
        }
    }

    /// Moves bytes both ways for as long as it is polled.
    pub(crate) async fn forward(&mut self, live: &mut dyn LiveOutput) -> Infallible {
        let input = async {
            if let Some(input) = &mut self.input {
                input.feed().await;
            }
        };
        let output = async {
            let mut is_owed = false;
            loop {
                let pause = async {
                    match is_owed {
                        true => sleep(PAUSE).await,
                        false => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    read = self.output.read() => match read {
                        Some(stream) => {
                            self.output.pass_on(stream, live);
                            live.ready().await;
                            is_owed = true;
                        }
                        None => break,
                    },
                    () = pause => {
                        live.ready().await;
                        is_owed = false;
                    }
                }
            }
            if is_owed {
                sleep(PAUSE).await;
                live.ready().await;
            }
        };
        tokio::join!(input, output);
        std::future::pending().await
    }

    /// Whether both streams end at once, now that the process is dead; what they still hold is passed on.
    pub(super) async fn at_end(&mut self, live: &mut dyn LiveOutput) -> bool {
        let rest = async {
            while let Some(stream) = self.output.read().await {
                self.output.pass_on(stream, live);
            }
        };
        timeout(AT_ONCE, rest).await.is_ok()
    }

    /// Passes on what comes next; false when both streams are at their end. May be dropped while waiting.
    pub(crate) async fn next(&mut self, live: &mut dyn LiveOutput) -> bool {
        match self.output.read().await {
            Some(stream) => {
                self.output.pass_on(stream, live);
                true
            }
            None => false,
        }
    }

    /// How many streams went past their limit, and what went wrong with them.
    pub(crate) fn verdict(&self) -> (u64, Option<String>) {
        let sides = [&self.output.stdout, &self.output.stderr];
        let dropped = sides.iter().filter(|side| side.dropped_at.is_some()).count() as u64;
        (dropped, sides.iter().find_map(|side| side.error.as_ref().map(ToString::to_string)))
    }

    /// Reads to the end of both streams and keeps nothing.
    pub(crate) async fn discard(mut self) {
        for side in [&mut self.output.stdout, &mut self.output.stderr] {
            side.kept = CapturedOutput::default();
        }
        while self.output.read().await.is_some() {
            self.output.stdout.buffer.clear();
            self.output.stderr.buffer.clear();
        }
    }

    /// Reads what a dead process left, to its end.
    pub(super) async fn drain(mut self, live: &mut dyn LiveOutput) -> Kept {
        let rest = async {
            while let Some(stream) = self.output.read().await {
                self.output.pass_on(stream, live);
            }
        };
        let ended = timeout(DRAIN_MAX, rest).await.is_ok();
        let Output { stdout, stderr, .. } = self.output;
        let error = [&stdout, &stderr].iter().find_map(|side| side.error.as_ref().map(ToString::to_string));
        let late = (!ended).then(|| "the output did not end with the sandbox".to_owned());
        Kept {
            dropped_at: [stdout.dropped_at, stderr.dropped_at].into_iter().flatten().collect(),
            stdout: stdout.kept,
            stderr: stderr.kept,
            lost: error.or(late),
            stdin_error: self.input.and_then(|input| input.error).map(|error| error.to_string()),
        }
    }
}

struct Output {
    stdout: Side,
    stderr: Side,
    began: Instant,
}

impl Output {
    /// Reads from whichever stream has something; `None` when both are at their end.
    async fn read(&mut self) -> Option<OutputStream> {
        let Self { stdout, stderr, .. } = self;
        tokio::select! {
            () = stdout.read(), if stdout.open() => Some(OutputStream::Stdout),
            () = stderr.read(), if stderr.open() => Some(OutputStream::Stderr),
            else => None,
        }
    }

    fn pass_on(&mut self, stream: OutputStream, live: &mut dyn LiveOutput) {
        let side = match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        };
        if side.buffer.is_empty() {
            return;
        }
        side.kept.push(&side.buffer, OUTPUT_KEPT_BYTES);
        if side.kept.truncated() && side.dropped_at.is_none() {
            side.dropped_at = Some(self.began.elapsed());
        }
        live.push(stream, &side.buffer);
        side.buffer.clear();
    }
}

/// One output stream.
struct Side {
    reader: Option<Reader>,
    /// What was read last and not passed on yet.
    buffer: Vec<u8>,
    kept: CapturedOutput,
    dropped_at: Option<Duration>,
    error: Option<io::Error>,
    terminal: bool,
}

impl Side {
    fn open(&self) -> bool {
        self.reader.is_some()
    }

    /// Fills the buffer once, or closes. May be dropped while waiting.
    async fn read(&mut self) {
        let Some(reader) = &mut self.reader else { return };
        self.buffer.reserve(READ_BYTES);
        match reader.read_buf(&mut self.buffer).await {
            Ok(0) => self.reader = None,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let hung_up = self.terminal && error.raw_os_error() == Some(EIO);
                self.error = (!hung_up).then_some(error);
                self.reader = None;
            }
        }
    }
}

/// What the process reads.
struct Input {
    source: Reader,
    writer: Option<Writer>,
    terminal: bool,
    error: Option<io::Error>,
}

impl Input {
    async fn feed(&mut self) {
        let Some(writer) = &mut self.writer else { return };
        match tokio::io::copy(&mut self.source, writer).await {
            Ok(_) if self.terminal => {
                // The terminal itself stays open: its output is still to come.
                let _ = writer.write_all(END_OF_TRANSMISSION).await;
                let _ = writer.flush().await;
                return;
            }
            Ok(_) => {
                let _ = writer.shutdown().await;
            }
            // A process may stop reading whenever it likes.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) => self.error = Some(error),
        }
        self.writer = None;
    }
}
