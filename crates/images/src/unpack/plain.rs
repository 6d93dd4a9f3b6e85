//! From any archive to a folder of the user's own. The archive may be hostile: nothing is made outside of the folder,
//! no link leads out of it, and nothing is written through one.

use super::path::components;
use super::place::{Parents, Place};
use super::{refused, times};
use crate::tar::{Entry, Kind, Streamed, TarError, TarReader};
use crate::{ImageError, Result};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// More is not a folder that anybody asked for.
const MAX_ENTRIES: usize = 200_000;

/// Unpacks a tar into a folder that is there, and says how many files and links it had. What has the same name is
/// replaced; a folder is gone into.
pub fn unpack_plain(content: impl Read, folder: &Path) -> Result<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let failed = |error: Errno| ImageError::source(folder, error);
    let root = fs::open(folder, flags, Mode::empty()).map_err(failed)?;
    let mut parents = Parents::new(root);
    let (mut archive, mut files) = (TarReader::new(Streamed(content)), 0);
    let mut folders: Vec<(Vec<u8>, u32, u64)> = Vec::new();
    let unreadable = |error: TarError| ImageError::refused("the archive", error.to_string());
    let mut left = MAX_ENTRIES;
    while let Some(entry) = archive.next_entry().map_err(unreadable)? {
        left = left.checked_sub(1).ok_or_else(|| refused(&entry, "the archive has too many entries"))?;
        let names = components(&entry.path)?;
        let Some((name, above)) = names.split_last() else { continue };
        let place = parents.place(above, name).map_err(|error| unplaced(&entry, folder, error))?;
        match entry.kind {
            Kind::Folder => {
                match fs::mkdirat(&*place.parent, &*place.name, Mode::RWXU) {
                    Err(Errno::EXIST) if place.kind().map_err(failed)? == Some(FileType::Directory) => {}
                    other => other.map_err(failed)?,
                }
                folders.push((names.join(&b'/'), entry.mode & 0o777, entry.seconds));
                continue;
            }
            Kind::File => file(&entry, &place, &mut archive.data(), folder)?,
            Kind::Symlink => {
                if leads_out(above.len(), &entry.link) {
                    return Err(refused(&entry, "it is a link that leads out"));
                }
                make_room(&place).map_err(failed)?;
                fs::symlinkat(&*entry.link, &*place.parent, &*place.name).map_err(failed)?;
            }
            Kind::HardLink | Kind::Special => return Err(refused(&entry, "it is no file, folder or link")),
        }
        files += 1;
    }
    // Those within first: a folder that may not be entered any more has everything in it by then.
    for (path, mode, seconds) in folders.into_iter().rev() {
        let names: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
        let Ok(open) = parents.folder(&names) else { continue };
        fs::fchmod(&open, Mode::from_raw_mode(mode)).map_err(failed)?;
        fs::futimens(&open, &times(seconds)).map_err(failed)?;
    }
    Ok(files)
}

fn file(entry: &Entry, place: &Place, content: &mut impl Read, folder: &Path) -> Result<()> {
    let failed = |error: io::Error| ImageError::source(folder, error);
    make_room(place).map_err(|error| failed(error.into()))?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = fs::openat(&*place.parent, &*place.name, flags, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(made.map_err(|error| failed(error.into()))?);
    io::copy(content, &mut file).map_err(failed)?;
    fs::fchmod(&file, Mode::from_raw_mode(entry.mode & 0o777)).map_err(|error| failed(error.into()))?;
    fs::futimens(&file, &times(entry.seconds)).map_err(|error| failed(error.into()))
}

/// A folder that is in the way stays.
fn make_room(place: &Place) -> rustix::io::Result<()> {
    match fs::unlinkat(&*place.parent, &*place.name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a link in a folder so deep below the top could lead above it.
fn leads_out(depth: usize, target: &[u8]) -> bool {
    let mut depth = depth as i64;
    let mut goes_above = false;
    for part in target.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".") {
        depth += if part == b".." { -1 } else { 1 };
        goes_above |= depth < 0;
    }
    target.is_empty() || target.starts_with(b"/") || target.contains(&0) || goes_above
}

fn unplaced(entry: &Entry, folder: &Path, error: Errno) -> ImageError {
    match error {
        Errno::LOOP | Errno::NOTDIR | Errno::XDEV => {
            refused(entry, "its path goes through a link, or through what is not a folder")
        }
        error => ImageError::source(folder, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tar::{END, Written, write_header};
    use std::os::unix::fs::PermissionsExt;

    fn entry<'e>(path: &'e str, kind: Kind, link: &'e str) -> Written<'e> {
        let (path, link) = (path.as_bytes(), link.as_bytes());
        Written { path, link, kind, mode: 0o4750, uid: 0, seconds: 1_700_000_000, size: 0 }
    }

    fn unpack(name: &str, entries: &[Written<'_>]) -> (std::path::PathBuf, Result<u64>) {
        let folder = std::env::temp_dir().join(format!("cofferdam-plain-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let archive: Vec<u8> = entries.iter().flat_map(write_header).chain(END).collect();
        let done = unpack_plain(&archive[..], &folder);
        (folder, done)
    }

    #[test]
    fn files_folders_and_links_are_made_without_special_bits() {
        let entries = [
            entry("a/", Kind::Folder, ""),
            entry("a/file", Kind::File, ""),
            entry("a/link", Kind::Symlink, "../b/./c"),
        ];
        let (folder, done) = unpack("made", &entries);
        assert_eq!(done.unwrap(), 2);
        let mode = |name: &str| folder.join(name).symlink_metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("a"), mode("a/file")), (0o750, 0o750));
        assert_eq!(std::fs::read_link(folder.join("a/link")).unwrap().to_str(), Some("../b/./c"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_leads_out_is_refused() {
        for (name, entries) in [
            ("absolute", vec![entry("/x", Kind::File, "")]),
            ("above", vec![entry("../x", Kind::File, "")]),
            ("link", vec![entry("x", Kind::Symlink, "/etc/passwd")]),
            ("climbs", vec![entry("a/x", Kind::Symlink, "../../x")]),
            (
                "through",
                vec![
                    entry("a", Kind::Symlink, "b"),
                    entry("b/", Kind::Folder, ""),
                    entry("a/x", Kind::File, ""),
                ],
            ),
            ("device", vec![entry("x", Kind::Special, "")]),
        ] {
            let (folder, done) = unpack(name, &entries);
            assert!(done.is_err(), "{name}");
            assert!(!folder.parent().unwrap().join("x").exists(), "{name}");
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
}
