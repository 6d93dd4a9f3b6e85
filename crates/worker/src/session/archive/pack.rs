//! A folder becomes an archive, entry by entry, as fast as it is read.

use super::{ArchiveFormat, MAX_DEPTH, MAX_ENTRIES, PIECE_BYTES};
use crate::session::pipe::{PipeWriter, pipe};
use cofferdam_backend::{BackendError, Entry, EntryKind, FileStat, Reader, Sandbox};
use cofferdam_core::GuestPath;
use cofferdam_images::tar::{BLOCK, END, Kind, Written, write_header};
use cofferdam_images::zip::{ZipKind, ZipWriter};
use std::io;
use std::sync::Arc;
use tokio::io::AsyncReadExt;

/// The sandbox's user, as whom everything in it is made.
const OWNER: u64 = 1000;

pub(super) fn start(sandbox: Arc<dyn Sandbox>, root: GuestPath, format: ArchiveFormat) -> Reader {
    let (out, reader) = pipe();
    tokio::spawn(async move {
        let writer = match format {
            ArchiveFormat::Tar => Writer::Tar,
            ArchiveFormat::Zip => Writer::Zip(Box::default()),
        };
        let mut packing = Packing { sandbox, out: &out, writer, left: MAX_ENTRIES };
        let end = packing.all(root).await;
        out.finish(end).await;
    });
    Box::new(reader)
}

enum Writer {
    Tar,
    Zip(Box<ZipWriter>),
}

struct Packing<'o> {
    sandbox: Arc<dyn Sandbox>,
    out: &'o PipeWriter,
    writer: Writer,
    left: usize,
}

/// What an entry is called in the archive.
struct Named<'e> {
    name: &'e str,
    stat: &'e FileStat,
}

impl Packing<'_> {
    async fn all(&mut self, root: GuestPath) -> io::Result<()> {
        let mut waiting = vec![(root, String::new(), 0)];
        while let Some((folder, above, depth)) = waiting.pop() {
            if depth >= MAX_DEPTH {
                return Err(io::Error::other(format!("{folder} is too deep")));
            }
            let mut entries = match self.sandbox.list_files(&folder, self.left + 1).await {
                Ok(entries) => entries,
                Err(error) if depth > 0 && has_gone(&error) => continue,
                Err(error) => return Err(failed(error)),
            };
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            let mut folders = Vec::new();
            for Entry { name, .. } in entries {
                let too_many = || io::Error::other(format!("it has more than {MAX_ENTRIES} entries"));
                self.left = self.left.checked_sub(1).ok_or_else(too_many)?;
                let name = String::from_utf8(name)
                    .map_err(|_| io::Error::other(format!("a name in {folder} is not UTF-8")))?;
                let path = folder.join(&name).map_err(io::Error::other)?;
                let name = if above.is_empty() { name } else { format!("{above}/{name}") };
                let is_folder = self.one(&path, &name).await?;
                if is_folder {
                    folders.push((path, name, depth + 1));
                }
            }
            waiting.extend(folders.into_iter().rev());
        }
        let end = match &mut self.writer {
            Writer::Tar => END.to_vec(),
            Writer::Zip(writer) => std::mem::take(&mut **writer).finish().map_err(io::Error::other)?,
        };
        self.send(end).await
    }

    /// One entry, and whether it is a folder. What has gone meanwhile is left out, and so are pipes and sockets.
    async fn one(&mut self, path: &GuestPath, name: &str) -> io::Result<bool> {
        let stat = match self.sandbox.stat(path).await {
            Ok(stat) => stat,
            Err(error) if has_gone(&error) => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        let entry = Named { name, stat: &stat };
        match stat.kind {
            EntryKind::Other => Ok(false),
            EntryKind::Folder => {
                let begun = self.begin(&entry, b"")?;
                self.send(begun).await?;
                self.end(0).await?;
                Ok(true)
            }
            EntryKind::Link => {
                let target = match self.sandbox.read_link(path).await {
                    Ok(target) => target,
                    Err(error) if has_gone(&error) => return Ok(false),
                    Err(error) => return Err(failed(error)),
                };
                let begun = self.begin(&entry, &target)?;
                self.send(begun).await?;
                self.end(0).await?;
                Ok(false)
            }
            EntryKind::File => {
                let reader = match self.sandbox.read_file(path).await {
                    Ok(reader) => reader,
                    Err(error) if has_gone(&error) => return Ok(false),
                    Err(error) => return Err(failed(error)),
                };
                self.file(path, &entry, reader).await?;
                Ok(false)
            }
        }
    }

    /// A file is as long as it was when it was looked at. One that has become shorter cannot be told from a whole one
    /// by whoever reads, so it ends the archive.
    async fn file(&mut self, path: &GuestPath, entry: &Named<'_>, reader: Reader) -> io::Result<()> {
        let begun = self.begin(entry, b"")?;
        self.send(begun).await?;
        let size = entry.stat.size_bytes;
        let (mut reader, mut left) = (reader.take(size), size);
        while left > 0 {
            let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(left).unwrap_or(usize::MAX))];
            let count = reader.read(&mut piece).await?;
            if count == 0 {
                return Err(io::Error::other(format!("{path} became shorter while it was read")));
            }
            piece.truncate(count);
            left -= count as u64;
            if let Writer::Zip(writer) = &mut self.writer {
                piece = writer.data(&piece).map_err(io::Error::other)?;
            }
            self.send(piece).await?;
        }
        self.end(size).await
    }

    fn begin(&mut self, entry: &Named<'_>, link: &[u8]) -> io::Result<Vec<u8>> {
        let Named { name, stat } = entry;
        let name = if stat.kind == EntryKind::Folder { format!("{name}/") } else { (*name).to_owned() };
        let (path, mode) = (name.as_bytes(), stat.mode & 0o777);
        let seconds = u64::try_from(stat.modified_ms / 1000).unwrap_or(0);
        match &mut self.writer {
            Writer::Tar => {
                let (kind, size) = match stat.kind {
                    EntryKind::Folder => (Kind::Folder, 0),
                    EntryKind::Link => (Kind::Symlink, 0),
                    _ => (Kind::File, stat.size_bytes),
                };
                Ok(write_header(&Written { path, link, kind, mode, uid: OWNER, seconds, size }))
            }
            Writer::Zip(writer) => {
                let kind = match stat.kind {
                    EntryKind::Folder => ZipKind::Folder,
                    EntryKind::Link => ZipKind::Link,
                    _ => ZipKind::File,
                };
                writer.begin(path, kind, mode, seconds, link).map_err(io::Error::other)
            }
        }
    }

    async fn end(&mut self, size: u64) -> io::Result<()> {
        let end = match &mut self.writer {
            Writer::Tar => vec![0; (size.wrapping_neg() % BLOCK as u64) as usize],
            Writer::Zip(writer) => writer.end_entry().map_err(io::Error::other)?,
        };
        self.send(end).await
    }

    async fn send(&self, bytes: Vec<u8>) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.out.send(bytes).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Not there any more, or something else by now: a folder that became a link is not gone into.
fn has_gone(error: &BackendError) -> bool {
    matches!(error, BackendError::NotFound { .. })
}

fn failed(error: BackendError) -> io::Error {
    io::Error::other(error)
}
