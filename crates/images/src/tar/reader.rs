//! Entry by entry through an archive that may be hostile.

use super::BLOCK;
use super::header::Header;
use super::pax::Pax;
use crate::limits::MAX_PATH_BYTES;
use std::io::{self, Read};
use thiserror::Error;

/// Extended headers carry names and a few attributes. More is not an archive that anybody made in earnest.
const MAX_EXTENSION_BYTES: u64 = 1 << 20;

/// One entry takes at most a pax header, two long names and itself; more than this is a loop.
const MAX_EXTENSIONS: usize = 8;

/// Where an archive comes from: bytes in order, some of which can be passed over.
pub trait Source: Read {
    /// Passes over bytes; an archive that ends before them is cut.
    fn skip(&mut self, bytes: u64) -> io::Result<()>;
}

/// A source that can only be read.
#[derive(Debug)]
pub struct Streamed<R>(pub R);

impl<R: Read> Read for Streamed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<R: Read> Source for Streamed<R> {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let passed = io::copy(&mut (&mut self.0).take(bytes), &mut io::sink())?;
        if passed == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    Symlink,
    HardLink,
    /// A device or a named pipe.
    Special,
}

/// One entry, as the archive has it. Nothing in it can be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub path: Vec<u8>,
    pub kind: Kind,
    pub mode: u32,
    pub uid: u64,
    pub seconds: u64,
    /// The bytes that follow; 0 for all but files.
    pub size: u64,
    /// Where a link leads.
    pub link: Vec<u8>,
}

#[derive(Debug, Error)]
pub enum TarError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("it is not a tar archive that can be taken: {what} (at byte {at})")]
    Malformed { what: &'static str, at: u64 },
}

/// Reads an archive.
#[derive(Debug)]
pub struct TarReader<S> {
    source: S,
    position: u64,
    /// What of the current entry's bytes was not read yet, and what fills its last block.
    left: u64,
    padding: u64,
}

impl<S: Source> TarReader<S> {
    pub fn new(source: S) -> Self {
        Self { source, position: 0, left: 0, padding: 0 }
    }

    /// How far it has come; after `next`, where the entry's bytes begin.
    pub fn position(&self) -> u64 {
        self.position
    }

    pub fn into_inner(self) -> S {
        self.source
    }

