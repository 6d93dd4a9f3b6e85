//! A folder of the host as the archive of one layer, made while it is read.
//!
//! The same folder gives the same bytes: names are sorted, and only what a layer keeps is in them. A layer of the
//! store is written with what it deletes, as archives of layers say it.

use crate::tar::{BLOCK, END, Kind, Written, write_header};
use crate::{ImageError, Result};
use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

/// A folder that is being walked through, and the names in it that are still to come, last first.
#[derive(Debug)]
struct Open {
    folder: OwnedFd,
    path: Vec<u8>,
    names: Vec<Vec<u8>>,
}

/// What a name begins with that a layer deletes, and the name that says it of all that lies below in a folder.
const DELETED: &[u8] = b".wh.";
const DELETED_ALL: &[u8] = b".wh..wh..opq";

/// Says of a folder of a layer that nothing of lower layers shows in it.
const OPAQUE: &str = "user.overlay.opaque";

/// Reads as a tar archive.
#[derive(Debug)]
pub struct FolderTar {
    /// Whether it is a layer of the store, where devices are deletions.
    is_layer: bool,
    open: Vec<Open>,
    device: u64,
    /// Where a file with several names was first seen.
    seen: HashMap<u64, Vec<u8>>,
    /// What comes next: headers and padding, or the end.
    pending: io::Cursor<Vec<u8>>,
    /// A file, what of it is still to come, and the size that its header gave.
    file: Option<(File, u64, u64)>,
    is_done: bool,
    left_out: u64,
}

impl FolderTar {
    /// A folder of whoever.
    pub fn open(path: &Path) -> Result<Self> {
        Self::new(path, false)
    }

    /// A layer of the store.
    pub(crate) fn of_layer(path: &Path) -> Result<Self> {
        Self::new(path, true)
    }

