//! Files become a stream.

use super::{END, FILE, FOLDER, LINK, MARK, MAX_DEPTH, MAX_ENTRIES, MAX_FOLDER_BYTES, Saved};
use crate::session::SessionError;
use crate::task_env::workspace;
use cofferdam_backend::{BackendError, Entry, EntryKind, FileStat, Sandbox};
use cofferdam_core::GuestPath;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, BufWriter};

const BUFFER: usize = 256 << 10;

/// Writes away everything in the workspace. At most `most` bytes of files.
pub(crate) async fn save(
    sandbox: &dyn Sandbox,
    to: impl AsyncWrite + Send + Unpin,
    most: u64,
) -> Result<Saved, SessionError> {
    let mut out =
        Out { to: BufWriter::with_capacity(BUFFER, to), saved: Saved::default(), most, folder_bytes: 0 };
    out.to.write_all(MARK).await.map_err(lost)?;
    let mut waiting = vec![(workspace(), String::new(), 1)];
    while let Some((folder, below, depth)) = waiting.pop() {
        if depth > MAX_DEPTH {
            return Err(refused(&folder, "it is too deep to be kept"));
        }
        for Entry { name, kind, .. } in sandbox.list_files(&folder, usize::MAX).await? {
            let Ok(name) = String::from_utf8(name) else {
                return Err(refused(&folder, "a name in it is not UTF-8, and cannot be kept; rename it"));
            };
            let path = folder.join(&name)?;
            let below = if below.is_empty() { name } else { format!("{below}/{name}") };
            out.count(&path)?;
            match kind {
                EntryKind::Folder => {
                    out.folder_bytes += path.as_str().len();
                    if out.folder_bytes > MAX_FOLDER_BYTES {
                        return Err(refused(&path, "the names of folders are too long together to be kept"));
                    }
                    let stat = sandbox.stat(&path).await?;
                    out.head(FOLDER, &stat, &below).await?;
                    waiting.push((path, below, depth + 1));
                }
                EntryKind::File => out.file(sandbox, &path, &below).await?,
                EntryKind::Link => {
                    let (stat, target) = (sandbox.stat(&path).await?, sandbox.read_link(&path).await?);
                    out.head(LINK, &stat, &below).await?;
                    out.to.write_u32_le(target.len() as u32).await.map_err(lost)?;
                    out.to.write_all(&target).await.map_err(lost)?;
                }
                EntryKind::Other => {
                    out.saved.entries -= 1;
                    out.saved.skipped += 1;
                }
            }
        }
    }
    out.to.write_u8(END).await.map_err(lost)?;
    out.to.write_u64_le(out.saved.entries).await.map_err(lost)?;
    out.to.shutdown().await.map_err(lost)?;
    Ok(out.saved)
}

struct Out<W: AsyncWrite> {
    to: BufWriter<W>,
    saved: Saved,
    most: u64,
    folder_bytes: usize,
}

impl<W: AsyncWrite + Send + Unpin> Out<W> {
    fn count(&mut self, path: &GuestPath) -> Result<(), SessionError> {
        self.saved.entries += 1;
        match self.saved.entries > MAX_ENTRIES {
            true => Err(refused(path, "there are too many files to be kept")),
            false => Ok(()),
        }
    }

    async fn head(&mut self, kind: u8, stat: &FileStat, below: &str) -> Result<(), SessionError> {
        let write = async {
            self.to.write_u8(kind).await?;
            self.to.write_u32_le(stat.mode).await?;
            self.to.write_i64_le(stat.modified_ms).await?;
            self.to.write_u32_le(below.len() as u32).await?;
            self.to.write_all(below.as_bytes()).await
        };
        write.await.map_err(lost)
    }

    async fn file(
        &mut self,
        sandbox: &dyn Sandbox,
        path: &GuestPath,
        below: &str,
    ) -> Result<(), SessionError> {
        let (stat, reader) = sandbox.open_file(path).await?;
        self.saved.bytes = self.saved.bytes.saturating_add(stat.size_bytes);
        // A file may say that it is larger than the disk that it is on.
        if self.saved.bytes > self.most {
            return Err(refused(path, &format!("the files have more than {} bytes together", self.most)));
        }
        self.head(FILE, &stat, below).await?;
        self.to.write_u64_le(stat.size_bytes).await.map_err(lost)?;
        // A piece as large as the file, or as the buffer: each is a turn of another thread.
        let piece = usize::try_from(stat.size_bytes).unwrap_or(BUFFER).clamp(1, BUFFER);
        let mut reader = BufReader::with_capacity(piece, reader.take(stat.size_bytes));
        let copied = tokio::io::copy_buf(&mut reader, &mut self.to).await.map_err(lost)?;
        match copied == stat.size_bytes {
            true => Ok(()),
            false => Err(refused(path, "it became shorter while it was read")),
        }
    }
}

pub(super) fn refused(path: &GuestPath, reason: &str) -> SessionError {
    BackendError::NotPermitted { path: path.to_string(), reason: reason.to_owned() }.into()
}

fn lost(error: io::Error) -> SessionError {
    BackendError::failed("writing the files away", error).into()
}