    /// The next entry; whatever of the one before was not read is passed over. `None` at the end mark.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, TarError> {
        self.pass_over()?;
        let mut pax = Pax::default();
        for _ in 0..MAX_EXTENSIONS {
            let mut block = [0; BLOCK];
            if let Err(error) = self.source.read_exact(&mut block) {
                return Err(match error.kind() {
                    io::ErrorKind::UnexpectedEof => {
                        self.malformed("it ends without an end mark, so it was cut")
                    }
                    _ => error.into(),
                });
            }
            if block == [0; BLOCK] {
                return Ok(None);
            }
            let header =
                Header::parse(&block).ok_or_else(|| self.malformed("a header's checksum is wrong"))?;
            self.position += BLOCK as u64;
            match header.kind() {
                b'x' => {
                    let records = self.extension(&header)?;
                    pax.read(&records).ok_or_else(|| self.malformed("an extended header is malformed"))?;
                }
                b'g' => self.global(&header)?,
                b'L' => pax.path = Some(self.long_name(&header)?),
                b'K' => pax.link = Some(self.long_name(&header)?),
                _ => return self.entry(&header, pax).map(Some),
            }
        }
        Err(self.malformed("an entry has too many headers"))
    }

    /// A header for all entries to come may say whose they are, but not what or where.
    fn global(&mut self, header: &Header<'_>) -> Result<(), TarError> {
        let records = self.extension(header)?;
        let mut global = Pax::default();
        match global.read(&records) {
            Some(()) if global.is_harmless() => Ok(()),
            Some(()) => Err(self.malformed("a global header gives a path or a size to every entry")),
            None => Err(self.malformed("a global header is malformed")),
        }
    }

    fn extension(&mut self, header: &Header<'_>) -> Result<Vec<u8>, TarError> {
        let size = header.size().ok_or_else(|| self.malformed("a size is no number"))?;
        if size > MAX_EXTENSION_BYTES {
            return Err(self.malformed("an extended header is larger than 1 MiB"));
        }
        (self.left, self.padding) = (size, padding(size));
        let mut bytes = Vec::with_capacity(size as usize);
        self.data().read_to_end(&mut bytes)?;
        self.pass_over()?;
        if bytes.len() as u64 != size {
            return Err(self.malformed("it ends within a header, so it was cut"));
        }
        Ok(bytes)
    }

    fn long_name(&mut self, header: &Header<'_>) -> Result<Vec<u8>, TarError> {
        let mut name = self.extension(header)?;
        while name.last() == Some(&0) {
            name.pop();
        }
        Ok(name)
    }

    fn entry(&mut self, header: &Header<'_>, pax: Pax) -> Result<Entry, TarError> {
        if pax.is_sparse || header.kind() == b'S' {
            return Err(self.malformed("it has a sparse file; make it without --sparse"));
        }
        let path = pax.path.unwrap_or_else(|| header.path());
        let link = pax.link.unwrap_or_else(|| header.link());
        if path.len() > MAX_PATH_BYTES || link.len() > MAX_PATH_BYTES {
            return Err(self.malformed("a path is longer than 4095 bytes"));
        }
        let kind = match header.kind() {
            b'0' | b'\0' | b'7' if path.ends_with(b"/") => Kind::Folder,
            b'0' | b'\0' | b'7' => Kind::File,
            b'1' => Kind::HardLink,
            b'2' => Kind::Symlink,
            b'3' | b'4' | b'6' => Kind::Special,
            b'5' => Kind::Folder,
            _ => return Err(self.malformed("it has an entry of an unknown kind")),
        };
        let size = match pax.size {
            Some(size) => size,
            None => header.size().ok_or_else(|| self.malformed("a size is no number"))?,
        };
        // Readers disagree about what follows such an entry, and one of them would see other files than this one.
        if size > 0 && kind != Kind::File {
            return Err(self.malformed("an entry that is not a file has bytes"));
        }
        // Nothing that large can be, and its padding could not be counted.
        if size > i64::MAX as u64 {
            return Err(self.malformed("a size is too large"));
        }
        (self.left, self.padding) = (size, padding(size));
        Ok(Entry {
            path,
            kind,
            mode: header.mode().ok_or_else(|| self.malformed("a mode is no number"))?,
            uid: pax.uid.or(header.uid()).unwrap_or(0),
            seconds: pax.seconds.unwrap_or_else(|| header.seconds()),
            size,
            link,
        })
    }

    /// The bytes of the current entry.
    pub fn data(&mut self) -> EntryData<'_, S> {
        EntryData { reader: self }
    }

    fn pass_over(&mut self) -> Result<(), TarError> {
        let rest = self.left + self.padding;
        if rest > 0 {
            match self.source.skip(rest) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(self.malformed("it ends within an entry, so it was cut"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.position += rest;
        (self.left, self.padding) = (0, 0);
        Ok(())
    }

    fn malformed(&self, what: &'static str) -> TarError {
        TarError::Malformed { what, at: self.position }
    }
}

fn padding(size: u64) -> u64 {
    size.wrapping_neg() % BLOCK as u64
}

/// Reads the bytes of one entry, and no further.
#[derive(Debug)]
pub struct EntryData<'r, S> {
    reader: &'r mut TarReader<S>,
}

impl<S: Source> Read for EntryData<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.reader.left).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let n = self.reader.source.read(&mut buffer[..wanted])?;
        if n == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the archive ends within a file, so it was cut",
            ));
        }
        self.reader.left -= n as u64;
        self.reader.position += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
