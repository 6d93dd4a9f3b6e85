//! An archive of our own, in pieces: nothing is held but what its end has to say.

use super::{CENTRAL, DEFLATED, DESCRIPTOR, END, HAS_DESCRIPTOR, IS_UTF8, LOCAL, STORED, UNIX};
use flate2::{Compress, Compression, Crc, FlushCompress};
use thiserror::Error;

/// What the plain form of a zip cannot say, and few readers of the other form are right about.
#[derive(Debug, Error)]
#[error("a zip has at most 65535 entries and 4 GiB; take a tar")]
pub struct ZipTooLarge;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZipKind {
    File,
    Folder,
    Link,
}

impl ZipKind {
    fn mode(self, mode: u32) -> u32 {
        match self {
            Self::File => 0o100_000 | mode & 0o777,
            Self::Folder => 0o040_000 | mode & 0o777,
            Self::Link => 0o120_777,
        }
    }
}

#[derive(Debug)]
struct Open {
    path: Vec<u8>,
    kind: ZipKind,
    mode: u32,
    time: [u8; 4],
    at: u32,
    crc: Crc,
    deflate: Option<Compress>,
    packed: u64,
    size: u64,
}

/// Makes an archive, piece by piece: what each call returns is what comes next.
#[derive(Debug, Default)]
pub struct ZipWriter {
    written: u64,
    end: Vec<u8>,
    count: u16,
    open: Option<Open>,
}

impl ZipWriter {
    /// Begins an entry. Folders and links have no bytes that come later.
    pub fn begin(
        &mut self,
        path: &[u8],
        kind: ZipKind,
        mode: u32,
        seconds: u64,
        link: &[u8],
    ) -> Result<Vec<u8>, ZipTooLarge> {
        let at = u32::try_from(self.written).map_err(|_| ZipTooLarge)?;
        self.count = self.count.checked_add(1).filter(|count| *count < u16::MAX).ok_or(ZipTooLarge)?;
        let mut crc = Crc::new();
        crc.update(link);
        let is_file = kind == ZipKind::File;
        let deflate = is_file.then(|| Compress::new(Compression::fast(), false));
        let size = link.len() as u64;
        let time = dos_time(seconds);
        let open = Open { path: path.to_vec(), kind, mode, time, at, crc, deflate, packed: size, size };
        let mut bytes = LOCAL.to_le_bytes().to_vec();
        let (sum, size) = if is_file { (0, 0) } else { (open.crc.sum(), size as u32) };
        head(&mut bytes, &open, sum, size, size);
        bytes.extend(0u16.to_le_bytes());
        bytes.extend(path);
        bytes.extend(link);
        self.open = Some(open);
        self.counted(bytes)
    }

    /// Bytes of the file that was begun.
    pub fn data(&mut self, bytes: &[u8]) -> Result<Vec<u8>, ZipTooLarge> {
        self.deflate(bytes, FlushCompress::None)
    }

    /// Ends the entry that was begun.
    pub fn end_entry(&mut self) -> Result<Vec<u8>, ZipTooLarge> {
        let mut bytes = self.deflate(&[], FlushCompress::Finish)?;
        let Some(open) = self.open.take() else { return Ok(bytes) };
        let (sum, limit) = (open.crc.sum(), |size: u64| u32::try_from(size).map_err(|_| ZipTooLarge));
        let (packed, size) = (limit(open.packed)?, limit(open.size)?);
        if open.deflate.is_some() {
            let descriptor = [DESCRIPTOR, sum, packed, size].map(u32::to_le_bytes).concat();
            bytes.extend(self.counted(descriptor)?);
        }
        let end = &mut self.end;
        end.extend(CENTRAL.to_le_bytes());
        end.extend([30, UNIX]);
        head(end, &open, sum, packed, size);
        // No fields, no comment, disk 0, and nothing to say of its inside.
        end.extend([0; 8]);
        end.extend((open.kind.mode(open.mode) << 16).to_le_bytes());
        end.extend(open.at.to_le_bytes());
        end.extend(&open.path);
        Ok(bytes)
    }

    /// What ends the archive.
    pub fn finish(mut self) -> Result<Vec<u8>, ZipTooLarge> {
        let at = u32::try_from(self.written).map_err(|_| ZipTooLarge)?;
        let mut bytes = std::mem::take(&mut self.end);
        let size = u32::try_from(bytes.len()).map_err(|_| ZipTooLarge)?;
        bytes.extend(END.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend([self.count, self.count].map(u16::to_le_bytes).concat());
        bytes.extend([size, at].map(u32::to_le_bytes).concat());
        bytes.extend([0; 2]);
        Ok(bytes)
    }

    fn deflate(&mut self, mut input: &[u8], flush: FlushCompress) -> Result<Vec<u8>, ZipTooLarge> {
        let Some(open) = &mut self.open else { return Ok(Vec::new()) };
        let Some(deflate) = &mut open.deflate else { return Ok(Vec::new()) };
        open.crc.update(input);
        open.size += input.len() as u64;
        let mut bytes = Vec::with_capacity(input.len() / 2 + 64);
        loop {
            bytes.reserve(4096);
            let (was_in, was_out) = (deflate.total_in(), deflate.total_out());
            // It fails only where it is used out of turn, which the types here do not allow.
            let status = deflate.compress_vec(input, &mut bytes, flush).map_err(|_| ZipTooLarge)?;
            let read = (deflate.total_in() - was_in) as usize;
            open.packed += deflate.total_out() - was_out;
            input = &input[read..];
            let is_done = match flush {
                FlushCompress::Finish => status == flate2::Status::StreamEnd,
                _ => input.is_empty() && bytes.len() < bytes.capacity(),
            };
            if is_done {
                return self.counted(bytes);
            }
        }
    }

    fn counted(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>, ZipTooLarge> {
        self.written += bytes.len() as u64;
        if self.written > u64::from(u32::MAX) { Err(ZipTooLarge) } else { Ok(bytes) }
    }
}

/// What both places say of an entry, up to the length of its name.
fn head(bytes: &mut Vec<u8>, open: &Open, sum: u32, packed: u32, size: u32) {
    let (flags, method) = match open.kind {
        ZipKind::File => (IS_UTF8 | HAS_DESCRIPTOR, DEFLATED),
        _ => (IS_UTF8, STORED),
    };
    bytes.extend([20, flags, method].map(u16::to_le_bytes).concat());
    bytes.extend(open.time);
    bytes.extend([sum, packed, size].map(u32::to_le_bytes).concat());
    bytes.extend((open.path.len() as u16).to_le_bytes());
}

/// Two seconds are the finest that a zip knows, and 1980 is its beginning.
fn dos_time(seconds: u64) -> [u8; 4] {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from the first of March of the year 0, so that a leap day is the last of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let part = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * part + 2) / 5 + 1;
    let month = if part < 10 { part + 3 } else { part - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (date, time) = match year {
        1980..=2107 => (
            ((year - 1980) << 9) | (month << 5) | day,
            ((second / 3600) << 11) | ((second / 60 % 60) << 5) | (second % 60 / 2),
        ),
        _ => ((1 << 5) | 1, 0),
    };
    [time as u8, (time >> 8) as u8, date as u8, (date >> 8) as u8]
}
