//! How much an image may be. Archives are hostile: a few kilobytes can unpack to all that a disk holds.

use crate::{ImageError, Result};
use std::io::{self, Read};

/// What one import may take.
#[derive(Debug, Clone, Copy)]
pub struct ImportLimits {
    /// Unpacked, of all layers together. Larger than any image that a sandbox is started from in earnest.
    pub bytes: u64,
    /// Files, folders and links of all layers together. A distribution's full desktop has a quarter of it.
    pub entries: u64,
}

impl Default for ImportLimits {
    fn default() -> Self {
        Self { bytes: 32 << 30, entries: 2_000_000 }
    }
}

/// As many as Docker makes; each is a mount in every sandbox.
pub const MAX_LAYERS: usize = 127;

/// The longest path that the kernel takes in one call, less the NUL.
pub(crate) const MAX_PATH_BYTES: usize = 4095;

/// The longest name of every common filesystem.
pub(crate) const MAX_NAME_BYTES: usize = 255;

/// Deeper than any real tree, and shallow enough to be removed without care.
pub(crate) const MAX_DEPTH: usize = 128;

/// Manifests and configurations are kilobytes.
pub const MAX_JSON_BYTES: u64 = 4 << 20;

pub(crate) const BYTES_OPTION: &str = "--max-size";
pub(crate) const ENTRIES_OPTION: &str = "--max-entries";

/// What is left of the limits.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: ImportLimits,
    bytes: u64,
    entries: u64,
}

impl Budget {
    pub(crate) fn new(limits: ImportLimits) -> Self {
        Self { limits, bytes: limits.bytes, entries: limits.entries }
    }

    pub(crate) fn entry(&mut self) -> Result<()> {
        let error = || ImageError::Limit {
            what: "files, folders and links",
            max: self.limits.entries,
            option: ENTRIES_OPTION,
        };
        self.entries = self.entries.checked_sub(1).ok_or_else(error)?;
        Ok(())
    }

    pub(crate) fn bytes_left(&self) -> u64 {
        self.bytes
    }

    /// Counts a layer's stream, which was read through `Limited` with what was left.
    pub(crate) fn take_bytes(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    pub(crate) fn too_large(&self) -> ImageError {
        ImageError::Limit { what: "bytes", max: self.limits.bytes, option: BYTES_OPTION }
    }
}

/// Ends with an error, not with a silent end, where more than `left` bytes come.
pub(crate) struct Limited<R> {
    inner: R,
    left: u64,
}

impl<R> Limited<R> {
    pub(crate) fn new(inner: R, left: u64) -> Self {
        Self { inner, left }
    }
}

/// What `Limited` says; found again by `is_too_large`.
#[derive(Debug, thiserror::Error)]
#[error("it is larger than allowed")]
struct TooLarge;

/// Whether an error of a reader came from its `Limited`.
pub(crate) fn is_too_large(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<TooLarge>())
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(n as u64).ok_or_else(|| io::Error::other(TooLarge))?;
        Ok(n)
    }
}
