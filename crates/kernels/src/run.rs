//! One cell, from its code to its end.

use crate::cell::{Cell, CellEnd, CellOutcome, CellSink, Stream};
use crate::error::KernelError;
use crate::frame::{End, Frame};
use crate::kernel::{Kernel, SIGINT};
use crate::output::Output;
use crate::programs::Start;
use crate::{random, request};
use cofferdam_backend::ExitStatus;
use cofferdam_core::Outcome;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};

/// What one cell may show. People look at a few of them.
const RESULTS_MAX: usize = 1000;
const RESULTS_MAX_BYTES: usize = 64 << 20;

/// When a kernel has said that a cell ended, its output has been written; it only has to be read.
const SETTLE_MAX: Duration = Duration::from_secs(5);

/// What is left in the pipes of a dead process comes at once, unless something of it lives on and holds them.
const QUIET: Duration = Duration::from_millis(100);

/// An interrupt that was lost is not worth waiting longer for.
const REPEAT_AFTER: Duration = Duration::from_secs(1);

const READ_BYTES: usize = 16 << 10;

/// Why a cell is being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopping {
    Asked,
    TimedOut,
}

impl Stopping {
    fn outcome(self, state_kept: bool) -> CellOutcome {
        match self {
            Self::Asked => CellOutcome::Interrupted { state_kept },
            Self::TimedOut => CellOutcome::TimedOut { state_kept },
        }
    }
}

/// How the conversation about a cell came to its end.
enum Verdict {
    Ended(End),
    Gone(ExitStatus),
    /// It was asked to stop and did not.
    Stuck,
    Lied(String),
}

impl Kernel {
    /// Runs a cell to its end. Everything that it writes and shows goes to the sink as it comes.
    ///
    /// A future that is dropped before its end leaves a kernel of which nothing is known: it is over.
    pub async fn run(&mut self, cell: Cell, sink: &mut dyn CellSink) -> Result<CellEnd, KernelError> {
        request::check(&cell)?;
        if !std::mem::replace(&mut self.is_sound, false) {
            return Err(KernelError::Over);
        }
        self.count += 1;
        let token = random::token()?;
        let marker = format!("\x1e{token}\x1e");
        let dropped = [&mut self.stdout, &mut self.stderr].map(|output| output.begin(marker.as_bytes()));
        for bytes in dropped.into_iter().filter(|bytes| *bytes > 0) {
            let note = format!("[{bytes} bytes that were written before this cell were dropped]\n");
            sink.output(Stream::Stderr, note.as_bytes());
        }
        self.interrupter.begin();
        let (verdict, stopping) = self.converse(&cell, &marker, sink).await;
        self.interrupter.end();
        let end = self.conclude(verdict, stopping, sink).await;
        self.stdout.end();
        self.stderr.end();
        Ok(end)
    }

    async fn converse(
        &mut self,
        cell: &Cell,
        marker: &str,
        sink: &mut dyn CellSink,
    ) -> (Verdict, Option<Stopping>) {
        let mut message = request::run(cell, self.language, marker, self.count);
        let mut sent = 0;
        let mut stopping = None;
        let mut again: Option<Instant> = None;
        let mut is_repeated = false;
        let mut deadline = cell.timeout.map(|limit| Instant::now() + limit);
        let mut ended: Option<End> = None;
        let mut shown = Shown::default();
        let mut buffer = vec![0; READ_BYTES];
        let program = self.language.program();
        if let (Start::Lines { line, .. }, Some(lines)) = (&program.start, &mut self.lines) {
            // A pipe takes a line at once; a shell that has ended is noticed below.
            let _ = timeout(SETTLE_MAX, lines.write_all(line.as_bytes())).await;
        }
        let process = &self.process;
        let wait = process.wait();
        tokio::pin!(wait);
        loop {
            // Behind its end there is what belongs to the next cell.
            while ended.is_none() {
                match self.frames.next_frame() {
                    Ok(Some(Frame::Shown(result))) => match shown.add(&result) {
                        Ok(()) => sink.display(result),
                        Err(text) => return (Verdict::Lied(text), stopping),
                    },
                    Ok(Some(Frame::End(end))) => {
                        ended = Some(end);
                        deadline = Some(Instant::now() + SETTLE_MAX);
                    }
                    Ok(Some(Frame::Ready { .. })) => {
                        return (Verdict::Lied("it is ready in the midst of a cell".to_owned()), stopping);
                    }
                    Err(error) => return (Verdict::Lied(error.to_string()), stopping),
                    Ok(None) => break,
                }
            }
            forward(&mut self.stdout, Stream::Stdout, sink);
            forward(&mut self.stderr, Stream::Stderr, sink);
            if let Some(end) = ended.take_if(|_| self.stdout.is_done() && self.stderr.is_done()) {
                return (Verdict::Ended(end), stopping);
            }
            let until = deadline;
            tokio::select! {
                biased;
                read = self.answers.read(&mut buffer), if ended.is_none() => match read {
                    Ok(n @ 1..) => self.frames.push(&buffer[..n]),
                    // The process has ended, or has closed what it must not: one of them is told.
                    _ => {
                        let status = timeout(QUIET, &mut wait).await;
                        return match status {
                            Ok(status) => (Verdict::Gone(status.unwrap_or(ExitStatus::Lost)), stopping),
                            Err(_) => (Verdict::Lied("it closed the connection".to_owned()), stopping),
                        };
                    }
                },
                written = self.requests.write(&message[sent..]), if sent < message.len() => match written {
                    Ok(n) => sent += n,
                    // What it has said before is read first, and how it ended.
                    Err(_) => sent = message.len(),
                },
                () = self.stdout.filled() => {}
                () = self.stderr.filled() => {}
                status = &mut wait => {
                    return (Verdict::Gone(status.unwrap_or(ExitStatus::Lost)), stopping);
                }
                () = self.interrupter.asked(), if stopping.is_none() && ended.is_none() => {
                    stopping = Some(Stopping::Asked);
                }
                // The first may have come just before a call that waits, which would not notice.
                () = at(again), if !is_repeated && again.is_some() => {
                    is_repeated = true;
                    let _ = process.signal(SIGINT).await;
                    if let (Start::Lines { again, .. }, Some(lines)) = (&program.start, &mut self.lines) {
                        let _ = timeout(QUIET, lines.write_all(again.as_bytes())).await;
                    }
                }
                () = at(until) => match (&ended, stopping) {
                    // The rest of its output never came.
                    (Some(_), _) => return (Verdict::Ended(ended.unwrap_or_default()), stopping),
                    (None, Some(_)) => return (Verdict::Stuck, stopping),
                    (None, None) => stopping = Some(Stopping::TimedOut),
                },
            }
            if let (Some(_), None) = (stopping, again) {
                deadline = Some(Instant::now() + self.grace);
                again = Some(Instant::now() + REPEAT_AFTER.min(self.grace / 2));
                if program.hears_interrupts {
                    message.extend(request::interrupt());
                }
                let _ = process.signal(SIGINT).await;
            }
        }
    }

