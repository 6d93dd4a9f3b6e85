//! Folders of a session as archives, up and down, while their bytes go through.
//!
//! Every file is opened, made and renamed by the sandbox itself, which follows no link: what the guest puts in the way
//! meanwhile is refused, and reaches nothing that the guest could not reach by itself.

mod pack;
mod unpack;

use super::files::beside;
use super::{SessionError, Sessions};
use cofferdam_backend::{BackendError, EntryKind, Reader, Sandbox};
use cofferdam_core::{GuestPath, InvalidValue, SessionId};
use std::str::FromStr;
use std::sync::Arc;

/// More is not a folder that anybody sends on purpose.
pub(super) const MAX_ENTRIES: usize = 100_000;

/// What an archive may unpack to. The sandbox's own disk is mostly smaller.
const MAX_BYTES: u64 = 16 << 30;

const MAX_DEPTH: usize = 64;

const PIECE_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveFormat {
    Tar,
    Zip,
}

impl FromStr for ArchiveFormat {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        match text {
            "tar" => Ok(Self::Tar),
            "zip" => Ok(Self::Zip),
            _ => Err(InvalidValue::new("format", text, "it must be tar or zip")),
        }
    }
}

/// What an archive brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Everything but folders.
    pub files: u64,
    pub size_bytes: u64,
}

impl Sessions {
    /// A folder as an archive, made while it is read. Where it cannot be read on, reading fails.
    pub async fn read_archive(
        &self,
        id: &SessionId,
        generation: i64,
        path: &GuestPath,
        format: ArchiveFormat,
    ) -> Result<Reader, SessionError> {
        let live = self.find(id, generation)?;
        if live.sandbox.stat(path).await?.kind != EntryKind::Folder {
            return Err(not_a_folder(path));
        }
        Ok(pack::start(Arc::clone(&live.sandbox), path.clone(), format))
    }

    /// Unpacks an archive into a folder, which is made if it is not there. Until all of the archive was seen and is as
    /// it should be, nothing in the folder changes.
    pub async fn write_archive(
        &self,
        id: &SessionId,
        generation: i64,
        path: &GuestPath,
        format: ArchiveFormat,
        content: Reader,
    ) -> Result<Unpacked, SessionError> {
        let live = self.find(id, generation)?;
        let permit = self.heavy()?;
        let is_there = match live.sandbox.stat(path).await {
            Ok(stat) if stat.kind == EntryKind::Folder => true,
            Ok(_) => return Err(not_a_folder(path)),
            Err(BackendError::NotFound { .. }) => false,
            Err(error) => return Err(error.into()),
        };
        // At the top there is no room beside: /workspace and /tmp are filesystems of their own.
        let is_top = path.as_str().rfind('/') == Some(0);
        let draft = beside(&if is_top { path.join("archive")? } else { path.clone() })?;
        let order = unpack::Order { target: path.clone(), is_there, draft, format: Some(format) };
        // It goes on where whoever asked is gone, so that nothing of it is left.
        let runtime = tokio::runtime::Handle::current();
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            unpack::run(&live.sandbox, runtime, order, content)
        });
        done.await.map_err(|error| SessionError::Id(std::io::Error::other(error)))?
    }
}

/// Unpacks the archive of a project into a folder that is there, whatever kind of archive it is.
pub(crate) async fn unpack_project(
    sandbox: Arc<dyn Sandbox>,
    target: GuestPath,
    content: Reader,
) -> Result<Unpacked, SessionError> {
    let draft = beside(&target.join("project")?)?;
    let order = unpack::Order { target, is_there: true, draft, format: None };
    let runtime = tokio::runtime::Handle::current();
    let done = tokio::task::spawn_blocking(move || unpack::run(&sandbox, runtime, order, content));
    done.await.map_err(|error| SessionError::Id(std::io::Error::other(error)))?
}

fn not_a_folder(path: &GuestPath) -> SessionError {
    BackendError::NotPermitted { path: path.to_string(), reason: "it is not a folder".to_owned() }.into()
}

/// Unpacks into a folder that is not there, in the thread that asks.
#[cfg(test)]
pub(super) fn unpack_new(
    live: &Arc<super::live::Live>,
    runtime: tokio::runtime::Handle,
    content: Reader,
) -> Result<Unpacked, SessionError> {
    let folder = crate::task_env::workspace();
    let (target, draft) = (folder.join("target")?, folder.join("draft")?);
    let order = unpack::Order { target, is_there: false, draft, format: Some(ArchiveFormat::Tar) };
    unpack::run(&live.sandbox, runtime, order, content)
}
