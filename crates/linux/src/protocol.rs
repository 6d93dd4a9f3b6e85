//! What the host and a sandbox's init say to each other. Init reads with fixed buffers and no allocation; the
//! host takes nothing that init says on trust beyond what the kernel would let it do anyway.

use crate::ControlSet;
use crate::stage::Stage;
use crate::sys::Result;
use crate::wire::{Decoder, Encoder, MALFORMED};
use std::ffi::CStr;

/// The most arguments and variables that one process gets, together.
pub const MAX_STRINGS: usize = 32 << 10;

/// The most bytes that they take: what the kernel takes with the usual stack limit. A request larger than a
/// message of the socket comes as a file.
pub const MAX_START_BYTES: usize = 2 << 20;

/// The most names that are opened by one request: each has a descriptor in the answer.
pub const MAX_OPENED: usize = 64;
const _: () = assert!(MAX_OPENED <= crate::socket::MAX_FDS);

/// What the host asks of init.
#[derive(Debug)]
pub enum Request<'m> {
    Start(StartRequest<'m>),
    /// The group that processes join; comes with the descriptors for it, the out-of-memory event last if any.
    Group {
        kind: GroupKind,
        watches_oom: bool,
    },
    /// A start request that is in a file, because it is larger than a message.
    StartFrom,
    /// Puts every wall up around a process that then ends, to prove them.
    Probe {
        process: u32,
    },
    Signal {
        process: u32,
        signal: i32,
    },
    /// A stream socket of the sandbox's network namespace.
    Socket {
        request: u32,
        family: i32,
    },
    /// Opens a path inside as the sandbox user; no link is followed on the way.
    Open {
        request: u32,
        flags: i32,
        mode: u32,
        make_parents: bool,
        path: &'m CStr,
    },
    /// Opens names of one folder, each as `Open` does a path. The answer has the descriptors of those that could be
    /// opened, in their order, and the error of the next one.
    OpenEach {
        request: u32,
        flags: i32,
        folder: &'m CStr,
        names: Names<'m>,
    },
    MakeFolder {
        request: u32,
        path: &'m CStr,
    },
    /// Removes a plain file or a link, or a folder that is empty.
    Remove {
        request: u32,
        is_folder: bool,
        path: &'m CStr,
    },
    /// Gives something another name; what has that name already is replaced. Parents are made.
    Rename {
        request: u32,
        from: &'m CStr,
        to: &'m CStr,
    },
    /// Sets the permission bits of a plain file or a folder.
    SetMode {
        request: u32,
        mode: u32,
        path: &'m CStr,
    },
    /// Makes a link. Where it leads is not looked at: nothing here follows it.
    Link {
        request: u32,
        path: &'m CStr,
        target: &'m CStr,
    },
    /// An inotify instance that counts as the sandbox's own. It watches nothing yet.
    Watch {
        request: u32,
    },
    /// Lists a folder into a file in memory, which comes with the answer; see `ListedEntry`.
    List {
        request: u32,
        limit: u32,
        /// Whether extended attributes are looked at as well.
        is_close: bool,
        path: &'m CStr,
    },
    Stop,
}

/// A process to start.
#[derive(Debug)]
pub struct StartRequest<'m> {
    pub process: u32,
    pub stdio: StdioRequest,
    pub make_cwd: bool,
    pub cwd: &'m CStr,
    pub argc: u32,
    pub envc: u32,
    /// `argc` arguments, then `envc` variables.
    pub strings: Strings<'m>,
}

/// How a process joins its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    /// By writing to each descriptor.
    Tasks,
    /// By being cloned into the folder.
    Folder,
}

/// How a process is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdioRequest {
    /// Without one, stdin is at its end.
    Pipes {
        stdin: bool,
    },
    Terminal {
        rows: u16,
        columns: u16,
    },
}

/// The strings of a start request, read one by one where they lie.
#[derive(Debug)]
pub struct Strings<'m>(Decoder<'m>);

impl<'m> Strings<'m> {
    pub fn next_text(&mut self) -> Result<&'m CStr> {
        self.0.text()
    }

    pub fn end(self) -> Result<()> {
        self.0.end()
    }
}

/// The names of a request to open several, each with the mode that it gets where it is made.
#[derive(Debug)]
pub struct Names<'m>(Decoder<'m>);

