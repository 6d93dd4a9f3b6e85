//! From a layer's archive to a folder that an overlay takes as one of its layers.
//!
//! Every path is opened below the folder by the kernel, without following a link (`openat2`), so that not even an
//! archive that makes a link and then writes through it leaves the folder. What is taken over of an entry is its
//! name, its bytes, its time and its permission bits. Owners are not: every file is the store's, whom no sandbox
//! is, and a writable root shows them as the sandbox user's. Set-user-id bits, devices and attributes stay out.
//! Deletions become what overlays know: a device 0:0 for one name, an attribute for a whole folder.

mod path;
mod place;
mod plain;

use crate::error::shown;
use crate::limits::{Budget, is_too_large};
use crate::tar::{Entry, Kind, Source, TarError, TarReader};
use crate::{ImageError, Result};
pub use path::components;
use place::{Parents, Place};
pub use plain::unpack_plain;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::collections::HashMap;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Beginnings of names by which a layer says that something is deleted.
const WHITEOUT: &[u8] = b".wh.";
/// The folder that it is in shows nothing of the layers below.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// What an old filesystem left in layers; it means nothing.
const WHITEOUT_META: &[u8] = b".wh..wh.";

/// The user that a sandbox's processes are.
const SANDBOX_USER: u64 = 1000;

/// Where the sandbox has mounts of its own: a link there would lead them astray.
const MOUNT_POINTS: [&[u8]; 7] = [b"dev", b"etc", b"proc", b"run", b"sys", b"tmp", b"workspace"];

/// What came out of a layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unpacked {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    /// Devices and pipes, and what lies in /dev, which were left out.
    pub(crate) left_out: u64,
}

pub(crate) struct Unpacker<'b> {
    folder: PathBuf,
    parents: Parents,
    budget: &'b mut Budget,
    /// Folders get their modes and times at the end: entries to come may lie in them.
    folders: HashMap<Vec<u8>, (u32, u64)>,
    buffer: Vec<u8>,
    done: Unpacked,
}

impl<'b> Unpacker<'b> {
    /// Unpacks into `root`, an empty folder at `folder`.
    pub(crate) fn new(folder: &Path, root: OwnedFd, budget: &'b mut Budget) -> Self {
        Self {
            folder: folder.to_owned(),
            parents: Parents::new(root),
            budget,
            folders: HashMap::new(),
            buffer: vec![0; 128 << 10],
            done: Unpacked::default(),
        }
    }

    /// Unpacks everything up to the end mark.
    pub(crate) fn unpack<S: Source>(mut self, archive: &mut TarReader<S>) -> Result<Unpacked> {
        while let Some(entry) = archive.next_entry().map_err(|error| self.read_error(error))? {
            self.budget.entry()?;
            self.entry(&entry, archive)?;
        }
        self.finish_folders()?;
        Ok(self.done)
    }

    fn entry<S: Source>(&mut self, entry: &Entry, archive: &mut TarReader<S>) -> Result<()> {
        let names = components(&entry.path)?;
        let Some((name, parents)) = names.split_last() else {
            // The root itself; its mode is of no interest, as the sandbox's own layer lies above it.
            return match entry.kind {
                Kind::Folder => Ok(()),
                _ => Err(refused(entry, "it would replace the root folder")),
            };
        };
        if parents.is_empty() && MOUNT_POINTS.contains(name) && entry.kind != Kind::Folder {
            return Err(refused(
                entry,
                "the sandbox mounts something there, so it must be a folder or absent",
            ));
        }
        // The sandbox has a /dev of its own, which covers this one.
        if parents.first() == Some(&&b"dev"[..]) && entry.kind != Kind::Folder {
            self.done.left_out += 1;
            return Ok(());
        }
        let place = self.parents.place(parents, name).map_err(|error| self.place_error(entry, error))?;
        if name.starts_with(WHITEOUT) {
            return self.whiteout(entry, &place);
        }
        match entry.kind {
            Kind::Special => {
                self.done.left_out += 1;
                return Ok(());
            }
            Kind::Folder => self.folder(entry, &names, &place)?,
            Kind::File => self.file(entry, &place, archive)?,
            Kind::Symlink => self.symlink(entry, &place)?,
            Kind::HardLink => self.hard_link(entry, &place)?,
        }
        self.done.entries += 1;
        Ok(())
    }

