//! An archive becomes a folder. It is unpacked beside its place, under a name that nobody has, and moved when all of it
//! was seen: into its place at once, or file by file where the folder is there already.

use super::{ArchiveFormat, MAX_BYTES, MAX_ENTRIES, PIECE_BYTES, Unpacked};
use crate::session::SessionError;
use crate::session::files::remove_tree;
use crate::session::pipe::pipe;
use cofferdam_backend::{BackendError, EntryKind, Reader, Sandbox};
use cofferdam_core::GuestPath;
use cofferdam_images::tar::{Kind, Streamed, TarReader};
use cofferdam_images::zip::{ZipEntry, ZipItem, ZipReader};
use cofferdam_images::{Decoded, components};
use std::collections::BTreeMap;
use std::future::Future;
use std::io::{self, Read};
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::runtime::Handle;

/// The bits that say what a zip's entry is, and the links among them.
const KIND_BITS: u32 = 0o170_000;
const LINK_BITS: u32 = 0o120_000;
const FOLDER_BITS: u32 = 0o040_000;
const FILE_BITS: u32 = 0o100_000;

/// What a zip begins with.
const ZIP: [u8; 4] = *b"PK\x03\x04";

/// Longer than any path that a link could have.
const MAX_LINK_BYTES: u64 = 4096;

pub(super) struct Order {
    pub(super) target: GuestPath,
    pub(super) is_there: bool,
    pub(super) draft: GuestPath,
    /// None where it has to be found out.
    pub(super) format: Option<ArchiveFormat>,
}

pub(super) fn run(
    sandbox: &Arc<dyn Sandbox>,
    runtime: Handle,
    order: Order,
    content: Reader,
) -> Result<Unpacked, SessionError> {
    let mut unpacking = Unpacking { sandbox, runtime, order, made: BTreeMap::new(), entries: 0, bytes: 0 };
    let done = unpacking.all(content);
    // What was moved into its place is not there any more; everything else goes.
    let _ = unpacking.wait(remove_tree(&**sandbox, &unpacking.order.draft));
    done
}

/// One thing that was made, by its path in the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    File,
    Link,
    /// With the mode that it is to have in the end.
    Folder(Option<u32>),
}

struct Unpacking<'l> {
    sandbox: &'l Arc<dyn Sandbox>,
    runtime: Handle,
    order: Order,
    made: BTreeMap<String, Made>,
    /// Of the archive, of which several may have one name.
    entries: usize,
    bytes: u64,
}

/// The archive's bytes, for a reader that waits.
struct Blocking {
    content: Reader,
    runtime: Handle,
}

impl Read for Blocking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.runtime.block_on(self.content.read(buffer))
    }
}

fn refused(entry: impl Into<String>, why: impl Into<String>) -> SessionError {
    SessionError::Archive { entry: entry.into(), why: why.into() }
}

/// An archive that cannot be read on.
fn unreadable(error: impl std::fmt::Display) -> SessionError {
    refused("", error.to_string())
}