impl<'m> Names<'m> {
    pub fn next_name(&mut self) -> Result<Option<(u32, &'m CStr)>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        Ok(Some((self.0.u32()?, self.0.text()?)))
    }
}

const START: u32 = 1;
const SIGNAL: u32 = 2;
const SOCKET: u32 = 3;
const OPEN: u32 = 4;
const MAKE_FOLDER: u32 = 5;
const STOP: u32 = 6;
const PROBE: u32 = 7;
const START_FROM: u32 = 8;
const GROUP: u32 = 9;
const LIST: u32 = 10;
const REMOVE: u32 = 11;
const RENAME: u32 = 12;
const SET_MODE: u32 = 13;
const LINK: u32 = 14;
const WATCH: u32 = 15;
const OPEN_EACH: u32 = 16;

impl<'m> Request<'m> {
    pub fn decode(message: &'m [u8]) -> Result<Self> {
        let mut d = Decoder::new(message);
        let request = match d.u32()? {
            START => return decode_start(d).map(Self::Start),
            SIGNAL => Self::Signal { process: d.u32()?, signal: d.i32()? },
            SOCKET => Self::Socket { request: d.u32()?, family: d.i32()? },
            OPEN => Self::Open {
                request: d.u32()?,
                flags: d.i32()?,
                mode: d.u32()?,
                make_parents: d.u32()? != 0,
                path: d.text()?,
            },
            OPEN_EACH => {
                let (request, flags, folder) = (d.u32()?, d.i32()?, d.text()?);
                return Ok(Self::OpenEach { request, flags, folder, names: Names(d) });
            }
            LIST => {
                Self::List { request: d.u32()?, limit: d.u32()?, is_close: d.u32()? != 0, path: d.text()? }
            }
            REMOVE => Self::Remove { request: d.u32()?, is_folder: d.u32()? != 0, path: d.text()? },
            RENAME => Self::Rename { request: d.u32()?, from: d.text()?, to: d.text()? },
            SET_MODE => Self::SetMode { request: d.u32()?, mode: d.u32()?, path: d.text()? },
            LINK => Self::Link { request: d.u32()?, path: d.text()?, target: d.text()? },
            WATCH => Self::Watch { request: d.u32()? },
            MAKE_FOLDER => Self::MakeFolder { request: d.u32()?, path: d.text()? },
            STOP => Self::Stop,
            START_FROM => Self::StartFrom,
            GROUP => {
                let kind = match d.u32()? {
                    0 => GroupKind::Tasks,
                    1 => GroupKind::Folder,
                    _ => return Err(MALFORMED),
                };
                Self::Group { kind, watches_oom: d.u32()? != 0 }
            }
            PROBE => Self::Probe { process: d.u32()? },
            _ => return Err(MALFORMED),
        };
        d.end().map(|()| request)
    }
}

const PIPES: u32 = 0;
const PIPES_WITH_STDIN: u32 = 1;
const TERMINAL: u32 = 2;

fn decode_start(mut d: Decoder<'_>) -> Result<StartRequest<'_>> {
    let process = d.u32()?;
    let kind = d.u32()?;
    let (rows, columns) = (d.u32()? as u16, d.u32()? as u16);
    let stdio = match kind {
        PIPES => StdioRequest::Pipes { stdin: false },
        PIPES_WITH_STDIN => StdioRequest::Pipes { stdin: true },
        TERMINAL => StdioRequest::Terminal { rows, columns },
        _ => return Err(MALFORMED),
    };
    let make_cwd = d.u32()? != 0;
    let cwd = d.text()?;
    let (argc, envc) = (d.u32()?, d.u32()?);
    let fits = argc.checked_add(envc).is_some_and(|sum| sum as usize <= MAX_STRINGS);
    if argc == 0 || !fits {
        return Err(MALFORMED);
    }
    Ok(StartRequest { process, stdio, make_cwd, cwd, argc, envc, strings: Strings(d) })
}

/// Encodes a start request.
pub fn encode_start<'b>(
    buffer: &'b mut [u8],
    process: u32,
    stdio: StdioRequest,
    make_cwd: bool,
    cwd: &str,
    argv: &[String],
    env: &[(String, String)],
) -> Result<&'b [u8]> {
    let (kind, rows, columns) = match stdio {
        StdioRequest::Pipes { stdin: false } => (PIPES, 0, 0),
        StdioRequest::Pipes { stdin: true } => (PIPES_WITH_STDIN, 0, 0),
        StdioRequest::Terminal { rows, columns } => (TERMINAL, rows, columns),
    };
    let mut e = Encoder::new(buffer);
    e.u32(START).u32(process).u32(kind).u32(rows.into()).u32(columns.into());
    e.u32(make_cwd.into()).text(cwd.as_bytes()).u32(argv.len() as u32).u32(env.len() as u32);
    for arg in argv {
        e.text(arg.as_bytes());
    }
    for (name, value) in env {
        e.text(format!("{name}={value}").as_bytes());
    }
    e.finish()
}

