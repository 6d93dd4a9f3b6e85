//! What host and helper say to each other: frames on one ordered stream of bytes.
//!
//! A frame is its length, a kind, a channel and content. Requests, replies and events are JSON on channel 0;
//! the bytes of streams travel as they are, each on a channel of its own. Whoever sends on a channel needs
//! credit: it starts with [`WINDOW`], and the receiver hands back what it has consumed. So a reader that waits
//! holds up its own channel and no other, and nobody has to buffer more than a window.

use serde::{Deserialize, Serialize};
use std::io;

/// What may be on its way on a channel: a few pipes full, and little enough for many channels.
pub const WINDOW: u32 = 256 << 10;

/// The bytes of a stream that travel in one frame.
pub const CHUNK: usize = 32 << 10;

/// The longest frame: a request with the longest arguments and environment that a kernel takes, as JSON.
pub const MAX_FRAME: usize = 16 << 20;

/// The first channel that the helper itself numbers, for connections from inside.
pub const FIRST_ACCEPTED: u32 = 1 << 31;

/// Length, kind, channel.
const HEADER: usize = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// JSON: a [`Request`] from the host, an [`Event`] from the helper.
    Message,
    Data,
    /// The sender is at its end.
    Eof,
    /// The receiver takes no more.
    Close,
    /// The receiver has consumed so many bytes.
    Credit,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Message, Self::Data, Self::Eof, Self::Close, Self::Credit].get(usize::from(byte)).copied()
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: Kind,
    pub channel: u32,
    pub content: Vec<u8>,
}

/// The bytes of a frame.
pub fn frame(kind: Kind, channel: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + content.len());
    bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
    bytes.push(kind as u8);
    bytes.extend_from_slice(&channel.to_le_bytes());
    bytes.extend_from_slice(content);
    bytes
}

pub fn message(message: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec(message).unwrap_or_default();
    frame(Kind::Message, 0, &json)
}

pub fn credit(channel: u32, bytes: u32) -> Vec<u8> {
    frame(Kind::Credit, channel, &bytes.to_le_bytes())
}

/// The number in a credit frame.
pub fn credited(content: &[u8]) -> u32 {
    content.try_into().map(u32::from_le_bytes).unwrap_or(0)
}

/// Puts frames together from bytes as they come.
#[derive(Debug, Default)]
pub struct Frames {
    buffer: Vec<u8>,
    start: usize,
}

impl Frames {
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame. Bytes that are no frame are an error for good: the other side is not ours.
    pub fn take(&mut self) -> io::Result<Option<Frame>> {
        let rest = &self.buffer[self.start..];
        let Some((header, content)) = rest.split_at_checked(HEADER) else { return Ok(None) };
        let word =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let length = word(0) as usize;
        let kind = Kind::from_byte(header[4]);
        let (Some(kind), true) = (kind, length <= MAX_FRAME) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the helper's stream has no frames in it",
            ));
        };
        let Some(content) = content.get(..length) else { return Ok(None) };
        let frame = Frame { kind, channel: word(5), content: content.to_vec() };
        self.start += HEADER + length;
        Ok(Some(frame))
    }
}

