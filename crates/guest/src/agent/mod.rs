//! What runs inside: one thread that waits for whatever comes next and never blocks on anything else.
//!
//! It decides nothing, and what is secret passes through it into a file without being kept. Its processes could ask the
//! kernel for all that it does; what they cannot do is end it, read its memory, or speak in its name.

mod channels;
mod files;
mod launch;
mod ports;
mod processes;
mod spare;
mod standstill;
mod stats;
mod watches;

use crate::WORD;
use crate::protocol::{Answer, Ask, Event, Failure, Frame, Frames, Kind, Request, Step, frame, message};
use channels::Channels;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use ports::Ports;
use processes::Processes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use standstill::Standstill;
use std::os::fd::BorrowedFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Past this much that the host has not taken yet, no stream is read on.
const OUT_BUFFER: usize = 1 << 20;

/// How often the count of out-of-memory kills is looked at, where one ends everything.
const MEMORY_EVERY: Duration = Duration::from_millis(200);

/// What a process is put under last, before it becomes the caller's program.
pub type LockDown = fn() -> Result<(), i32>;

/// What the helper was told on its command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether an out-of-memory kill of one process ends all of them.
    pub oom_ends_all: bool,
    /// How long it goes on without hearing from the host, which sends something more often than that.
    pub lost_after: Duration,
}

/// The word of [`Options::oom_ends_all`]; the last word is the number of seconds of [`Options::lost_after`].
const OOM_ENDS_ALL: &str = "oom-ends-all";

impl Options {
    /// The arguments of the helper's command line.
    pub fn arguments(&self) -> Vec<String> {
        let oom = self.oom_ends_all.then(|| OOM_ENDS_ALL.to_owned());
        let seconds = self.lost_after.as_secs().max(1).to_string();
        [WORD.to_owned()].into_iter().chain(oom).chain([seconds]).collect()
    }

    fn parse(arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self { oom_ends_all: false, lost_after: Duration::ZERO };
        for argument in arguments {
            match argument.as_str() {
                OOM_ENDS_ALL => options.oom_ends_all = true,
                seconds => options.lost_after = Duration::from_secs(seconds.parse().ok()?),
            }
        }
        (!options.lost_after.is_zero()).then_some(options)
    }
}

/// Becomes the helper, if the arguments (without the program's name) say so. Does not return before its end.
pub fn run(mut arguments: impl Iterator<Item = String>, lock_down: LockDown) -> Option<ExitCode> {
    if arguments.next()? != WORD {
        return None;
    }
    let first = arguments.next()?;
    if first == launch::WORD {
        return Some(launch::run(lock_down));
    }
    Some(match Options::parse([first].into_iter().chain(arguments)) {
        Some(options) => serve(options),
        None => ExitCode::FAILURE,
    })
}

fn serve(options: Options) -> ExitCode {
    match Agent::new(options).and_then(|mut agent| agent.serve()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(errno) => {
            eprintln!("the helper ends: {errno}");
            ExitCode::FAILURE
        }
    }
}

/// What is sent to the host, as far as it has not taken it.
#[derive(Debug, Default)]
struct Out {
    buffer: Vec<u8>,
    start: usize,
}

impl Out {
    fn len(&self) -> usize {
        self.buffer.len() - self.start
    }

    fn push(&mut self, bytes: Vec<u8>) {
        if self.len() == 0 {
            self.buffer = bytes;
            self.start = 0;
        } else {
            self.buffer.extend_from_slice(&bytes);
        }
    }

    fn event(&mut self, event: &Event) {
        self.push(message(event));
    }

    fn reply(&mut self, number: u32, result: Result<Answer, Failure>) {
        self.event(&Event::Reply { number, result });
    }

    fn signal(&mut self, kind: Kind, channel: u32) {
        self.push(frame(kind, channel, &[]));
    }