pub fn encode_group(buffer: &mut [u8], kind: GroupKind, watches_oom: bool) -> Result<&[u8]> {
    let mut e = Encoder::new(buffer);
    e.u32(GROUP).u32(kind as u32).u32(watches_oom.into());
    e.finish()
}

pub fn encode_start_from(buffer: &mut [u8]) -> Result<&[u8]> {
    let mut e = Encoder::new(buffer);
    e.u32(START_FROM);
    e.finish()
}

pub fn encode_probe(buffer: &mut [u8], process: u32) -> Result<&[u8]> {
    let mut e = Encoder::new(buffer);
    e.u32(PROBE).u32(process);
    e.finish()
}

pub fn encode_signal(buffer: &mut [u8], process: u32, signal: i32) -> Result<&[u8]> {
    let mut e = Encoder::new(buffer);
    e.u32(SIGNAL).u32(process).i32(signal);
    e.finish()
}

pub fn encode_socket(buffer: &mut [u8], request: u32, family: i32) -> Result<&[u8]> {
    let mut e = Encoder::new(buffer);
    e.u32(SOCKET).u32(request).i32(family);
    e.finish()
}

pub fn encode_open<'b>(
    buffer: &'b mut [u8],
    request: u32,
    flags: i32,
    mode: u32,
    make_parents: bool,
    path: &str,
) -> Result<&'b [u8]> {
    let mut e = Encoder::new(buffer);
    e.u32(OPEN).u32(request).i32(flags).u32(mode).u32(make_parents.into()).text(path.as_bytes());
    e.finish()
}

pub fn encode_open_each<'b, 'n>(
    buffer: &'b mut [u8],
    request: u32,
    flags: i32,
    folder: &str,
    names: impl Iterator<Item = (u32, &'n str)>,
) -> Result<&'b [u8]> {
    let mut e = Encoder::new(buffer);
    e.u32(OPEN_EACH).u32(request).i32(flags).text(folder.as_bytes());
    for (mode, name) in names {
        e.u32(mode).text(name.as_bytes());
    }
    e.finish()
}

pub fn encode_make_folder<'b>(buffer: &'b mut [u8], request: u32, path: &str) -> Result<&'b [u8]> {
    let mut e = Encoder::new(buffer);
    e.u32(MAKE_FOLDER).u32(request).text(path.as_bytes());
    e.finish()
}

pub fn encode_remove<'b>(
    buffer: &'b mut [u8],
    request: u32,
    is_folder: bool,
    path: &str,
) -> Result<&'b [u8]> {
    let mut e = Encoder::new(buffer);
    e.u32(REMOVE).u32(request).u32(is_folder.into()).text(path.as_bytes());
    e.finish()
}

pub fn encode_rename<'b>(buffer: &'b mut [u8], request: u32, from: &str, to: &str) -> Result<&'b [u8]> {
    let mut e = Encoder::new(buffer);
    e.u32(RENAME).u32(request).text(from.as_bytes()).text(to.as_bytes());
    e.finish()
}

pub fn encode_set_mode<'b>(buffer: &'b mut [u8], request: u32, mode: u32, path: &str) -> Result<&'b [u8]> {
    let mut e = Encoder::new(buffer);
    e.u32(SET_MODE).u32(request).u32(mode).text(path.as_bytes());
    e.finish()
}

pub fn encode_link<'b>(buffer: &'b mut [u8], request: u32, path: &str, target: &[u8]) -> Result<&'b [u8]> {
    let mut e = Encoder::new(buffer);
    e.u32(LINK).u32(request).text(path.as_bytes()).text(target);
    e.finish()
}