    async fn conclude(
        &mut self,
        verdict: Verdict,
        stopping: Option<Stopping>,
        sink: &mut dyn CellSink,
    ) -> CellEnd {
        let end =
            |outcome, error, exit_code| CellEnd { execution_count: self.count, outcome, error, exit_code };
        if let Verdict::Ended(said) = verdict {
            self.is_sound = true;
            // What it raised after it was asked to stop, it raised because of that.
            let gave_in = said.interrupted || said.error.is_some();
            let outcome = match (stopping, &said.error) {
                (Some(Stopping::TimedOut), _) => CellOutcome::TimedOut { state_kept: true },
                (Some(Stopping::Asked), _) if gave_in => CellOutcome::Interrupted { state_kept: true },
                (_, Some(_)) => CellOutcome::Raised,
                (_, None) => CellOutcome::Completed,
            };
            return end(outcome, said.error, said.exit_code);
        }
        let outcome = match (verdict, stopping) {
            (Verdict::Gone(_), Some(stopping)) => stopping.outcome(false),
            (Verdict::Stuck, stopping) => {
                self.kill().await;
                stopping.unwrap_or(Stopping::Asked).outcome(false)
            }
            (Verdict::Lied(text), _) => {
                self.kill().await;
                let cause = Outcome::Failed { code: "kernel_protocol".to_owned(), message: text };
                CellOutcome::Died { cause }
            }
            (Verdict::Gone(status), None) => CellOutcome::Died { cause: self.cause(status).await },
            (Verdict::Ended(_), _) => unreachable!("it has been returned"),
        };
        self.drain(sink).await;
        CellEnd { execution_count: self.count, outcome, error: None, exit_code: None }
    }

    /// Takes what a process that is gone has left in its pipes.
    async fn drain(&mut self, sink: &mut dyn CellSink) {
        let until = Instant::now() + SETTLE_MAX;
        loop {
            let taken = forward(&mut self.stdout, Stream::Stdout, sink)
                + forward(&mut self.stderr, Stream::Stderr, sink);
            let has_ended = self.stdout.has_ended() && self.stderr.has_ended();
            if (has_ended && taken == 0) || Instant::now() >= until {
                return;
            }
            let (stdout, stderr) = (&self.stdout, &self.stderr);
            let more = async {
                tokio::select! {
                    () = stdout.filled() => {}
                    () = stderr.filled() => {}
                }
            };
            if taken == 0 && timeout(QUIET, more).await.is_err() {
                return;
            }
        }
    }
}

fn forward(output: &mut Output, stream: Stream, sink: &mut dyn CellSink) -> usize {
    let bytes = output.take();
    if !bytes.is_empty() {
        sink.output(stream, &bytes);
    }
    bytes.len()
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// What a cell has shown so far.
#[derive(Default)]
struct Shown {
    count: usize,
    bytes: usize,
}

impl Shown {
    fn add(&mut self, result: &crate::cell::RichResult) -> Result<(), String> {
        self.count += 1;
        self.bytes += result.data.iter().map(|(kind, text)| kind.len() + text.len()).sum::<usize>();
        if self.count > RESULTS_MAX || self.bytes > RESULTS_MAX_BYTES {
            return Err(format!("a cell shows at most {RESULTS_MAX} results of {RESULTS_MAX_BYTES} bytes"));
        }
        Ok(())
    }
}
