//! Folders, as init lists them.

use crate::connection::{Connection, too_large};
use crate::report;
use cofferdam_backend::{BackendError, Entry, EntryKind, Result};
use cofferdam_core::GuestPath;
use cofferdam_linux::protocol::{self, ListedEntry};
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;

/// An entry of a folder, and what a clone of it would bring along.
pub(crate) struct Listed {
    pub(crate) entry: Entry,
    pub(crate) mode: u32,
    pub(crate) links: u32,
    pub(crate) has_attributes: bool,
}

/// Has init list a folder, and look at attributes where that is to be close.
pub(crate) async fn list(
    connection: &Connection,
    path: &GuestPath,
    limit: usize,
    is_close: bool,
) -> Result<Vec<Listed>> {
    let request = connection.next();
    let mut buffer = vec![0; path.as_str().len() + 64];
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let message = protocol::encode_list(&mut buffer, request, limit, is_close, path.relative());
    let (errno, fd) = connection.ask(request, message.map_err(too_large)?).await?;
    let listing = fd.filter(|_| errno == 0).ok_or_else(|| report::file_error(path, errno))?;
    entries(listing).map_err(|e| BackendError::failed(format!("listing {path}"), e))
}

/// Reads a listing that init made.
fn entries(listing: OwnedFd) -> io::Result<Vec<Listed>> {
    let mut file = std::fs::File::from(listing);
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    let listed = ListedEntry::decode_all(&bytes)?.into_iter().map(|listed| {
        let kind = match listed.mode & libc::S_IFMT {
            libc::S_IFREG => EntryKind::File,
            libc::S_IFDIR => EntryKind::Folder,
            libc::S_IFLNK => EntryKind::Link,
            _ => EntryKind::Other,
        };
        let ListedEntry { mode, size_bytes, links, has_attributes, name } = listed;
        Listed {
            entry: Entry { name: name.to_bytes().to_vec(), kind, size_bytes },
            mode,
            links,
            has_attributes,
        }
    });
    let mut entries: Vec<Listed> = listed.collect();
    entries.sort_by(|a, b| a.entry.name.cmp(&b.entry.name));
    Ok(entries)
}