pub fn encode_watch(buffer: &mut [u8], request: u32) -> Result<&[u8]> {
    let mut e = Encoder::new(buffer);
    e.u32(WATCH).u32(request);
    e.finish()
}

pub fn encode_list<'b>(
    buffer: &'b mut [u8],
    request: u32,
    limit: u32,
    is_close: bool,
    path: &str,
) -> Result<&'b [u8]> {
    let mut e = Encoder::new(buffer);
    e.u32(LIST).u32(request).u32(limit).u32(is_close.into()).text(path.as_bytes());
    e.finish()
}

/// One entry of a folder.
#[derive(Debug, PartialEq, Eq)]
pub struct ListedEntry<'m> {
    pub mode: u32,
    pub size_bytes: u64,
    /// How many names it has.
    pub links: u32,
    /// Whether it has extended attributes of a user's. Only known where it was looked at closely.
    pub has_attributes: bool,
    pub name: &'m CStr,
}

/// The longest name and the numbers before it.
pub const LISTED_ENTRY_BYTES: usize = 4 + 8 + 4 + 4 + 4 + 256;

impl<'m> ListedEntry<'m> {
    pub fn encode<'b>(&self, buffer: &'b mut [u8; LISTED_ENTRY_BYTES]) -> Result<&'b [u8]> {
        let mut e = Encoder::new(buffer);
        e.u32(self.mode).u64(self.size_bytes).u32(self.links).u32(self.has_attributes.into());
        e.text(self.name.to_bytes());
        e.finish()
    }

    /// Reads every entry of a listing. The names are the guest's, the rest is the kernel's.
    pub fn decode_all(listing: &'m [u8]) -> Result<Vec<Self>> {
        let mut d = Decoder::new(listing);
        let mut entries = Vec::new();
        while !d.is_empty() {
            entries.push(Self {
                mode: d.u32()?,
                size_bytes: d.u64()?,
                links: d.u32()?,
                has_attributes: match d.u32()? {
                    0 => false,
                    1 => true,
                    _ => return Err(MALFORMED),
                },
                name: d.text()?,
            });
        }
        Ok(entries)
    }
}

/// What init tells the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The sandbox stands, with these controls proven. Comes with its /workspace.
    Ready { controls: ControlSet },
    /// It could not be made; init ends.
    Failed { stage: Stage, errno: i32, missing: ControlSet },
    /// The process runs. A terminal's master comes along, or the host's ends of stdout, stderr and stdin.
    Started { process: u32, controls: ControlSet },
    /// It could not be started.
    NotStarted { process: u32, stage: Stage, errno: i32, missing: ControlSet },
    /// The wait status, as the kernel gave it.
    Exited { process: u32, status: i32 },
    /// The kernel said that the group is out of memory; init has ended every process for it.
    OutOfMemory,
    /// The answer to a request, with a descriptor where the error number is 0; see also `OpenEach`.
    Reply { request: u32, errno: i32 },
}

const READY: u32 = 101;
const FAILED: u32 = 102;
const STARTED: u32 = 103;
const NOT_STARTED: u32 = 104;
const EXITED: u32 = 105;
const REPLY: u32 = 106;
const OUT_OF_MEMORY: u32 = 107;

/// The largest event.
pub const EVENT_BYTES: usize = 64;

impl Event {
    pub fn encode(self, buffer: &mut [u8; EVENT_BYTES]) -> Result<&[u8]> {
        let mut e = Encoder::new(buffer);
        match self {
            Self::Ready { controls } => e.u32(READY).u64(controls.0),
            Self::Failed { stage, errno, missing } => {
                e.u32(FAILED).u32(stage as u32).i32(errno).u64(missing.0)
            }
            Self::Started { process, controls } => e.u32(STARTED).u32(process).u64(controls.0),
            Self::NotStarted { process, stage, errno, missing } => {
                e.u32(NOT_STARTED).u32(process).u32(stage as u32).i32(errno).u64(missing.0)
            }
            Self::Exited { process, status } => e.u32(EXITED).u32(process).i32(status),
            Self::OutOfMemory => e.u32(OUT_OF_MEMORY),
            Self::Reply { request, errno } => e.u32(REPLY).u32(request).i32(errno),
        };
        e.finish()
    }