    fn flush(&mut self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        while self.len() > 0 {
            match rustix::io::write(fd, &self.buffer[self.start..]) {
                Ok(written) => self.start += written,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        self.buffer = Vec::new();
        self.start = 0;
        Ok(())
    }
}

struct Agent {
    out: Out,
    frames: Frames,
    children: SignalFd,
    channels: Channels,
    processes: Processes,
    ports: Ports,
    standstill: Standstill,
    lost_after: Duration,
    heard: Instant,
}

/// Who a descriptor belongs to in the list that is polled.
#[derive(Debug, Clone, Copy)]
enum Owner {
    Host,
    HostOut,
    Children,
    Launch(u32),
    Spare,
    Source(u32),
    Sink(u32),
    Connecting(u32),
    Listener(u32),
}

fn errno_of(error: nix::errno::Errno) -> Errno {
    Errno::from_raw_os_error(error as i32)
}

impl Agent {
    fn new(options: Options) -> Result<Self, Errno> {
        // Nobody of the same user reads its memory or takes its descriptors.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        mask.thread_block().map_err(errno_of)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let children = SignalFd::with_flags(&mask, flags).map_err(errno_of)?;
        for fd in [rustix::stdio::stdin(), rustix::stdio::stdout()] {
            fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)?;
        }
        // Where every process begins, until it is told where to go.
        rustix::process::chdir("/")?;
        files::prepare()?;
        Ok(Self {
            out: Out::default(),
            frames: Frames::default(),
            children,
            channels: Channels::default(),
            processes: Processes::new(options),
            ports: Ports::default(),
            standstill: Standstill::default(),
            lost_after: options.lost_after,
            heard: Instant::now(),
        })
    }

    fn serve(&mut self) -> Result<(), Errno> {
        self.out.event(&Event::Ready);
        self.out.flush(rustix::stdio::stdout())?;
        self.processes.make_spare();
        loop {
            self.out.flush(rustix::stdio::stdout())?;
            self.processes.look_at_memory();
            for (owner, flags) in self.wait()? {
                match owner {
                    Owner::Host => {
                        if !self.read_host()? {
                            return Ok(());
                        }
                    }
                    Owner::HostOut => self.out.flush(rustix::stdio::stdout())?,
                    Owner::Children => {
                        while let Ok(Some(_)) = self.children.read_signal() {}
                        self.processes.reap(&mut self.channels, &mut self.out);
                    }
                    Owner::Launch(process) => self.processes.launched(process, &mut self.out),
                    Owner::Spare => self.processes.listen_to_spare(&mut self.channels, &mut self.out),
                    Owner::Source(channel) => self.channels.read(channel, &mut self.out),
                    Owner::Sink(channel) => {
                        let broken = flags.contains(PollFlags::ERR) && !flags.contains(PollFlags::OUT);
                        self.channels.write(channel, broken, &mut self.out);
                    }
                    Owner::Connecting(channel) => {
                        self.ports.connected(channel, &mut self.channels, &mut self.out)
                    }
                    Owner::Listener(listener) => {
                        self.ports.accept(listener, &mut self.channels, &mut self.out)
                    }
                }
            }
        }
    }

    /// Waits until somebody has something to do.
    fn wait(&self) -> Result<Vec<(Owner, PollFlags)>, Errno> {
        let mut owners = vec![(Owner::Host, rustix::stdio::stdin(), PollFlags::IN)];
        if self.out.len() > 0 {
            owners.push((Owner::HostOut, rustix::stdio::stdout(), PollFlags::OUT));
        }
        owners.push((Owner::Children, std::os::fd::AsFd::as_fd(&self.children), PollFlags::IN));
        owners.extend(self.processes.launching().map(|(id, fd)| (Owner::Launch(id), fd, PollFlags::IN)));
        owners.extend(self.processes.spare().map(|fd| (Owner::Spare, fd, PollFlags::IN)));
        if self.out.len() < OUT_BUFFER {
            owners.extend(self.channels.sources().map(|(id, fd)| (Owner::Source(id), fd, PollFlags::IN)));
        }
        owners.extend(self.channels.sinks().map(|(id, fd, wanted)| (Owner::Sink(id), fd, wanted)));
        owners.extend(self.ports.connecting().map(|(id, fd)| (Owner::Connecting(id), fd, PollFlags::OUT)));
        owners.extend(self.ports.listeners().map(|(id, fd)| (Owner::Listener(id), fd, PollFlags::IN)));
        let mut fds: Vec<PollFd<'_>> =
            owners.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        let wait = match self.processes.watches_memory() {
            true => MEMORY_EVERY,
            false => self.lost_after,
        };
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        match poll(&mut fds, Some(&wait)) {
            // Nothing at all for so long: whoever made this is gone without a word.
            Ok(0) if self.heard.elapsed() >= self.lost_after => return Err(Errno::TIMEDOUT),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let ready = owners.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|((owner, ..), fd)| (*owner, fd.revents())).collect())
    }

