//! What the host and the launcher say to each other.

use crate::ControlSet;
use crate::socket::MAX_FDS;
use crate::stage::Stage;
use crate::sys::Result;
use crate::wire::{Decoder, Encoder, MALFORMED};

/// One sandbox to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateRequest {
    /// The host's name for it in later messages.
    pub sandbox: u32,
    /// The range of user ids that the host holds for it; its lock comes along.
    pub slot: u32,
    pub image: u32,
    pub files_bytes: u64,
    pub files_inodes: u64,
    /// Whether its files are on disk; a detached mount of that comes along.
    pub on_disk: bool,
    /// Where the disk has the files of another sandbox: the first of the ids that they belong to on it.
    pub disk_first_id: Option<u32>,
    pub writable_root: bool,
    pub terminal: bool,
    pub required: ControlSet,
    pub leave_out: ControlSet,
    pub fail_at: Option<Stage>,
    pub hostname: String,
}

/// What the host asks of the launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LauncherRequest {
    /// `base` and `image` make the root, with `image-1`, `image-2` and so on below them; any other name is a part
    /// of it. Comes with a detached mount for each, or with paths where the host has no right to make those.
    AddImage {
        image: u32,
        names: Vec<String>,
        paths: Vec<String>,
    },
    /// Comes with the folders that sandboxes' groups lie in, and last, if `has_init`, the group that inits are in.
    Groups {
        has_init: bool,
    },
    /// Comes with a network namespace for the next sandbox, its loopback up.
    Network,
    /// Comes with init's end of the control socket, the slot's lock, and if `on_disk` the disk.
    Create(CreateRequest),
    Destroy {
        sandbox: u32,
    },
}

/// What the launcher answers. That a sandbox stands is init's to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LauncherEvent {
    NotCreated {
        sandbox: u32,
        stage: Stage,
        errno: i32,
    },
    /// Everything of it is gone; an error number where something stayed.
    Destroyed {
        sandbox: u32,
        errno: i32,
    },
    /// The launcher could not set itself up; it ends.
    Unusable {
        stage: Stage,
        errno: i32,
    },
}

const ADD_IMAGE: u32 = 1;
const CREATE: u32 = 2;
const DESTROY: u32 = 3;
const GROUPS: u32 = 4;
const NETWORK: u32 = 5;
const NOT_CREATED: u32 = 102;
const DESTROYED: u32 = 103;
const UNUSABLE: u32 = 104;

/// Stands for "no stage".
const NO_STAGE: u32 = u32::MAX;

/// The largest request. The paths of an image's layers are the longest part of any.
pub const LAUNCHER_MESSAGE_BYTES: usize = 32 << 10;

/// The largest event. Far less than a request, as each page of a buffer is a fault on the way to a sandbox.
pub const LAUNCHER_EVENT_BYTES: usize = 64;

impl LauncherRequest {
    pub fn encode<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8]> {
        let mut e = Encoder::new(buffer);
        match self {
            Self::AddImage { image, names, paths } => {
                e.u32(ADD_IMAGE).u32(*image);
                for list in [names, paths] {
                    e.u32(list.len() as u32);
                    for text in list {
                        e.text(text.as_bytes());
                    }
                }
            }
            Self::Create(create) => create.encode(&mut e),
            Self::Groups { has_init } => {
                e.u32(GROUPS).u32((*has_init).into());
            }
            Self::Network => {
                e.u32(NETWORK);
            }
            Self::Destroy { sandbox } => {
                e.u32(DESTROY).u32(*sandbox);
            }
        }
        e.finish()
    }

    pub fn decode(message: &[u8]) -> Result<Self> {
        let mut d = Decoder::new(message);
        let request = match d.u32()? {
            ADD_IMAGE => {
                let image = d.u32()?;
                let mut list = || match d.u32()? {
                    count if count as usize <= MAX_FDS => {
                        (0..count).map(|_| text(&mut d)).collect::<Result<_>>()
                    }
                    _ => Err(MALFORMED),
                };
                Self::AddImage { image, names: list()?, paths: list()? }
            }
            CREATE => Self::Create(CreateRequest::decode(&mut d)?),
            DESTROY => Self::Destroy { sandbox: d.u32()? },
            GROUPS => Self::Groups { has_init: d.u32()? != 0 },
            NETWORK => Self::Network,
            _ => return Err(MALFORMED),
        };
        d.end().map(|()| request)
    }
}

fn text(d: &mut Decoder<'_>) -> Result<String> {
    d.text()?.to_str().map(str::to_owned).map_err(|_| MALFORMED)
}