    pub fn decode(message: &[u8]) -> Result<Self> {
        let mut d = Decoder::new(message);
        let stage = |number| Stage::from_number(number).ok_or(MALFORMED);
        let event = match d.u32()? {
            READY => Self::Ready { controls: ControlSet(d.u64()?) },
            FAILED => {
                Self::Failed { stage: stage(d.u32()?)?, errno: d.i32()?, missing: ControlSet(d.u64()?) }
            }
            STARTED => Self::Started { process: d.u32()?, controls: ControlSet(d.u64()?) },
            NOT_STARTED => Self::NotStarted {
                process: d.u32()?,
                stage: stage(d.u32()?)?,
                errno: d.i32()?,
                missing: ControlSet(d.u64()?),
            },
            EXITED => Self::Exited { process: d.u32()?, status: d.i32()? },
            OUT_OF_MEMORY => Self::OutOfMemory,
            REPLY => Self::Reply { request: d.u32()?, errno: d.i32()? },
            _ => return Err(MALFORMED),
        };
        d.end().map(|()| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_start_request_comes_back_whole() {
        let mut buffer = [0; 512];
        let argv = ["echo".to_owned(), String::new(), "ü\n".to_owned()];
        let env = [("A".to_owned(), "1=2".to_owned())];
        let stdio = StdioRequest::Terminal { rows: 24, columns: 80 };
        let message = encode_start(&mut buffer, 9, stdio, true, "/workspace", &argv, &env).unwrap();
        let Request::Start(mut start) = Request::decode(message).unwrap() else { panic!("not a start") };
        assert_eq!((start.process, start.stdio, start.make_cwd), (9, stdio, true));
        assert_eq!((start.argc, start.envc, start.cwd), (3, 1, c"/workspace"));
        for expected in [c"echo", c"", c"\xc3\xbc\n", c"A=1=2"] {
            assert_eq!(start.strings.next_text().unwrap(), expected);
        }
        start.strings.end().unwrap();
    }

    #[test]
    fn a_process_without_arguments_is_refused() {
        let mut buffer = [0; 128];
        let message =
            encode_start(&mut buffer, 1, StdioRequest::Pipes { stdin: false }, false, "/", &[], &[]).unwrap();
        assert_eq!(Request::decode(message).unwrap_err(), MALFORMED);
    }

    #[test]
    fn names_to_open_come_back_in_their_order() {
        let mut buffer = [0; 128];
        let names = [(0o600, "a"), (0o755, "ü")];
        let message = encode_open_each(&mut buffer, 7, 3, "workspace/x", names.into_iter()).unwrap();
        let Request::OpenEach { request, flags, folder, mut names } = Request::decode(message).unwrap()
        else {
            panic!("not to open")
        };
        assert_eq!((request, flags, folder), (7, 3, c"workspace/x"));
        for expected in [Some((0o600, c"a")), Some((0o755, c"\xc3\xbc")), None] {
            assert_eq!(names.next_name(), Ok(expected));
        }
    }

    #[test]
    fn events_come_back_whole() {
        let controls = ControlSet(0x1234_5678_9abc);
        for event in [
            Event::Ready { controls },
            Event::Failed { stage: Stage::Root, errno: 13, missing: controls },
            Event::Started { process: 3, controls },
            Event::NotStarted { process: 4, stage: Stage::PayloadExec, errno: 2, missing: ControlSet::EMPTY },
            Event::Exited { process: 5, status: 0x8b },
            Event::OutOfMemory,
            Event::Reply { request: 6, errno: 0 },
        ] {
            assert_eq!(Event::decode(event.encode(&mut [0; EVENT_BYTES]).unwrap()), Ok(event));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..96), kind in 0u32..120) {
            let mut message = kind.to_le_bytes().to_vec();
            message.extend(bytes);
            let _ = Event::decode(&message);
            if let Ok(Request::Start(mut start)) = Request::decode(&message) {
                while start.strings.next_text().is_ok() {}
            }
            if let Ok(Request::OpenEach { mut names, .. }) = Request::decode(&message) {
                while let Ok(Some(_)) = names.next_name() {}
            }
        }
    }
}