    /// Takes what the host sent; `false` at its end.
    fn read_host(&mut self) -> Result<bool, Errno> {
        let mut buffer = [0; 64 << 10];
        let read = match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
            Ok(0) => return Ok(false),
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(true),
            Err(errno) => return Err(errno),
        };
        self.heard = Instant::now();
        self.frames.push(&buffer[..read]);
        while let Some(frame) = self.frames.take().map_err(|_| Errno::PROTO)? {
            self.take(frame);
        }
        Ok(true)
    }

    fn take(&mut self, frame: Frame) {
        let Frame { kind, channel, content } = frame;
        if kind == Kind::Message {
            if let Ok(request) = serde_json::from_slice(&content) {
                self.answer(request);
            }
            return;
        }
        if !self.channels.take_file(kind, channel, &content, &mut self.out) {
            self.channels.take(kind, channel, content, &mut self.out);
        }
    }

    fn answer(&mut self, Request { number, ask }: Request) {
        let done = |result: Result<(), Failure>| result.map(|()| Answer::Done);
        let file = |errno: Errno| Failure { step: Step::File, errno: errno.raw_os_error() };
        let prepare = |errno: Errno| Failure { step: Step::Prepare, errno: errno.raw_os_error() };
        let result = match ask {
            Ask::Start(start) => {
                return self.processes.start(number, start, &mut self.channels, &mut self.out);
            }
            Ask::Look => return self.processes.look(number, &mut self.out),
            Ask::Signal { process, signal } => done(self.processes.signal(process, signal)),
            Ask::Resize { process, rows, columns } => done(self.processes.resize(process, rows, columns)),
            Ask::Read { channel, path } => match files::open(&path) {
                Ok(fd) => {
                    self.out.reply(number, Ok(Answer::Done));
                    self.channels.add_source(channel, fd.into());
                    return;
                }
                Err(errno) => Err(file(errno)),
            },
            Ask::Write { channel, path, mode, modified_ms } => {
                match files::NewFile::create(&path, mode, modified_ms) {
                    Ok(new) => return self.channels.add_file(channel, number, new),
                    Err(errno) => Err(file(errno)),
                }
            }
            Ask::MakeFolder { path } => done(files::make_folder(&path).map_err(file)),
            Ask::List { path, limit } => files::list(&path, limit).map(Answer::Entries).map_err(file),
            Ask::Stat { path } => files::stat(&path).map(Answer::Stat).map_err(file),
            Ask::Remove { path, is_folder } => done(files::remove(&path, is_folder).map_err(file)),
            Ask::Rename { from, to } => done(files::rename(&from, &to).map_err(file)),
            Ask::SetMode { path, mode } => done(files::set_mode(&path, mode).map_err(file)),
            Ask::RestoreFolder { path, mode, modified_ms } => {
                done(files::restore_folder(&path, mode, modified_ms).map_err(file))
            }
            Ask::MakeLink { path, target } => done(files::make_link(&path, &target).map_err(file)),
            Ask::ReadLink { path } => files::read_link(&path).map(Answer::Link).map_err(file),
            Ask::Watch { channel } => {
                done(watches::start().map(|fd| self.channels.add_events(channel, fd)).map_err(file))
            }
            Ask::WatchFolder { channel, path } => {
                let watch = self.channels.events(channel).and_then(|events| watches::add(events, &path));
                watch.map(Answer::Watch).map_err(file)
            }
            Ask::UnwatchFolder { channel, watch } => {
                let events = self.channels.events(channel);
                done(events.and_then(|events| watches::remove(events, watch)).map_err(file))
            }
            Ask::WatchIsEmpty { channel } => {
                self.channels.events(channel).and_then(watches::is_empty).map(Answer::IsEmpty).map_err(file)
            }
            Ask::Connect { channel, port } => {
                return self.ports.connect(number, channel, port, &mut self.out);
            }
            Ask::Listen { listener, port } => done(self.ports.listen(listener, port)),
            Ask::Unlisten { listener } => {
                self.ports.unlisten(listener);
                Ok(Answer::Done)
            }
            Ask::EndAll => {
                self.processes.end_all();
                Ok(Answer::Done)
            }
            Ask::Stop => self.standstill.stop().map(|but| Answer::Stopped { but }).map_err(prepare),
            Ask::GoOn => done(self.standstill.go_on().map_err(prepare)),
            Ask::Stats => Ok(Answer::Stats(stats::counted())),
        };
        self.out.reply(number, result);
    }
}