impl CreateRequest {
    fn encode(&self, e: &mut Encoder<'_>) {
        let Self {
            sandbox,
            slot,
            image,
            files_bytes,
            files_inodes,
            on_disk,
            disk_first_id,
            writable_root,
            terminal,
            required,
            leave_out,
            fail_at,
            hostname,
        } = self;
        e.u32(CREATE).u32(*sandbox).u32(*slot).u32(*image);
        e.u64(*files_bytes).u64(*files_inodes).u32((*on_disk).into()).u32(disk_first_id.unwrap_or(0));
        e.u32((*writable_root).into()).u32((*terminal).into()).u64(required.0).u64(leave_out.0);
        e.u32(fail_at.map_or(NO_STAGE, |stage| stage as u32)).text(hostname.as_bytes());
    }

    fn decode(d: &mut Decoder<'_>) -> Result<Self> {
        Ok(Self {
            sandbox: d.u32()?,
            slot: d.u32()?,
            image: d.u32()?,
            files_bytes: d.u64()?,
            files_inodes: d.u64()?,
            on_disk: d.u32()? != 0,
            // No sandbox has the host's root among its ids.
            disk_first_id: Some(d.u32()?).filter(|first| *first != 0),
            writable_root: d.u32()? != 0,
            terminal: d.u32()? != 0,
            required: ControlSet(d.u64()?),
            leave_out: ControlSet(d.u64()?),
            fail_at: Stage::from_number(d.u32()?),
            hostname: text(d)?,
        })
    }
}

impl LauncherEvent {
    pub fn encode(self, buffer: &mut [u8]) -> Result<&[u8]> {
        let mut e = Encoder::new(buffer);
        match self {
            Self::NotCreated { sandbox, stage, errno } => {
                e.u32(NOT_CREATED).u32(sandbox).u32(stage as u32).i32(errno);
            }
            Self::Destroyed { sandbox, errno } => {
                e.u32(DESTROYED).u32(sandbox).i32(errno);
            }
            Self::Unusable { stage, errno } => {
                e.u32(UNUSABLE).u32(stage as u32).i32(errno);
            }
        }
        e.finish()
    }

    pub fn decode(message: &[u8]) -> Result<Self> {
        let mut d = Decoder::new(message);
        let stage = |number| Stage::from_number(number).ok_or(MALFORMED);
        let event = match d.u32()? {
            NOT_CREATED => Self::NotCreated { sandbox: d.u32()?, stage: stage(d.u32()?)?, errno: d.i32()? },
            DESTROYED => Self::Destroyed { sandbox: d.u32()?, errno: d.i32()? },
            UNUSABLE => Self::Unusable { stage: stage(d.u32()?)?, errno: d.i32()? },
            _ => return Err(MALFORMED),
        };
        d.end().map(|()| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_whole() {
        let create = CreateRequest {
            sandbox: 1,
            slot: 3,
            image: 2,
            files_bytes: 6,
            files_inodes: 7,
            on_disk: true,
            disk_first_id: Some(131_072),
            writable_root: false,
            terminal: true,
            required: ControlSet(8),
            leave_out: ControlSet(9),
            fail_at: Some(Stage::Proc),
            hostname: "sandbox".into(),
        };
        for request in [
            LauncherRequest::AddImage {
                image: 7,
                names: vec!["base".into(), "usr".into()],
                paths: vec!["/a".into()],
            },
            LauncherRequest::Create(CreateRequest { fail_at: None, ..create.clone() }),
            LauncherRequest::Create(create),
            LauncherRequest::Groups { has_init: true },
            LauncherRequest::Network,
            LauncherRequest::Destroy { sandbox: 9 },
        ] {
            let mut buffer = [0; LAUNCHER_MESSAGE_BYTES];
            assert_eq!(LauncherRequest::decode(request.encode(&mut buffer).unwrap()), Ok(request));
        }
    }

    #[test]
    fn events_come_back_whole() {
        for event in [
            LauncherEvent::NotCreated { sandbox: 1, stage: Stage::Cgroup, errno: 13 },
            LauncherEvent::Destroyed { sandbox: 1, errno: 0 },
            LauncherEvent::Unusable { stage: Stage::Root, errno: 1 },
        ] {
            let mut buffer = [0; LAUNCHER_EVENT_BYTES];
            assert_eq!(LauncherEvent::decode(event.encode(&mut buffer).unwrap()), Ok(event));
        }
    }
}
