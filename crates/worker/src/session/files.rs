//! Files of a session, from outside. The sandbox opens every one of them itself, and follows no link; nothing here
//! believes a name, a kind or a size for longer than it takes to look again.

use super::{SessionError, Sessions};
use cofferdam_backend::{BackendError, Entry, EntryKind, FileStat, Reader, Sandbox};
use cofferdam_core::{GuestPath, InvalidValue, SessionId};
use rustix::rand::{GetRandomFlags, getrandom};

/// Deeper than anything that people make by hand.
const MAX_DEPTH: usize = 64;

/// So many entries are removed by one request. More are a reason to delete the session.
const MAX_REMOVED: usize = 100_000;

/// One thing of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Below the folder that was asked for; bytes that are not UTF-8 are replaced.
    pub path: String,
    pub kind: EntryKind,
    pub size_bytes: u64,
}

impl Sessions {
    pub async fn stat_file(
        &self,
        id: &SessionId,
        generation: i64,
        path: &GuestPath,
    ) -> Result<FileStat, SessionError> {
        Ok(self.find(id, generation)?.sandbox.stat(path).await?)
    }

    /// A plain file, with what is known of it.
    pub async fn read_file(
        &self,
        id: &SessionId,
        generation: i64,
        path: &GuestPath,
    ) -> Result<(FileStat, Reader), SessionError> {
        self.read_file_from(id, generation, path, 0).await
    }

    /// A plain file from a byte on, with what is known of it.
    pub async fn read_file_from(
        &self,
        id: &SessionId,
        generation: i64,
        path: &GuestPath,
        first: u64,
    ) -> Result<(FileStat, Reader), SessionError> {
        let live = self.find(id, generation)?;
        let stat = live.sandbox.stat(path).await?;
        if stat.kind == EntryKind::Folder {
            return Err(not_plain(path, "it is a folder"));
        }
        let reader = live.sandbox.read_file_from(path, first).await?;
        Ok((stat, reader))
    }

    /// Makes or replaces a plain file, parents included. Until all of it is there, the old one is.
    pub async fn write_file(
        &self,
        id: &SessionId,
        generation: i64,
        path: &GuestPath,
        mode: u32,
        content: Reader,
    ) -> Result<u64, SessionError> {
        let live = self.find(id, generation)?;
        if live.sandbox.stat(path).await.is_ok_and(|stat| stat.kind == EntryKind::Folder) {
            return Err(not_plain(path, "it is a folder"));
        }
        let (draft, path) = (beside(path)?, path.clone());
        // It goes on where whoever asked is gone: what was begun is cut off by its content, and then removed.
        let writing = tokio::spawn(async move {
            let written = live.sandbox.write_file(&draft, mode, content).await;
            let done = match written {
                Ok(bytes) => live.sandbox.rename(&draft, &path).await.map(|()| bytes),
                Err(error) => Err(error),
            };
            if done.is_err() {
                // The guest may have been quicker, and the sandbox may be gone.
                let _ = live.sandbox.remove(&draft, EntryKind::File).await;
            }
            done
        });
        Ok(writing.await.map_err(|error| SessionError::Id(std::io::Error::other(error)))??)
    }

    pub async fn make_folder(
        &self,
        id: &SessionId,
        generation: i64,
        path: &GuestPath,
    ) -> Result<(), SessionError> {
        Ok(self.find(id, generation)?.sandbox.make_folder(path).await?)
    }

    pub async fn move_file(
        &self,
        id: &SessionId,
        generation: i64,
        from: &GuestPath,
        to: &GuestPath,
    ) -> Result<(), SessionError> {
        Ok(self.find(id, generation)?.sandbox.rename(from, to).await?)
    }