    fn new(path: &Path, is_layer: bool) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let failed = |error: io::Error| ImageError::source(path, error);
        let folder = fs::open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let device = fs::fstat(&folder).map_err(|error| failed(error.into()))?.st_dev;
        let names = names(&folder).map_err(failed)?;
        Ok(Self {
            is_layer,
            open: vec![Open { folder, path: Vec::new(), names }],
            device,
            seen: HashMap::new(),
            pending: io::Cursor::new(Vec::new()),
            file: None,
            is_done: false,
            left_out: 0,
        })
    }

    /// Devices, pipes and sockets that are not in the archive.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Takes the next name. False at the end of the folder.
    fn advance(&mut self) -> io::Result<bool> {
        while let Some(current) = self.open.last_mut() {
            let Some(name) = current.names.pop() else {
                self.open.pop();
                continue;
            };
            let path = [&current.path[..], &name].concat();
            let stat = fs::statat(&current.folder, &*name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => self.folder(&name, path, &stat)?,
                FileType::RegularFile => self.file(&name, &path, &stat)?,
                FileType::Symlink => {
                    let target = fs::readlinkat(&current.folder, &*name, Vec::new())?;
                    self.put(&path, target.as_bytes(), Kind::Symlink, &stat, 0);
                }
                FileType::CharacterDevice if self.is_layer && stat.st_rdev == 0 => {
                    let deleted = [&current.path[..], DELETED, &name].concat();
                    self.put(&deleted, b"", Kind::File, &stat, 0);
                }
                // No sandbox has a use for them.
                _ => {
                    self.left_out += 1;
                    continue;
                }
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn folder(&mut self, name: &[u8], path: Vec<u8>, stat: &Stat) -> io::Result<()> {
        self.put(&path, b"", Kind::Folder, stat, 0);
        let Some(parent) = self.open.last() else { return Ok(()) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = fs::openat(&parent.folder, name, flags, Mode::empty())?;
        if self.is_layer && fs::fgetxattr(&folder, OPAQUE, &mut [0; 1]).is_ok_and(|n| n == 1) {
            let all = [&path[..], b"/", DELETED_ALL].concat();
            self.add(&all, b"", Kind::File, stat, 0);
        }
        // What is mounted there, such as /proc, is not of the folder.
        if fs::fstat(&folder)?.st_dev == self.device {
            let names = names(&folder)?;
            self.open.push(Open { folder, path: [&path[..], b"/"].concat(), names });
        }
        Ok(())
    }

    fn file(&mut self, name: &[u8], path: &[u8], stat: &Stat) -> io::Result<()> {
        if stat.st_nlink > 1 {
            if let Some(first) = self.seen.get(&stat.st_ino).cloned() {
                self.put(path, &first, Kind::HardLink, stat, 0);
                return Ok(());
            }
            self.seen.insert(stat.st_ino, path.to_owned());
        }
        let Some(parent) = self.open.last() else { return Ok(()) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(fs::openat(&parent.folder, name, flags, Mode::empty())?);
        let size = file.metadata()?.len();
        self.put(path, b"", Kind::File, stat, size);
        self.file = Some((file, size, size));
        Ok(())
    }

    fn put(&mut self, path: &[u8], link: &[u8], kind: Kind, stat: &Stat, size: u64) {
        self.pending = io::Cursor::new(Vec::new());
        self.add(path, link, kind, stat, size);
    }

    /// One more header after those that are to come.
    fn add(&mut self, path: &[u8], link: &[u8], kind: Kind, stat: &Stat, size: u64) {
        let written = Written {
            path,
            link,
            kind,
            mode: stat.st_mode,
            uid: stat.st_uid.into(),
            seconds: u64::try_from(stat.st_mtime).unwrap_or(0),
            size,
        };
        self.pending.get_mut().extend(write_header(&written));
    }
}

/// The names in a folder, last first.
fn names(folder: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names)
}

impl Read for FolderTar {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let n = self.pending.read(buffer)?;
            if n > 0 || self.is_done {
                return Ok(n);
            }
            if let Some((file, left, size)) = &mut self.file {
                let wanted = buffer.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                let n = file.read(&mut buffer[..wanted])?;
                if n > 0 {
                    *left -= n as u64;
                    return Ok(n);
                }
                if *left > 0 {
                    return Err(io::Error::other("a file became shorter while it was read"));
                }
                let padding = size.wrapping_neg() % BLOCK as u64;
                self.file = None;
                self.pending = io::Cursor::new(vec![0; padding as usize]);
                continue;
            }
            if !self.advance()? {
                self.is_done = true;
                self.pending = io::Cursor::new(END.to_vec());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tar::{Streamed, TarReader};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_reads_as_an_archive_and_always_the_same() {
        let folder = std::env::temp_dir().join(format!("cofferdam-folder-tar-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("b/deep")).unwrap();
        std::fs::write(folder.join("b/deep/file"), vec![7; 1000]).unwrap();
        std::fs::hard_link(folder.join("b/deep/file"), folder.join("c")).unwrap();
        symlink("/etc/passwd", folder.join("a")).unwrap();
        let read = || {
            let mut bytes = Vec::new();
            FolderTar::open(&folder).unwrap().read_to_end(&mut bytes).unwrap();
            bytes
        };
        let bytes = read();
        assert_eq!(bytes, read());
        let mut archive = TarReader::new(Streamed(&bytes[..]));
        let mut found = Vec::new();
        while let Some(entry) = archive.next_entry().unwrap() {
            found.push((String::from_utf8(entry.path).unwrap(), entry.kind, entry.size, entry.link));
        }
        std::fs::remove_dir_all(&folder).unwrap();
        let expected = [
            ("a", Kind::Symlink, 0, "/etc/passwd"),
            ("b", Kind::Folder, 0, ""),
            ("b/deep", Kind::Folder, 0, ""),
            ("b/deep/file", Kind::File, 1000, ""),
            ("c", Kind::HardLink, 0, "b/deep/file"),
        ];
        let expected =
            expected.map(|(path, kind, size, link)| (path.to_owned(), kind, size, link.as_bytes().to_vec()));
        assert_eq!(found, expected);
    }
}
