//! Entry by entry through an archive that may be hostile, as its bytes come.

use super::{
    CENTRAL, DEFLATED, DESCRIPTOR, ELSEWHERE, END, END_64, HAS_DESCRIPTOR, IS_ENCRYPTED, LOCAL, LOCATOR_64,
    STORED, UNIX,
};
use crate::limits::MAX_PATH_BYTES;
use flate2::{Crc, Decompress, FlushDecompress, Status};
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};
use thiserror::Error;

/// So much is remembered of names, which have to be compared with those at the end.
const MAX_NAMES_BYTES: usize = 16 << 20;

/// Said by its header, or shown by its bytes where that says nothing.
const FOLDER_HAS_BYTES: &str = "a folder has bytes";

#[derive(Debug, Error)]
pub enum ZipError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("it is not a zip archive that can be taken: {what} (at byte {at})")]
    Malformed { what: &'static str, at: u64 },
}

/// One entry whose bytes come next. Nothing in it can be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipEntry {
    pub path: Vec<u8>,
    pub is_folder: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ZipItem {
    Entry(ZipEntry),
    /// The mode of an entry that came before, its kind included, where the archive knows one.
    Mode {
        path: Vec<u8>,
        mode: Option<u32>,
    },
}

/// What an entry was, to be held against what the end says of it.
#[derive(Debug)]
struct Seen {
    path: Vec<u8>,
    sum: u32,
    packed: u64,
    size: u64,
    is_named: bool,
}

#[derive(Debug)]
struct Current {
    seen: Seen,
    at: u64,
    has_descriptor: bool,
    is_64: bool,
    /// What the header promises, where it does.
    promised: Option<(u32, u64, u64)>,
    crc: Crc,
    inflate: Option<Box<Decompress>>,
    is_done: bool,
}

/// Reads an archive.
#[derive(Debug)]
pub struct ZipReader<R: Read> {
    source: BufReader<R>,
    position: u64,
    current: Option<Current>,
    seen: HashMap<u64, Seen>,
    names_bytes: usize,
    named: usize,
    /// Whether the part about all entries has begun.
    is_central: bool,
}

impl<R: Read> ZipReader<R> {
    pub fn new(source: R) -> Self {
        Self {
            source: BufReader::with_capacity(64 << 10, source),
            position: 0,
            current: None,
            seen: HashMap::new(),
            names_bytes: 0,
            named: 0,
            is_central: false,
        }
    }

    /// The next entry, or the mode of one; whatever of the entry before was not read is passed over. `None` at the end.
    pub fn next_item(&mut self) -> Result<Option<ZipItem>, ZipError> {
        self.finish_entry()?;
        loop {
            let at = self.position;
            match self.u32()? {
                LOCAL if !self.is_central => return self.local(at).map(|entry| Some(ZipItem::Entry(entry))),
                CENTRAL => {
                    self.is_central = true;
                    return self.central().map(Some);
                }
                // Sizes that are too large for the plain end. What counts was compared entry by entry.
                END_64 => {
                    let length = self.u64()?;
                    if length > 1 << 10 {
                        return Err(self.malformed("its end is too long"));
                    }
                    self.skip(length)?;
                }
                LOCATOR_64 => self.skip(16)?,
                END => {
                    self.skip(16)?;
                    let comment = self.u16()?;
                    self.skip(comment.into())?;
                    return match self.named == self.seen.len() {
                        true => Ok(None),
                        false => Err(self.malformed("its end does not name every entry")),
                    };
                }
                _ if at == 0 => return Err(self.malformed("it does not begin as one")),
                _ => return Err(self.malformed("there is something between its entries")),
            }
        }
    }