impl Unpacking<'_> {
    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    fn all(&mut self, content: Reader) -> Result<Unpacked, SessionError> {
        self.wait(self.sandbox.make_folder(&self.order.draft))?;
        let content = Blocking { content, runtime: self.runtime.clone() };
        match self.order.format {
            Some(ArchiveFormat::Tar) => self.tar(content)?,
            Some(ArchiveFormat::Zip) => self.zip(content)?,
            None => self.either(content)?,
        }
        match self.order.is_there {
            true => self.merge()?,
            false => self.put()?,
        }
        let files = self.made.values().filter(|made| !matches!(made, Made::Folder(_))).count() as u64;
        Ok(Unpacked { files, size_bytes: self.bytes })
    }

    /// What it is, is seen from its first bytes.
    fn either(&mut self, content: Blocking) -> Result<(), SessionError> {
        let mut content = Decoded::new(content).map_err(unreadable)?;
        match content.begins_with(&ZIP).map_err(unreadable)? {
            true => self.zip(content),
            false => self.tar(content),
        }
    }

    fn tar(&mut self, content: impl Read) -> Result<(), SessionError> {
        let mut reader = TarReader::new(Streamed(content));
        while let Some(entry) = reader.next_entry().map_err(unreadable)? {
            let name = self.next_name(&entry.path)?;
            match entry.kind {
                Kind::Folder => self.folder(name, Some(entry.mode))?,
                Kind::File => self.file(name, entry.mode, &mut reader.data())?,
                Kind::Symlink => self.link(name, &entry.link)?,
                Kind::HardLink => self.copy(name, &entry.link)?,
                Kind::Special => return Err(refused(name, "it is a device or a pipe")),
            }
        }
        Ok(())
    }

    fn zip(&mut self, content: impl Read) -> Result<(), SessionError> {
        let mut reader = ZipReader::new(content);
        while let Some(item) = reader.next_item().map_err(unreadable)? {
            match item {
                ZipItem::Entry(ZipEntry { path, is_folder }) => {
                    let name = self.next_name(&path)?;
                    match is_folder {
                        true => self.folder(name, None)?,
                        false => self.file(name, 0o644, &mut reader.data())?,
                    }
                }
                ZipItem::Mode { path, mode } => self.zip_mode(&path, mode)?,
            }
        }
        Ok(())
    }

    /// What the end of a zip says of an entry. A link came as a file that holds where it leads.
    fn zip_mode(&mut self, path: &[u8], mode: Option<u32>) -> Result<(), SessionError> {
        let (Some(mode), name) = (mode, self.name(path)?) else { return Ok(()) };
        let made = self.made.get(&name).copied();
        match (mode & KIND_BITS, made) {
            (FOLDER_BITS | 0, Some(Made::Folder(_))) => {
                self.made.insert(name, Made::Folder(Some(mode)));
                Ok(())
            }
            (FILE_BITS | 0, Some(Made::File)) => {
                Ok(self.wait(self.sandbox.set_mode(&self.inside(&name)?, mode))?)
            }
            (LINK_BITS, Some(Made::File)) => {
                let place = self.inside(&name)?;
                let mut target = Vec::new();
                let read = async {
                    let reader = self.sandbox.read_file(&place).await?;
                    let read = reader.take(MAX_LINK_BYTES).read_to_end(&mut target).await;
                    read.map_err(|error| BackendError::failed(format!("reading {place}"), error))?;
                    self.sandbox.remove(&place, EntryKind::File).await
                };
                self.wait(read)?;
                self.made.remove(&name);
                self.link(name, &target)
            }
            _ => Err(refused(name, "it is neither a file, nor a folder, nor a link")),
        }
    }

    /// The path of an entry in the archive, in one spelling; empty for the folder itself.
    fn name(&self, path: &[u8]) -> Result<String, SessionError> {
        let shown = String::from_utf8_lossy(path).into_owned();
        let names = components(path).map_err(|error| {
            let text = error.to_string();
            refused(&shown, text.split_once(": ").map_or(text.as_str(), |(_, why)| why))
        })?;
        String::from_utf8(names.join(&b'/')).map_err(|_| refused(&shown, "its name is not UTF-8"))
    }

    /// The name of an entry that has just come, which is counted.
    fn next_name(&mut self, path: &[u8]) -> Result<String, SessionError> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            let shown = String::from_utf8_lossy(path);
            return Err(refused(shown, format!("the archive has more than {MAX_ENTRIES} entries")));
        }
        self.name(path)
    }

    fn inside(&self, name: &str) -> Result<GuestPath, SessionError> {
        Ok(if name.is_empty() { self.order.draft.clone() } else { self.order.draft.join(name)? })
    }

    fn outside(&self, name: &str) -> Result<GuestPath, SessionError> {
        Ok(if name.is_empty() { self.order.target.clone() } else { self.order.target.join(name)? })
    }

    /// What an entry could not be made for, by the name that it has in the archive.
    fn named<T>(&self, name: &str, result: Result<T, BackendError>) -> Result<T, SessionError> {
        result.map_err(|error| match error {
            BackendError::NotPermitted { reason, .. } => refused(name, reason),
            other => other.into(),
        })
    }

    fn folder(&mut self, name: String, mode: Option<u32>) -> Result<(), SessionError> {
        let path = self.inside(&name)?;
        self.named(&name, self.wait(self.sandbox.make_folder(&path)))?;
        self.made.insert(name, Made::Folder(mode));
        Ok(())
    }

    /// Bits that would let a file run as somebody else are dropped with the rest.
    fn file(&mut self, name: String, mode: u32, content: &mut impl Read) -> Result<(), SessionError> {
        if name.is_empty() {
            return Err(refused(name, "a file needs a name"));
        }
        let path = self.inside(&name)?;
        let (sandbox, mode) = (self.sandbox, mode & 0o777);
        let mut first = Vec::with_capacity(PIECE_BYTES);
        content.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut first).map_err(unreadable)?;
        let written = if first.len() < PIECE_BYTES {
            self.count(&name, first.len())?;
            self.wait(sandbox.write_file(&path, mode, Box::new(io::Cursor::new(first)))).map(drop)
        } else {
            let (pipe, reader) = pipe();
            let (sandbox, place) = (Arc::clone(sandbox), path.clone());
            let writing =
                self.runtime.spawn(async move { sandbox.write_file(&place, mode, Box::new(reader)).await });
            let mut piece = first;
            while !piece.is_empty() {
                self.count(&name, piece.len())?;
                // A writer that takes no more says why below.
                if pipe.send_blocking(piece).is_err() {
                    break;
                }
                piece = Vec::with_capacity(PIECE_BYTES);
                content.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece).map_err(unreadable)?;
            }
            pipe.finish_blocking();
            self.wait(writing)
                .unwrap_or_else(|error| {
                    Err(BackendError::failed(format!("writing {path}"), io::Error::other(error)))
                })
                .map(drop)
        };
        self.named(&name, written)?;
        self.made.insert(name, Made::File);
        Ok(())
    }

    fn count(&mut self, name: &str, bytes: usize) -> Result<(), SessionError> {
        self.bytes += bytes as u64;
        match self.bytes > MAX_BYTES {
            true => Err(refused(name, format!("the archive unpacks to more than {} GiB", MAX_BYTES >> 30))),
            false => Ok(()),
        }
    }

    /// A link that stays in the folder wherever that is. Nothing is ever written through it.
    fn link(&mut self, name: String, target: &[u8]) -> Result<(), SessionError> {
        let out = |shown: &str| refused(&name, format!("it is a link that leads out: {shown}"));
        let shown = String::from_utf8_lossy(target);
        let target = std::str::from_utf8(target).ok().filter(|text| !text.is_empty() && !text.contains('\0'));
        let target = target.ok_or_else(|| out(&shown))?;
        if target.starts_with('/') || target.len() as u64 >= MAX_LINK_BYTES {
            return Err(out(&shown));
        }
        let mut depth = name.split('/').count() as i64 - 1;
        for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
            depth += if part == ".." { -1 } else { 1 };
            if depth < 0 {
                return Err(out(&shown));
            }
        }
        if name.is_empty() {
            return Err(refused(name, "a link needs a name"));
        }
        let path = self.inside(&name)?;
        self.named(&name, self.wait(self.sandbox.make_link(&path, target.as_bytes())))?;
        self.made.insert(name, Made::Link);
        Ok(())
    }

    /// A second name of a file that came before becomes a file of its own.
    fn copy(&mut self, name: String, link: &[u8]) -> Result<(), SessionError> {
        let shown = String::from_utf8_lossy(link).into_owned();
        let original = self.name(link)?;
        if self.made.get(&original) != Some(&Made::File) || name.is_empty() {
            return Err(refused(
                name,
                format!("it is a link to {shown}, which is no file of the archive before it"),
            ));
        }
        let (from, to) = (self.inside(&original)?, self.inside(&name)?);
        let sandbox = self.sandbox;
        let work = async {
            let stat = sandbox.stat(&from).await?;
            let reader = sandbox.read_file(&from).await?;
            sandbox.write_file(&to, stat.mode & 0o777, Box::new(reader.take(MAX_BYTES))).await
        };
        let copied = self.wait(work);
        let bytes = self.named(&name, copied)?;
        self.count(&name, usize::try_from(bytes).unwrap_or(usize::MAX))?;
        self.made.insert(name, Made::File);
        Ok(())
    }

    /// Puts the whole folder into its place, at once.
    fn put(&mut self) -> Result<(), SessionError> {
        // From the bottom up: a folder that may not be entered any more has everything in it by then.
        for (name, mode) in self.modes() {
            if !name.is_empty() {
                self.set_mode(&name, &self.inside(&name)?, mode)?;
            }
        }
        let (draft, target) = (&self.order.draft, &self.order.target);
        self.wait(self.sandbox.rename(draft, target))?;
        match self.made.get("") {
            Some(Made::Folder(Some(mode))) => self.set_mode("", target, *mode),
            _ => Ok(()),
        }
    }

    /// Puts every file into the folder that is there. What cannot be put is found out before the first one is.
    fn merge(&mut self) -> Result<(), SessionError> {
        for (name, made) in &self.made {
            let wanted = matches!(made, Made::Folder(_));
            match self.wait(self.sandbox.stat(&self.outside(name)?)) {
                Ok(stat) if (stat.kind == EntryKind::Folder) == wanted => {}
                Ok(_) if wanted => {
                    return Err(refused(name, "there is something in its place that is no folder"));
                }
                Ok(_) => return Err(refused(name, "there is a folder in its place")),
                Err(BackendError::NotFound { .. }) => {}
                Err(error) => self.named(name, Err(error))?,
            }
        }
        // A folder sorts before what is in it.
        for (name, made) in &self.made {
            let place = self.outside(name)?;
            let moved = match made {
                Made::Folder(_) => self.wait(self.sandbox.make_folder(&place)),
                Made::File | Made::Link => self.wait(self.sandbox.rename(&self.inside(name)?, &place)),
            };
            self.named(name, moved)?;
        }
        for (name, mode) in self.modes() {
            // The top of the workspace is not the archive's to close.
            if !name.is_empty() {
                self.set_mode(&name, &self.outside(&name)?, mode)?;
            }
        }
        Ok(())
    }

    fn modes(&self) -> Vec<(String, u32)> {
        let folder = |(name, made): (&String, &Made)| match made {
            Made::Folder(Some(mode)) => Some((name.clone(), mode & 0o777)),
            _ => None,
        };
        self.made.iter().rev().filter_map(folder).collect()
    }

    fn set_mode(&self, name: &str, path: &GuestPath, mode: u32) -> Result<(), SessionError> {
        self.named(name, self.wait(self.sandbox.set_mode(path, mode & 0o777)))
    }
}
