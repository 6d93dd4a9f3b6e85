//! `cofferdam session shell`: the user's terminal, in a session.

use super::super::failure::failure;
use super::super::{block_on, connect};
use crate::args::SessionShellArgs;
use crate::exit::{Failure, by_signal, outcome_code, say};
use crate::host::live::{LiveWriter, sink};
use crate::host::reader::threaded;
use crate::host::signals::Signals;
use crate::host::terminal::{RawMode, window_size};
use cofferdam_api::{Command, ErrorCode, FromProcess, OutputFrame, ProcessRequest, TerminalSize, ToProcess};
use cofferdam_backend::Reader;
use cofferdam_client::{Attached, AttachedEvent, Client, ClientError};
use cofferdam_core::Outcome;
use cofferdam_worker::{LiveOutput, OutputStream, WindowSize};
use std::process::ExitCode;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What runs where nothing is said: bash, where there is one.
const SHELL: &str = "if command -v bash >/dev/null 2>&1; then exec bash -i; else exec sh -i; fi";

/// A connection that breaks is made again so often, with so much time between.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// What Ctrl-C sends.
const INTERRUPT: u8 = 3;

/// Less than the largest message.
const READ_BYTES: usize = 16 << 10;

/// The largest terminal that a session has.
const MAX_SIZE: u16 = 1000;

pub(super) fn shell(args: &SessionShellArgs) -> Result<ExitCode, Failure> {
    if args.remote.json {
        return Err(Failure::new("--json: a terminal has no such form; see session exec for one that has"));
    }
    let client = connect(&args.remote)?;
    block_on(async {
        let number = match args.attach {
            Some(number) => number,
            None => client.process_start(&args.id, &request(args)).await.map_err(failure)?.number,
        };
        let mut terminal = Terminal::open()?;
        let attached = client.process_attach(&args.id, number, 1).await.map_err(failure)?;
        let raw = RawMode::enter()?;
        let shell = Shell { client: &client, session: &args.id, number, next_seq: 1, complained: None };
        let left = shell.run(&mut terminal, attached).await;
        let written = terminal.screen.finish().await;
        drop(raw);
        match left? {
            Left::Ended(outcome) => {
                written?;
                explain(&outcome);
                Ok(ExitCode::from(outcome_code(&outcome, None)))
            }
            Left::By(signal) => {
                say(&format!(
                    "process {number} goes on: cofferdam session shell --attach {number} {}",
                    args.id
                ));
                Ok(ExitCode::from(by_signal(signal)))
            }
        }
    })
}

fn request(args: &SessionShellArgs) -> ProcessRequest {
    let command = match args.command.as_slice() {
        [] => Command::Argv(["/bin/sh", "-c", SHELL].map(str::to_owned).to_vec()),
        words => Command::Argv(words.to_vec()),
    };
    let (command, terminal) = (Some(command), Some(size()));
    ProcessRequest { command, terminal, ..ProcessRequest::default() }
}

fn size() -> TerminalSize {
    let WindowSize { rows, columns } = window_size();
    TerminalSize { rows: rows.min(MAX_SIZE), columns: columns.min(MAX_SIZE) }
}

/// An exit code says how a program ended by itself; anything else is said.
fn explain(outcome: &Outcome) {
    match outcome {
        Outcome::Exited { .. } | Outcome::Signaled { .. } => {}
        Outcome::TimedOut => say("its time was over"),
        Outcome::OomKilled => say("it was killed for want of memory"),
        _ => say("it is gone: its session has ended, or its worker"),
    }
}

/// The user's side.
struct Terminal {
    screen: LiveWriter,
    keys: Option<Reader>,
    sizes: Signal,
    signals: Signals,
}

impl Terminal {
    fn open() -> Result<Self, Failure> {
        Ok(Self {
            screen: LiveWriter::new(sink(std::io::stdout())?, sink(std::io::stderr())?),
            keys: Some(threaded(std::io::stdin())?),
            sizes: signal(SignalKind::window_change())?,
            signals: Signals::listen()?,
        })
    }

    /// The next keys, as many as there are; nothing at the end of input, and then never again.
    async fn keys(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match &mut self.keys {
            Some(keys) => keys.read(buffer).await,
            None => std::future::pending().await,
        }
    }
}

enum Left {
    Ended(Outcome),
    /// The signal that we were asked by.
    By(i32),
}

/// How one connection ended.
enum Turn {
    Left(Left),
    Broken(ClientError),
}

struct Shell<'a> {
    client: &'a Client,
    session: &'a str,
    number: u64,
    next_seq: u64,
    /// The last complaint that was shown: one is enough for many keys.
    complained: Option<String>,
}