    /// The bytes of the current entry.
    pub fn data(&mut self) -> ZipData<'_, R> {
        ZipData { reader: self }
    }

    fn local(&mut self, at: u64) -> Result<ZipEntry, ZipError> {
        let _version = self.u16()?;
        let (flags, method) = (self.u16()?, self.u16()?);
        self.skip(4)?;
        let (sum, mut packed, mut size) = (self.u32()?, u64::from(self.u32()?), u64::from(self.u32()?));
        let (path, extra) = self.names()?;
        let wide = wide(&extra);
        let mut words = wide.unwrap_or_default().chunks_exact(8).map(number);
        for field in [&mut size, &mut packed] {
            if *field == u64::from(ELSEWHERE) {
                *field = words.next().ok_or_else(|| self.malformed("a size is missing"))?;
            }
        }
        let is_folder = is_folder(&path);
        let has_descriptor = flags & HAS_DESCRIPTOR != 0;
        if flags & IS_ENCRYPTED != 0 {
            return Err(self.malformed("it is encrypted"));
        }
        let inflate = match method {
            STORED if has_descriptor && !is_folder => {
                return Err(self.malformed("the end of an entry cannot be found; compress it, or send a tar"));
            }
            STORED if !has_descriptor && packed != size => {
                return Err(self.malformed("a stored entry has two sizes"));
            }
            STORED => None,
            DEFLATED => Some(Box::new(Decompress::new(false))),
            _ => return Err(self.malformed("it has a compression that is not deflate")),
        };
        let seen = Seen { path: path.clone(), sum: 0, packed: 0, size: 0, is_named: false };
        let promised = (!has_descriptor).then_some((sum, packed, size));
        let is_64 = wide.is_some();
        let (crc, is_done) = (Crc::new(), false);
        self.current = Some(Current { seen, at, has_descriptor, is_64, promised, crc, inflate, is_done });
        if is_folder && !matches!(promised, None | Some((_, _, 0))) {
            return Err(self.malformed(FOLDER_HAS_BYTES));
        }
        Ok(ZipEntry { path, is_folder })
    }

    fn names(&mut self) -> Result<(Vec<u8>, Vec<u8>), ZipError> {
        let (name, extra) = (self.u16()?, self.u16()?);
        if usize::from(name) > MAX_PATH_BYTES {
            return Err(self.malformed("a path is longer than 4095 bytes"));
        }
        self.names_bytes += usize::from(name);
        if self.names_bytes > 2 * MAX_NAMES_BYTES {
            return Err(self.malformed("its names are longer than 16 MiB"));
        }
        Ok((self.bytes(name.into())?, self.bytes(extra.into())?))
    }

    /// Reads some bytes of the current entry; 0 at its end.
    fn read_data(&mut self, buffer: &mut [u8]) -> Result<usize, ZipError> {
        let cut =
            || io::Error::new(io::ErrorKind::UnexpectedEof, "the archive ends within a file, so it was cut");
        loop {
            let Some(current) = self.current.as_mut().filter(|current| !current.is_done) else {
                return Ok(0);
            };
            let left = current.promised.map(|(_, packed, _)| packed - current.seen.packed);
            if buffer.is_empty() {
                return Ok(0);
            }
            let Some(inflate) = &mut current.inflate else {
                // A folder without a size has none.
                let wanted = buffer.len().min(usize::try_from(left.unwrap_or(0)).unwrap_or(usize::MAX));
                if wanted == 0 {
                    current.is_done = true;
                    return Ok(0);
                }
                let n = self.source.read(&mut buffer[..wanted])?;
                if n == 0 {
                    return Err(cut().into());
                }
                self.position += n as u64;
                current.take(n as u64, &buffer[..n]);
                return Ok(n);
            };
            let input = self.source.fill_buf()?;
            let most = input.len().min(usize::try_from(left.unwrap_or(u64::MAX)).unwrap_or(usize::MAX));
            let (was_in, was_out) = (inflate.total_in(), inflate.total_out());
            let status = inflate.decompress(&input[..most], buffer, FlushDecompress::None);
            let (read, made) = (inflate.total_in() - was_in, (inflate.total_out() - was_out) as usize);
            let is_cut = input.is_empty();
            self.source.consume(read as usize);
            self.position += read;
            current.take(read, &buffer[..made]);
            if made > 0 && is_folder(&current.seen.path) {
                return Err(self.malformed(FOLDER_HAS_BYTES));
            }
            match status {
                Ok(Status::StreamEnd) => current.is_done = true,
                Ok(_) if made > 0 => {}
                Ok(_) if is_cut => return Err(cut().into()),
                Ok(_) if read > 0 => continue,
                Ok(_) => return Err(self.malformed("the bytes of an entry end before its end")),
                Err(_) => return Err(self.malformed("the bytes of an entry are not deflated")),
            }
            return Ok(made);
        }
    }

    fn finish_entry(&mut self) -> Result<(), ZipError> {
        let mut rest = [0; 8192];
        while self.read_data(&mut rest)? > 0 {}
        let Some(current) = self.current.take() else { return Ok(()) };
        let sum = current.crc.sum();
        let promised = match current.promised {
            Some(promised) => promised,
            None if current.has_descriptor => self.descriptor(current.is_64)?,
            None => (0, 0, 0),
        };
        let mut seen = current.seen;
        seen.sum = sum;
        if promised != (sum, seen.packed, seen.size) {
            return Err(self.malformed("an entry is not what it says it is"));
        }
        self.seen.insert(current.at, seen);
        Ok(())
    }

    fn descriptor(&mut self, is_64: bool) -> Result<(u32, u64, u64), ZipError> {
        let sum = match self.u32()? {
            DESCRIPTOR => self.u32()?,
            sum => sum,
        };
        Ok(match is_64 {
            true => (sum, self.u64()?, self.u64()?),
            false => (sum, self.u32()?.into(), self.u32()?.into()),
        })
    }

    fn central(&mut self) -> Result<ZipItem, ZipError> {
        let made_by = self.u16()?;
        self.skip(10)?;
        let (sum, mut packed, mut size) = (self.u32()?, u64::from(self.u32()?), u64::from(self.u32()?));
        let (name, extra, comment) = (self.u16()?, self.u16()?, self.u16()?);
        self.skip(4)?;
        let (attributes, mut at) = (self.u32()?, u64::from(self.u32()?));
        let path = self.bytes(name.into())?;
        let extra = self.bytes(extra.into())?;
        self.skip(comment.into())?;
        let mut words = wide(&extra).unwrap_or_default().chunks_exact(8).map(number);
        for field in [&mut size, &mut packed, &mut at] {
            if *field == u64::from(ELSEWHERE) {
                *field = words.next().ok_or_else(|| self.malformed("a size is missing"))?;
            }
        }
        let found = self.seen.get_mut(&at).filter(|seen| {
            !seen.is_named && seen.path == path && (seen.sum, seen.packed, seen.size) == (sum, packed, size)
        });
        match found {
            Some(seen) => seen.is_named = true,
            None => return Err(self.malformed("its end names an entry that it does not have")),
        }
        self.named += 1;
        let mode = (made_by >> 8 == u16::from(UNIX)).then_some(attributes >> 16).filter(|mode| *mode != 0);
        Ok(ZipItem::Mode { path, mode })
    }

    fn skip(&mut self, bytes: u64) -> Result<(), ZipError> {
        let passed = io::copy(&mut (&mut self.source).take(bytes), &mut io::sink())?;
        self.position += passed;
        if passed == bytes { Ok(()) } else { Err(self.malformed("it was cut")) }
    }

    fn bytes(&mut self, count: usize) -> Result<Vec<u8>, ZipError> {
        let mut bytes = vec![0; count];
        match self.source.read_exact(&mut bytes) {
            Ok(()) => {
                self.position += count as u64;
                Ok(bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.malformed("it was cut")),
            Err(error) => Err(error.into()),
        }
    }

    fn u16(&mut self) -> Result<u16, ZipError> {
        self.bytes(2).map(|bytes| number(&bytes) as u16)
    }

    fn u32(&mut self) -> Result<u32, ZipError> {
        self.bytes(4).map(|bytes| number(&bytes) as u32)
    }

    fn u64(&mut self) -> Result<u64, ZipError> {
        self.bytes(8).map(|bytes| number(&bytes))
    }

    fn malformed(&self, what: &'static str) -> ZipError {
        ZipError::Malformed { what, at: self.position }
    }
}

impl Current {
    fn take(&mut self, read: u64, made: &[u8]) {
        self.seen.packed += read;
        self.seen.size += made.len() as u64;
        self.crc.update(made);
    }
}

fn is_folder(path: &[u8]) -> bool {
    path.ends_with(b"/")
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// The zip64 field among the extra ones.
fn wide(mut extra: &[u8]) -> Option<&[u8]> {
    while let Some((head, rest)) = extra.split_at_checked(4) {
        let field = rest.get(..number(&head[2..]) as usize)?;
        if number(&head[..2]) == 1 {
            return Some(field);
        }
        extra = &rest[field.len()..];
    }
    None
}

/// Reads the bytes of one entry, and no further.
#[derive(Debug)]
pub struct ZipData<'r, R: Read> {
    reader: &'r mut ZipReader<R>,
}

impl<R: Read> Read for ZipData<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read_data(buffer).map_err(|error| match error {
            ZipError::Read(error) => error,
            other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()),
        })
    }
}
