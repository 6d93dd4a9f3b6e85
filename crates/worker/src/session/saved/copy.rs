//! Files of one sandbox into another on the same worker, without a stream in between.
//!
//! What comes out is what a stream would have brought: the same files are kept, the same are left out, and the same
//! trees are refused. Only the way is another: a folder's files are handed over as open descriptors, many at a time,
//! and several folders are on their way at once, because a question to a sandbox costs more than what it answers.

use super::write::refused;
use super::{MAX_DEPTH, MAX_ENTRIES, Saved};
use crate::session::SessionError;
use crate::task_env::workspace;
use cofferdam_backend::{BackendError, Entry, EntryKind, MAX_OPEN_FILES, Sandbox};
use cofferdam_core::GuestPath;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Folders and handfuls of files of one copy. Two sandboxes and the worker are busy with three of them.
const AT_ONCE: usize = 6;

/// Files of all copies together that are open at the same time. Each is two descriptors, of which a process may have 1024.
pub(in crate::session) const MAX_COPYING: usize = 192;

/// Files together are no more than this, unless it is one: nobody else waits long for its turn.
const MAX_HANDFUL_BYTES: u64 = 4 << 20;

/// Copies what is in the workspace of a frozen sandbox into that of a new one in which nothing has run. A sandbox that
/// cannot says so before anything was done.
pub(crate) async fn copy(
    from: &Arc<dyn Sandbox>,
    to: &Arc<dyn Sandbox>,
    copying: &Arc<Semaphore>,
) -> Result<Saved, SessionError> {
    from.open_files(&workspace(), Vec::new()).await?;
    to.take_files(&workspace(), Vec::new()).await?;
    // What a new workspace has is not what this one had; where it had it, it comes along.
    let _ = to.remove(&workspace().join(".artifacts")?, EntryKind::Folder).await;
    let mut saved = Saved::default();
    let mut made: BTreeMap<usize, Vec<Made>> = BTreeMap::new();
    let mut waiting = vec![Work::Folder { path: workspace(), depth: 1 }];
    let mut working = JoinSet::new();
    loop {
        while working.len() < AT_ONCE
            && let Some(work) = waiting.pop()
        {
            let (from, to, copying) = (Arc::clone(from), Arc::clone(to), Arc::clone(copying));
            working.spawn(async move { work.run(&*from, &*to, &copying).await });
        }
        let Some(done) = working.join_next().await else { break };
        let Found { counted, folder, work } = done.map_err(ended)??;
        saved.entries += counted.entries;
        saved.bytes = saved.bytes.saturating_add(counted.bytes);
        saved.skipped += counted.skipped;
        if saved.entries > MAX_ENTRIES {
            return Err(refused(&workspace(), "there are too many files to be kept"));
        }
        if let Some((depth, folder)) = folder {
            made.entry(depth).or_default().push(folder);
        }
        waiting.extend(work);
    }
    // The deepest first: what may not be written to any more has everything by then.
    for folders in made.into_values().rev() {
        restore(to, folders).await?;
    }
    Ok(saved)
}

/// A folder that was made, and how it is to be in the end.
struct Made {
    path: GuestPath,
    mode: u32,
    modified_ms: i64,
}

enum Work {
    Folder { path: GuestPath, depth: usize },
    Files { folder: GuestPath, names: Vec<String> },
}

#[derive(Default)]
struct Found {
    counted: Saved,
    folder: Option<(usize, Made)>,
    work: Vec<Work>,
}

impl Work {
    async fn run(
        self,
        from: &dyn Sandbox,
        to: &dyn Sandbox,
        copying: &Semaphore,
    ) -> Result<Found, SessionError> {
        match self {
            Self::Folder { path, depth } => folder(from, to, path, depth).await,
            Self::Files { folder, names } => {
                let _turn = copying.acquire_many(names.len() as u32).await.map_err(ended)?;
                let opened = from.open_files(&folder, names).await?;
                let bytes = to.take_files(&folder, opened).await?;
                Ok(Found { counted: Saved { bytes, ..Saved::default() }, ..Found::default() })
            }
        }
    }
}

/// Makes a folder and the links in it, and says what else there is.
async fn folder(
    from: &dyn Sandbox,
    to: &dyn Sandbox,
    path: GuestPath,
    depth: usize,
) -> Result<Found, SessionError> {
    if depth > MAX_DEPTH {
        return Err(refused(&path, "it is too deep to be kept"));
    }
    let mut found = Found::default();
    // The workspace itself is there, and is as a new one is.
    if depth > 1 {
        let stat = from.stat(&path).await?;
        to.make_folder(&path).await?;
        let made = Made { path: path.clone(), mode: stat.mode, modified_ms: stat.modified_ms };
        found.folder = Some((depth, made));
    }
    let (mut names, mut bytes) = (Vec::new(), 0_u64);
    for Entry { name, kind, size_bytes } in from.list_files(&path, usize::MAX).await? {
        let Ok(name) = String::from_utf8(name) else {
            return Err(refused(&path, "a name in it is not UTF-8, and cannot be kept; rename it"));
        };
        let below = path.join(&name)?;
        found.counted.entries += 1;
        match kind {
            EntryKind::Folder => found.work.push(Work::Folder { path: below, depth: depth + 1 }),
            EntryKind::File => {
                bytes = bytes.saturating_add(size_bytes);
                if names.len() == MAX_OPEN_FILES || (bytes > MAX_HANDFUL_BYTES && !names.is_empty()) {
                    let names = std::mem::take(&mut names);
                    found.work.push(Work::Files { folder: path.clone(), names });
                    bytes = size_bytes;
                }
                names.push(name);
            }
            EntryKind::Link => to.make_link(&below, &from.read_link(&below).await?).await?,
            EntryKind::Other => {
                found.counted.entries -= 1;
                found.counted.skipped += 1;
            }
        }
    }
    if !names.is_empty() {
        found.work.push(Work::Files { folder: path.clone(), names });
    }
    Ok(found)
}

/// Sets modes and times of folders, none of which is in another.
async fn restore(to: &Arc<dyn Sandbox>, folders: Vec<Made>) -> Result<(), SessionError> {
    let mut waiting = folders.into_iter();
    let mut working = JoinSet::new();
    loop {
        while working.len() < AT_ONCE
            && let Some(Made { path, mode, modified_ms }) = waiting.next()
        {
            let to = Arc::clone(to);
            working.spawn(async move { to.restore_folder(&path, mode, modified_ms).await });
        }
        match working.join_next().await {
            Some(done) => done.map_err(ended)??,
            None => return Ok(()),
        }
    }
}

fn ended(error: impl std::error::Error + Send + Sync + 'static) -> SessionError {
    BackendError::failed("copying the files", io::Error::other(error)).into()
}