impl Shell<'_> {
    async fn run(mut self, terminal: &mut Terminal, first: Attached) -> Result<Left, Failure> {
        let mut attached = first;
        loop {
            let broken = match self.converse(terminal, &mut attached).await? {
                Turn::Left(left) => return Ok(left),
                Turn::Broken(error) => error,
            };
            drop(attached);
            attached = match self.again(terminal, broken).await? {
                Ok(attached) => attached,
                Err(signal) => return Ok(Left::By(signal)),
            };
        }
    }

    /// One connection, from its beginning to its end.
    async fn converse(&mut self, terminal: &mut Terminal, attached: &mut Attached) -> Result<Turn, Failure> {
        let mut buffer = vec![0; READ_BYTES];
        let hang_up = terminal.screen.hang_up();
        let mut sent = resize(attached).await;
        loop {
            if let Err(error) = sent {
                return Ok(Turn::Broken(error));
            }
            let Terminal { sizes, signals, keys, .. } = &mut *terminal;
            let typed = async {
                match keys {
                    Some(keys) => keys.read(&mut buffer).await,
                    None => std::future::pending().await,
                }
            };
            sent = tokio::select! {
                event = attached.next() => match event {
                    Ok(Some(event)) => match self.hear(terminal, event).await? {
                        None => Ok(()),
                        Some(turn) => return Ok(turn),
                    },
                    Ok(None) => return Ok(Turn::Broken(self.cut("the connection was closed"))),
                    Err(error) => return Ok(Turn::Broken(error)),
                },
                count = typed => match count? {
                    0 => {
                        terminal.keys = None;
                        attached.send(&ToProcess::CloseInput {}).await
                    }
                    count => attached.input(&buffer[..count]).await,
                },
                Some(()) = sizes.recv() => resize(attached).await,
                signal = signals.next() => return Ok(Turn::Left(Left::By(signal))),
                () = hang_up.happened() => return Ok(Turn::Left(Left::By(crate::host::signals::SIGPIPE))),
            };
        }
    }

    async fn hear(&mut self, terminal: &mut Terminal, event: AttachedEvent) -> Result<Option<Turn>, Failure> {
        match event {
            AttachedEvent::Output(OutputFrame { seq, is_stderr, bytes }) => {
                self.next_seq = seq.saturating_add(1);
                let stream = if is_stderr { OutputStream::Stderr } else { OutputStream::Stdout };
                terminal.screen.push(stream, &bytes);
                terminal.screen.ready().await;
            }
            AttachedEvent::Said(FromProcess::Exit { process }) => {
                let outcome = process.outcome.unwrap_or(Outcome::Lost);
                return Ok(Some(Turn::Left(Left::Ended(outcome))));
            }
            AttachedEvent::Said(FromProcess::Truncated { .. }) => {
                self.complain(
                    "some of what it wrote came too fast to be kept, and is missing here".to_owned(),
                );
            }
            AttachedEvent::Said(FromProcess::Error { code, message, is_last: true }) => {
                if code == ErrorCode::Unavailable {
                    return Ok(Some(Turn::Broken(self.cut(&message))));
                }
                return Err(Failure::new(message));
            }
            AttachedEvent::Said(FromProcess::Error { message, .. }) => self.complain(message),
            AttachedEvent::Said(FromProcess::Attached { .. }) => {}
        }
        Ok(None)
    }

    /// In raw mode, where the end of a line does not go back to its beginning.
    fn complain(&mut self, message: String) {
        if self.complained.as_ref() != Some(&message) {
            eprint!("\r\n");
            say(&message);
            eprint!("\r");
            self.complained = Some(message);
        }
    }

    fn cut(&self, what: &str) -> ClientError {
        let url = format!("process {} of {}", self.number, self.session);
        ClientError::Strange { url, what: what.to_owned() }
    }

    /// Connects again, from where it was. Until then Ctrl-C reaches nobody but us.
    async fn again(
        &mut self,
        terminal: &mut Terminal,
        why: ClientError,
    ) -> Result<Result<Attached, i32>, Failure> {
        let mut why = why;
        let mut buffer = [0; 64];
        for _ in 0..ATTEMPTS {
            let attempt = async {
                tokio::time::sleep(PAUSE).await;
                self.client.process_attach(self.session, self.number, self.next_seq).await
            };
            let attached = tokio::select! {
                attached = attempt => attached,
                signal = terminal.signals.next() => return Ok(Err(signal)),
            };
            match attached {
                Ok(attached) => return Ok(Ok(attached)),
                // Whoever is refused is not let in by asking again.
                Err(ClientError::Refused(refusal)) if !refusal.retryable => {
                    return Err(failure(ClientError::Refused(refusal)));
                }
                Err(error) => why = error,
            }
            let typed = tokio::time::timeout(Duration::from_millis(1), terminal.keys(&mut buffer)).await;
            if let Ok(Ok(count)) = typed
                && buffer[..count].contains(&INTERRUPT)
            {
                return Ok(Err(crate::host::signals::SIGINT));
            }
        }
        Err(failure(why))
    }
}

async fn resize(attached: &mut Attached) -> Result<(), ClientError> {
    let TerminalSize { rows, columns } = size();
    attached.send(&ToProcess::Resize { rows, columns }).await
}
