//! Files from one sandbox to another, from descriptor to descriptor.
//!
//! The init of the one opens many at once, the init of the other makes as many, each with the rights of its own sandbox
//! user; the host moves the bytes, in the kernel where that can, and opens no path.

use crate::connection::{Connection, too_large};
use crate::report;
use crate::sandbox::{Changing, READ, WRITE, set_modified, stat_of};
use cofferdam_backend::{BackendError, EntryKind, MAX_OPEN_FILES, OpenFile, Result};
use cofferdam_core::GuestPath;
use cofferdam_linux::protocol::{self, MAX_OPENED};
use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Weak};

const _: () = assert!(MAX_OPEN_FILES <= MAX_OPENED);

/// After so many bytes of a file it is looked at whether they are still wanted.
const PIECE: u64 = 16 << 20;

/// A mode, the length of a name, and its NUL.
const BESIDE_NAME: usize = 16;

pub(crate) async fn open_files(
    connection: &Connection,
    folder: &GuestPath,
    names: Vec<String>,
) -> Result<Vec<OpenFile>> {
    let opened = open_each(connection, folder, READ, names.iter().map(|name| (0, name.as_str()))).await?;
    let look = |(name, content): (String, File)| match content.metadata().map(|metadata| stat_of(&metadata)) {
        Ok(stat) if stat.kind == EntryKind::File => Ok(OpenFile { name, stat, content }),
        // What waits behind a FIFO or a device is the guest's.
        Ok(_) => Err(report::not_plain(&folder.join(&name)?)),
        Err(error) => Err(BackendError::failed(format!("looking at {folder}/{name}"), error)),
    };
    names.into_iter().zip(opened).map(look).collect()
}

pub(crate) async fn take_files(
    connection: &Connection,
    folder: &GuestPath,
    files: Vec<OpenFile>,
    changing: Changing,
) -> Result<u64> {
    let names = files.iter().map(|file| (file.stat.mode & 0o777, file.name.as_str()));
    let made = open_each(connection, folder, WRITE, names).await?;
    let (folder, waits) = (folder.clone(), Arc::new(()));
    let waiting = Arc::downgrade(&waits);
    // One turn of a thread that may wait for the disk is for all of them.
    let copied = tokio::task::spawn_blocking(move || {
        let _changing = changing;
        let mut pairs = files.into_iter().zip(made);
        pairs.try_fold(0, |bytes, (file, to)| Ok(bytes + copy(&folder, &file, &to, &waiting)?))
    });
    copied.await.unwrap_or_else(|error| Err(BackendError::failed("copying files", io::Error::other(error))))
}

/// Has init open names of a folder: all of them, or none.
async fn open_each<'n>(
    connection: &Connection,
    folder: &GuestPath,
    flags: i32,
    names: impl ExactSizeIterator<Item = (u32, &'n str)> + Clone,
) -> Result<Vec<File>> {
    if names.len() == 0 {
        return Ok(Vec::new());
    }
    let request = connection.next();
    let room: usize = names.clone().map(|(_, name)| name.len() + BESIDE_NAME).sum();
    let mut buffer = vec![0; folder.as_str().len() + 64 + room];
    let message = protocol::encode_open_each(&mut buffer, request, flags, folder.relative(), names.clone());
    let (errno, mut fds) = connection.ask_each(request, message.map_err(too_large)?).await?;
    let opened: Vec<_> = (0..names.len()).map_while(|at| fds.take(at)).map(File::from).collect();
    match names.clone().nth(opened.len()) {
        None => Ok(opened),
        Some((_, name)) => Err(report::file_error(&folder.join(name)?, errno)),
    }
}

/// As many bytes as the file had when it was opened, for as long as somebody waits for them.
fn copy(folder: &GuestPath, from: &OpenFile, to: &File, waiting: &Weak<()>) -> Result<u64> {
    let OpenFile { name, stat, content } = from;
    let failed = |error| BackendError::failed(format!("writing {folder}/{name}"), error);
    if !to.metadata().map_err(failed)?.is_file() {
        return Err(report::not_plain(&folder.join(name)?));
    }
    let mut copied = 0;
    while copied < stat.size_bytes {
        if waiting.strong_count() == 0 {
            return Err(failed(io::Error::other("nobody waits for it any more")));
        }
        let piece = (stat.size_bytes - copied).min(PIECE);
        match io::copy(&mut content.take(piece), &mut &*to).map_err(failed)? {
            0 => {
                let reason = "it became shorter while it was read".to_owned();
                return Err(BackendError::NotPermitted { path: format!("{folder}/{name}"), reason });
            }
            more => copied += more,
        }
    }
    set_modified(to, stat.modified_ms);
    Ok(copied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_backend::FileStat;
    use std::io::{Seek, Write};

    fn scratch() -> File {
        File::from(rustix::fs::memfd_create("hand-over", rustix::fs::MemfdFlags::CLOEXEC).unwrap())
    }

    /// A file that had `size` bytes when it was looked at.
    fn file(content: &[u8], size: u64) -> OpenFile {
        let mut file = scratch();
        file.write_all(content).unwrap();
        file.rewind().unwrap();
        let stat = FileStat { kind: EntryKind::File, size_bytes: size, mode: 0o644, modified_ms: 1234 };
        OpenFile { name: "a".to_owned(), stat, content: file }
    }

    fn copied(from: &OpenFile, waiting: &Weak<()>) -> (Result<u64>, Vec<u8>) {
        let mut to = scratch();
        let copied = copy(&GuestPath::parse("path", "/workspace").unwrap(), from, &to, waiting);
        let mut found = Vec::new();
        to.rewind().unwrap();
        to.read_to_end(&mut found).unwrap();
        (copied, found)
    }

    #[test]
    fn as_much_is_copied_as_a_file_had_and_no_more() {
        let here = Arc::new(());
        let large: Vec<u8> = (0..PIECE + 9).map(|at| (at % 251) as u8).collect();
        for (content, size) in [(&b""[..], 0), (b"abc", 3), (b"abcdef", 3), (&large, PIECE + 9)] {
            let (copied, found) = copied(&file(content, size), &Arc::downgrade(&here));
            assert_eq!((copied.unwrap(), &*found), (size, &content[..size as usize]));
        }
    }

    #[test]
    fn what_became_shorter_is_no_whole_file() {
        let here = Arc::new(());
        let (copied, _) = copied(&file(b"abc", 4), &Arc::downgrade(&here));
        assert!(matches!(copied, Err(BackendError::NotPermitted { .. })), "{copied:?}");
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_not_copied() {
        let (copied, found) = copied(&file(b"abc", 3), &Weak::new());
        assert!(copied.is_err());
        assert_eq!(found, b"");
    }
}