    fn file<S: Source>(&mut self, entry: &Entry, place: &Place, archive: &mut TarReader<S>) -> Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || fs::openat(&*place.parent, &*place.name, flags, Mode::RUSR | Mode::WUSR);
        let file = match open() {
            Err(Errno::EXIST) => {
                self.remove(entry, place)?;
                open()
            }
            other => other,
        };
        let file = file.map_err(|error| self.write_error(error))?;
        let mut data = archive.data();
        loop {
            let n = match data.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) => return Err(self.read_error(error.into())),
            };
            let mut rest = &self.buffer[..n];
            while !rest.is_empty() {
                let written = rustix::io::write(&file, rest)
                    .map_err(|error| ImageError::store(&self.folder, "writing a file", error))?;
                rest = &rest[written..];
            }
            self.done.bytes += n as u64;
        }
        fs::fchmod(&file, Mode::from_raw_mode(file_mode(entry))).map_err(|error| self.write_error(error))?;
        fs::futimens(&file, &times(entry.seconds)).map_err(|error| self.write_error(error))
    }

    fn folder(&mut self, entry: &Entry, names: &[&[u8]], place: &Place) -> Result<()> {
        let make = || fs::mkdirat(&*place.parent, &*place.name, Mode::RWXU);
        match make() {
            Err(Errno::EXIST) => match place.kind().map_err(|error| self.write_error(error))? {
                Some(FileType::Directory) => {}
                was => {
                    self.remove(entry, place)?;
                    make().map_err(|error| self.write_error(error))?;
                    // What lay below under that name was deleted by this layer before.
                    if was == Some(FileType::CharacterDevice) {
                        self.set_opaque(&place.open_folder().map_err(|error| self.write_error(error))?)?;
                    }
                }
            },
            other => other.map_err(|error| self.write_error(error))?,
        }
        self.folders.insert(names.join(&b'/'), (folder_mode(entry), entry.seconds));
        Ok(())
    }

    fn symlink(&mut self, entry: &Entry, place: &Place) -> Result<()> {
        if entry.link.is_empty() || entry.link.contains(&0) {
            return Err(refused(entry, "it is a link to nothing"));
        }
        let make = || fs::symlinkat(&*entry.link, &*place.parent, &*place.name);
        match make() {
            Err(Errno::EXIST) => {
                self.remove(entry, place)?;
                make().map_err(|error| self.write_error(error))
            }
            other => other.map_err(|error| self.write_error(error)),
        }
    }

    /// A second name for a file of the same layer.
    fn hard_link(&mut self, entry: &Entry, place: &Place) -> Result<()> {
        let missing =
            || refused(entry, &format!("it is a link to {}, which is not in the layer", shown(&entry.link)));
        let names = components(&entry.link)?;
        let Some((name, parents)) = names.split_last() else { return Err(missing()) };
        let target = self.parents.existing(parents, name).map_err(|_| missing())?;
        match target.kind().map_err(|error| self.write_error(error))? {
            Some(FileType::RegularFile | FileType::Symlink) => {}
            _ => return Err(missing()),
        }
        if (target.parent_id, &target.name) == (place.parent_id, &place.name) {
            return Ok(());
        }
        let link =
            || fs::linkat(&*target.parent, &*target.name, &*place.parent, &*place.name, AtFlags::empty());
        match link() {
            Err(Errno::EXIST) => {
                self.remove(entry, place)?;
                link().map_err(|error| self.write_error(error))
            }
            other => other.map_err(|error| self.write_error(error)),
        }
    }

    fn whiteout(&mut self, entry: &Entry, place: &Place) -> Result<()> {
        if &*place.name == OPAQUE {
            let parent = place.open_parent().map_err(|error| self.write_error(error))?;
            return self.set_opaque(&parent);
        }
        if place.name.starts_with(WHITEOUT_META) {
            return Ok(());
        }
        let gone = place.renamed(&place.name[WHITEOUT.len()..]);
        if gone.name.is_empty() || &*gone.name == b"." || &*gone.name == b".." {
            return Err(refused(entry, "it deletes nothing that could be there"));
        }
        match gone.kind().map_err(|error| self.write_error(error))? {
            // The layer deletes what lies below, and has something of its own in its place.
            Some(FileType::Directory) => {
                self.set_opaque(&gone.open_folder().map_err(|error| self.write_error(error))?)
            }
            Some(_) => Ok(()),
            None => fs::mknodat(&*gone.parent, &*gone.name, FileType::CharacterDevice, Mode::empty(), 0)
                .map_err(|error| ImageError::store(&self.folder, "marking a deletion", error)),
        }
    }

    fn set_opaque(&self, folder: &OwnedFd) -> Result<()> {
        fs::fsetxattr(folder, c"user.overlay.opaque", b"y", fs::XattrFlags::empty()).map_err(|error| {
            ImageError::store(
                &self.folder,
                "marking a folder as replaced (its filesystem must have user attributes)",
                error,
            )
        })
    }

    /// Makes room for an entry that comes a second time; the last one counts.
    fn remove(&mut self, entry: &Entry, place: &Place) -> Result<()> {
        let is_folder = place.kind().map_err(|error| self.write_error(error))? == Some(FileType::Directory);
        let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        self.parents.forget();
        match fs::unlinkat(&*place.parent, &*place.name, flags) {
            Err(Errno::NOTEMPTY) => Err(refused(entry, "it would replace a folder that has something in it")),
            other => other.map_err(|error| self.write_error(error)),
        }
    }

    fn finish_folders(&mut self) -> Result<()> {
        for (path, (mode, seconds)) in std::mem::take(&mut self.folders) {
            let names: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
            // One that a later entry replaced has no mode to get.
            let Ok(folder) = self.parents.folder(&names) else { continue };
            fs::fchmod(&folder, Mode::from_raw_mode(mode)).map_err(|error| self.write_error(error))?;
            fs::futimens(&folder, &times(seconds)).map_err(|error| self.write_error(error))?;
        }
        Ok(())
    }

    fn place_error(&self, entry: &Entry, error: Errno) -> ImageError {
        match error {
            // A link in the last place is no folder, one before it is a loop.
            Errno::LOOP | Errno::NOTDIR => {
                refused(entry, "its path goes through a symbolic link, or through what is not a folder")
            }
            Errno::XDEV => refused(entry, "its path leads out of the image"),
            error => self.write_error(error),
        }
    }

    fn write_error(&self, error: Errno) -> ImageError {
        ImageError::store(&self.folder, "unpacking a layer", error)
    }

    fn read_error(&self, error: TarError) -> ImageError {
        match error {
            TarError::Read(error) if is_too_large(&error) => self.budget.too_large(),
            TarError::Read(error) => ImageError::refused("the archive", error.to_string()),
            malformed => ImageError::refused("the archive", malformed.to_string()),
        }
    }
}

fn refused(entry: &Entry, why: &str) -> ImageError {
    ImageError::refused(format!("the entry {}", shown(&entry.path)), why)
}

/// Permission bits without set-user-id. What its owner may read or execute, and the owner is whom the sandbox's
/// processes run as, everyone may: that owner is not kept.
fn plain_mode(entry: &Entry) -> u32 {
    let mode = entry.mode & 0o777;
    if entry.uid == SANDBOX_USER { mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6 } else { mode }
}

/// The store can always read its files, so that they can be looked through.
fn file_mode(entry: &Entry) -> u32 {
    plain_mode(entry) | 0o400
}

/// The store can always remove its folders.
fn folder_mode(entry: &Entry) -> u32 {
    plain_mode(entry) | (entry.mode & 0o1000) | 0o700
}

fn times(seconds: u64) -> Timestamps {
    // Filesystems end at different years, none before this one.
    let time = Timespec { tv_sec: seconds.min(u32::MAX.into()) as i64, tv_nsec: 0 };
    Timestamps { last_access: time, last_modification: time }
}

#[cfg(test)]
mod tests;