/// What the host asks; each is answered by one [`Event::Reply`] with its number.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    pub number: u32,
    pub ask: Ask,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Ask {
    Start(Start),
    Signal {
        process: u32,
        signal: i32,
    },
    Resize {
        process: u32,
        rows: u16,
        columns: u16,
    },
    /// Opens a file, whose bytes come on the channel.
    Read {
        channel: u32,
        path: String,
    },
    /// Makes a file of the bytes that follow on the channel; answered at its end.
    Write {
        channel: u32,
        path: String,
        mode: u32,
        /// When it was last changed; now, unless given.
        modified_ms: Option<i64>,
    },
    MakeFolder {
        path: String,
    },
    List {
        path: String,
        limit: usize,
    },
    Stat {
        path: String,
    },
    /// A plain file or a link, or a folder that is empty.
    Remove {
        path: String,
        is_folder: bool,
    },
    /// What has the new name already is replaced. Parents are made.
    Rename {
        from: String,
        to: String,
    },
    SetMode {
        path: String,
        mode: u32,
    },
    /// The mode of a folder, and when it was last changed.
    RestoreFolder {
        path: String,
        mode: u32,
        modified_ms: i64,
    },
    MakeLink {
        path: String,
        target: String,
    },
    ReadLink {
        path: String,
    },
    /// Makes an instance whose events come on the channel, as the kernel has them.
    Watch {
        channel: u32,
    },
    WatchFolder {
        channel: u32,
        path: String,
    },
    UnwatchFolder {
        channel: u32,
        watch: i32,
    },
    /// Whether everything that happened has been sent.
    WatchIsEmpty {
        channel: u32,
    },
    Connect {
        channel: u32,
        port: u16,
    },
    Listen {
        listener: u32,
        port: u16,
    },
    Unlisten {
        listener: u32,
    },
    Stats,
    /// Stops every process but the helper, which says whether all of them stand still by now.
    Stop,
    /// Lets those go on that were stopped by it.
    GoOn,
    /// Kills every process but the helper.
    EndAll,
    /// A process of its own looks at its walls from inside, and says what it saw.
    Look,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    pub process: u32,
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: String,
    pub make_cwd: bool,
    /// The channels of its streams. A terminal has no stderr.
    pub stdin: Option<u32>,
    pub stdout: u32,
    pub stderr: Option<u32>,
    /// Rows and columns of its terminal.
    pub terminal: Option<(u16, u16)>,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Event {
    /// The helper is there, and has made the folders of a sandbox.
    Ready,
    Reply {
        number: u32,
        result: Result<Answer, Failure>,
    },
    Ended {
        process: u32,
        end: End,
    },
    Accepted {
        listener: u32,
        channel: u32,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    Done,
    Written {
        bytes: u64,
    },
    Entries(Vec<ListEntry>),
    Stat(Stat),
    Link(Vec<u8>),
    Watch(i32),
    IsEmpty(bool),
    Stats(Counted),
    /// The first process that goes on, with the letter of its state; none where all stand still.
    Stopped {
        but: Option<(i32, char)>,
    },
    Seen(Box<crate::facts::Facts>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    Exited(i32),
    Signaled(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// As in a [`ListEntry`].
    pub kind: char,
    pub size: u64,
    pub mode: u32,
    pub modified_ms: i64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct ListEntry {
    pub name: Vec<u8>,
    /// `f`, `d`, `l`, or `o` for anything else.
    pub kind: char,
    pub size: u64,
}

/// Which step failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    Prepare,
    Workdir,
    Execute,
    File,
    Port,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub step: Step,
    pub errno: i32,
}

/// What the sandbox's cgroup counted, as far as it shows inside, and what is left of its files' room.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub cpu_time_us: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub memory_peak_bytes: Option<u64>,
    pub pids_peak: Option<u64>,
    pub oom_kills: Option<u64>,
    pub memory_limit_hits: Option<u64>,
    pub pids_limit_hits: Option<u64>,
    pub cpu_throttled: Option<u64>,
    pub disk_free_bytes: Option<u64>,
    pub disk_free_inodes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_whole_however_they_are_cut() {
        let mut stream = message(&Event::Ready);
        stream.extend(frame(Kind::Data, 7, b"some bytes"));
        stream.extend(credit(7, 10));
        stream.extend(frame(Kind::Eof, 7, b""));
        for size in [1, 2, 7, stream.len()] {
            let mut frames = Frames::default();
            let mut seen = Vec::new();
            for piece in stream.chunks(size) {
                frames.push(piece);
                while let Some(frame) = frames.take().unwrap() {
                    seen.push(frame);
                }
            }
            assert_eq!(seen.len(), 4, "pieces of {size}");
            assert_eq!(
                (seen[1].kind, seen[1].channel, &*seen[1].content),
                (Kind::Data, 7, &b"some bytes"[..])
            );
            assert_eq!(credited(&seen[2].content), 10);
            assert_eq!((seen[3].kind, seen[3].content.len()), (Kind::Eof, 0));
        }
    }

    #[test]
    fn other_bytes_are_an_error() {
        let mut frames = Frames::default();
        frames.push(b"exec: no such file or directory");
        assert!(frames.take().is_err());
    }
}