    /// Removes a file; a folder only where it is empty, or with everything in it where that is asked for.
    pub async fn remove_file(
        &self,
        id: &SessionId,
        generation: i64,
        path: &GuestPath,
        is_recursive: bool,
    ) -> Result<(), SessionError> {
        let live = self.find(id, generation)?;
        let stat = live.sandbox.stat(path).await?;
        if stat.kind == EntryKind::Folder && is_recursive {
            return remove_tree(&*live.sandbox, path).await;
        }
        Ok(live.sandbox.remove(path, stat.kind).await?)
    }

    /// What is in a folder, and in the folders in it, down to a depth. At most `limit` of it, and whether there is more.
    pub async fn list_files(
        &self,
        id: &SessionId,
        generation: i64,
        path: &GuestPath,
        depth: usize,
        limit: usize,
    ) -> Result<(Vec<Listed>, bool), SessionError> {
        let live = self.find(id, generation)?;
        let (mut found, mut waiting) = (Vec::new(), vec![(path.clone(), String::new(), 1)]);
        while let Some((folder, above, level)) = waiting.pop() {
            let entries = match live.sandbox.list_files(&folder, limit + 1).await {
                Ok(entries) => entries,
                // One that has gone meanwhile, or cannot be looked into, is listed and no more.
                Err(_) if level > 1 => continue,
                Err(error) => return Err(error.into()),
            };
            for Entry { name, kind, size_bytes } in entries {
                if found.len() >= limit {
                    return Ok((found, true));
                }
                let name = String::from_utf8_lossy(&name).into_owned();
                let path = if above.is_empty() { name.clone() } else { format!("{above}/{name}") };
                if kind == EntryKind::Folder
                    && level < depth.min(MAX_DEPTH)
                    && let Ok(inner) = folder.join(&name)
                {
                    waiting.push((inner, path.clone(), level + 1));
                }
                found.push(Listed { path, kind, size_bytes });
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((found, false))
    }
}

fn not_plain(path: &GuestPath, reason: &str) -> SessionError {
    BackendError::NotPermitted { path: path.to_string(), reason: reason.to_owned() }.into()
}

/// A name in the same folder that nobody has.
pub(super) fn beside(path: &GuestPath) -> Result<GuestPath, SessionError> {
    let mut random = [0; 8];
    getrandom(&mut random, GetRandomFlags::empty()).map_err(|error| SessionError::Id(error.into()))?;
    let word: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let whole = || InvalidValue::new("path", path.as_str(), "it must name a file");
    let (folder, name) =
        path.as_str().rsplit_once('/').filter(|(_, name)| !name.is_empty()).ok_or_else(whole)?;
    // Names have an end, and so has this one.
    let short: String = name.chars().take(40).collect();
    Ok(GuestPath::parse("path", &format!("{folder}/.{short}.{word}.part"))?)
}

/// Removes a folder and everything in it, from the bottom up.
pub(super) async fn remove_tree(sandbox: &dyn Sandbox, path: &GuestPath) -> Result<(), SessionError> {
    let mut left = MAX_REMOVED;
    let mut open = vec![path.clone()];
    while let Some(folder) = open.last().cloned() {
        if open.len() > MAX_DEPTH {
            return Err(not_plain(path, "it is too deep to be removed at once"));
        }
        let mut inner = None;
        for Entry { name, kind, .. } in sandbox.list_files(&folder, MAX_REMOVED).await? {
            let name =
                String::from_utf8(name).map_err(|_| not_plain(&folder, "a name in it is not UTF-8"))?;
            let child = folder.join(&name)?;
            if kind == EntryKind::Folder {
                inner = Some(child);
                break;
            }
            left = left.checked_sub(1).ok_or_else(|| not_plain(path, "it has too many entries"))?;
            sandbox.remove(&child, kind).await?;
        }
        match inner {
            Some(child) => {
                left = left.checked_sub(1).ok_or_else(|| not_plain(path, "it has too many entries"))?;
                open.push(child);
            }
            None => {
                sandbox.remove(&folder, EntryKind::Folder).await?;
                open.pop();
            }
        }
    }
    Ok(())
}
