//! The files of a session as one stream of bytes, and back.
//!
//! Both ends go through the sandbox, which opens every path itself and follows no link. While files are written away,
//! nothing in the sandbox runs. Links are kept as what they say; devices, pipes and sockets are not kept. Set-id bits
//! are not put back. A file with two names becomes two files.
//!
//! Between two sandboxes of one worker the same is done without a stream: see `copy`.
//!
//! The stream is a mark, entries, and an end that says how many there were, so that one that was cut off is not taken
//! for a whole one. Numbers are little-endian. An entry is its kind, its mode (32 bits), the time of its last change
//! (milliseconds, 64 bits), and its path below the workspace (32 bits of length, and the bytes); then a file has its
//! size (64 bits) and its bytes, a link where it leads to (32 bits of length, and the bytes).

mod copy;
mod part;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(super) use copy::{MAX_COPYING, copy};
pub(super) use read::restore;
pub(super) use write::save;

const MARK: &[u8; 16] = b"cofferdam-files1";

const END: u8 = 0;
const FOLDER: u8 = 1;
const FILE: u8 = 2;
const LINK: u8 = 3;

/// More than anybody keeps in a workspace; an archive without an end would otherwise have none.
pub(super) const MAX_ENTRIES: u64 = 1_000_000;

/// The kernel's PATH_MAX.
const MAX_PATH: u32 = 4096;

/// Deeper than anything that programs make on purpose.
pub(super) const MAX_DEPTH: usize = 128;

/// The paths of folders are held until all is put back; in a million of them there is room for names.
const MAX_FOLDER_BYTES: usize = 64 << 20;

/// What was written away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Saved {
    pub entries: u64,
    /// Of files, as they are; not of what the stream has.
    pub bytes: u64,
    /// Devices, pipes and sockets.
    pub skipped: u64,
}
