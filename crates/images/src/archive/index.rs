//! The entries of an archive, by name, to be read in any order.

use super::Blobs;
use super::{docker, oci};
use crate::error::shown;
use crate::tar::{Kind, Source, TarReader};
use crate::unpack::components;
use crate::{ImageError, Result};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// An image has a few hundred files; this is where somebody tries to fill memory.
const MAX_ENTRIES: usize = 100_000;

/// Old archives link equal layers to each other, once.
const MAX_LINKS: usize = 8;

/// Whether the first name in an archive is one that images have and root filesystems do not.
pub(crate) fn is_archive_name(path: &[u8]) -> bool {
    let Ok(names) = components(path) else { return false };
    let Some(first) = names.first() else { return false };
    let is_hex = |name: &[u8]| name.len() == 64 && name.iter().all(u8::is_ascii_hexdigit);
    let known = [docker::MANIFEST, oci::LAYOUT, oci::INDEX, "blobs", "repositories"];
    known.iter().any(|name| name.as_bytes() == *first)
        || is_hex(first)
        || first.strip_suffix(b".json").is_some_and(is_hex)
}

#[derive(Debug)]
enum Entry {
    File { at: u64, size: u64 },
    Link(String),
}

/// An archive that lies in a file, uncompressed.
pub(crate) struct TarIndex {
    file: Arc<File>,
    entries: HashMap<String, Entry>,
}

impl TarIndex {
    pub(crate) fn new(file: File) -> Result<Self> {
        let file = Arc::new(file);
        let failed = |error: &dyn std::fmt::Display| ImageError::refused("the archive", error.to_string());
        let length = file.metadata().map_err(|error| failed(&error))?.len();
        let mut archive = TarReader::new(Part { file: Arc::clone(&file), at: 0, end: length });
        let mut entries = HashMap::new();
        while let Some(entry) = archive.next_entry().map_err(|error| failed(&error))? {
            if entries.len() >= MAX_ENTRIES {
                return Err(failed(&"it has more than 100000 entries, which no image has"));
            }
            let name = text(&components(&entry.path)?)?;
            match entry.kind {
                Kind::File => {
                    entries.insert(name, Entry::File { at: archive.position(), size: entry.size });
                }
                Kind::HardLink => {
                    entries.insert(name, Entry::Link(text(&components(&entry.link)?)?));
                }
                Kind::Symlink => {
                    entries.insert(name.clone(), Entry::Link(beside(&name, &entry.link)?));
                }
                Kind::Folder | Kind::Special => {}
            }
        }
        Ok(Self { file, entries })
    }

    fn find(&self, name: &str) -> Option<(u64, u64)> {
        let mut name = name;
        for _ in 0..MAX_LINKS {
            match self.entries.get(name)? {
                Entry::File { at, size } => return Some((*at, *size)),
                Entry::Link(target) => name = target,
            }
        }
        None
    }
}

/// Where a link leads, as a name in the archive; only names are looked at, no file.
fn beside(name: &str, link: &[u8]) -> Result<String> {
    let refused =
        || ImageError::refused(format!("the entry {name:?}"), format!("it links to {}", shown(link)));
    let link = std::str::from_utf8(link).map_err(|_| refused())?;
    if link.starts_with('/') {
        return Err(refused());
    }
    let mut names: Vec<&str> = name.split('/').collect();
    names.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => names.pop().map(drop).ok_or_else(refused)?,
            part => names.push(part),
        }
    }
    Ok(names.join("/"))
}

fn text(names: &[&[u8]]) -> Result<String> {
    let path = names.join(&b'/');
    String::from_utf8(path).map_err(|error| {
        ImageError::refused(format!("the entry {}", shown(error.as_bytes())), "its name is not UTF-8")
    })
}

impl Blobs for TarIndex {
    fn open(&self, name: &str) -> Result<Box<dyn Read>> {
        let clean = text(&components(name.as_bytes())?)?;
        let missing =
            || ImageError::refused("the archive", format!("it names {name:?}, and has no such entry"));
        let (at, size) = self.find(&clean).ok_or_else(missing)?;
        Ok(Box::new(Part { file: Arc::clone(&self.file), at, end: at + size }))
    }

    fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

/// A part of a file.
struct Part {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.end - self.at).unwrap_or(usize::MAX));
        let n = self.file.read_at(&mut buffer[..wanted], self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Source for Part {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        if bytes > self.end - self.at {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += bytes;
        Ok(())
    }
}
