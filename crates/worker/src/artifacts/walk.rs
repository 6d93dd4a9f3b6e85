//! The walk through a sandbox's artifacts folder, bounded in every direction.

use super::capped::Capped;
use super::path::ArtifactPath;
use crate::job::ArtifactsWanted;
use crate::task_env::ARTIFACTS_DIR;
use cofferdam_backend::{BackendError, Entry, EntryKind, Sandbox};
use cofferdam_core::{Artifact, GuestPath, SkippedArtifact};
use std::collections::HashMap;

/// Deeper than any sensible output, and within what a path may be long.
const DEPTH_MAX: usize = 32;

/// Enough for the output of a large build; beyond it an archive is the better artifact.
const ENTRIES_MAX: usize = 10_000;

/// What was taken, or only found, and what was not. Both are sorted by path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Collected {
    pub(crate) taken: Vec<Artifact>,
    pub(crate) skipped: Vec<SkippedArtifact>,
}

/// The size and the time of each file that was looked at, by its path.
pub(crate) type Known = HashMap<String, (u64, i64)>;

/// Walks the artifacts folder; `bytes_max` bounds what is stored of all files together.
pub(crate) async fn collect(sandbox: &dyn Sandbox, wanted: ArtifactsWanted, bytes_max: u64) -> Collected {
    if matches!(wanted, ArtifactsWanted::No) {
        return Collected::default();
    }
    walk(sandbox, wanted, bytes_max, None).await.0
}

/// The same, for what is new or has changed since it was last looked at.
pub(crate) async fn collect_new(
    sandbox: &dyn Sandbox,
    wanted: ArtifactsWanted,
    bytes_max: u64,
    known: &mut Known,
) -> Collected {
    let before = std::mem::take(known);
    let (found, now) = walk(sandbox, wanted, bytes_max, Some(before)).await;
    *known = now;
    found
}

async fn walk(
    sandbox: &dyn Sandbox,
    wanted: ArtifactsWanted,
    bytes_max: u64,
    before: Option<Known>,
) -> (Collected, Known) {
    let mut walk = Walk {
        sandbox,
        wanted,
        bytes_left: bytes_max,
        entries_left: ENTRIES_MAX,
        folders: vec![None],
        found: Collected::default(),
        before,
        now: Known::new(),
    };
    while let Some(folder) = walk.folders.pop() {
        walk.folder(folder).await;
    }
    walk.found.taken.sort_by(|a, b| a.path.cmp(&b.path));
    walk.found.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    (walk.found, walk.now)
}

struct Walk<'a> {
    sandbox: &'a dyn Sandbox,
    wanted: ArtifactsWanted,
    bytes_left: u64,
    entries_left: usize,
    /// Still to be listed; `None` is the artifacts folder itself.
    folders: Vec<Option<ArtifactPath>>,
    found: Collected,
    /// What is not new, where only that is wanted.
    before: Option<Known>,
    now: Known,
}

impl Walk<'_> {
    async fn folder(&mut self, folder: Option<ArtifactPath>) {
        let shown = folder.as_ref().map_or_else(|| ".".to_owned(), ToString::to_string);
        let Ok(path) = guest_path(folder.as_ref()) else {
            return self.skip(shown, "its path is too long");
        };
        // One more than there is room for tells whether any were left out.
        match self.sandbox.list_files(&path, self.entries_left + 1).await {
            Ok(mut entries) => {
                if entries.len() > self.entries_left {
                    entries.truncate(self.entries_left);
                    let reason = format!("it has more entries than fit in {ENTRIES_MAX}; the rest was left");
                    self.skip(shown.clone(), &reason);
                }
                self.entries_left -= entries.len();
                for entry in entries {
                    self.entry(folder.as_ref(), &shown, entry).await;
                }
            }
            // A job may remove its own artifacts folder.
            Err(BackendError::NotFound { .. }) => {}
            Err(error) => self.skip(shown, &error.to_string()),
        }
    }

    async fn entry(&mut self, folder: Option<&ArtifactPath>, folder_shown: &str, entry: Entry) {
        let path = match ArtifactPath::below(folder, &entry.name) {
            Ok(path) => path,
            Err(reason) => {
                let name = String::from_utf8_lossy(&entry.name);
                let shown =
                    if folder.is_some() { format!("{folder_shown}/{name}") } else { name.into_owned() };
                return self.skip(shown, reason);
            }
        };
        match entry.kind {
            EntryKind::File => self.file(path, entry.size_bytes).await,
            EntryKind::Folder if path.depth() >= DEPTH_MAX => {
                self.skip(path.to_string(), &format!("it is more than {DEPTH_MAX} folders deep"));
            }
            EntryKind::Folder => self.folders.push(Some(path)),
            EntryKind::Link => self.skip(path.to_string(), "it is a link"),
            EntryKind::Other => self.skip(path.to_string(), "it is not a plain file"),
        }
    }

    /// Whether a file is as it was. One that has gone meanwhile is of no interest either.
    async fn is_known(&mut self, path: &ArtifactPath) -> bool {
        let Some(before) = &self.before else { return false };
        let Ok(inside) = guest_path(Some(path)) else { return false };
        let Ok(stat) = self.sandbox.stat(&inside).await else { return true };
        let (name, seen) = (path.to_string(), (stat.size_bytes, stat.modified_ms));
        let is_known = before.get(&name) == Some(&seen);
        self.now.insert(name, seen);
        is_known
    }

    async fn file(&mut self, path: ArtifactPath, listed_bytes: u64) {
        if self.is_known(&path).await {
            return;
        }
        match self.store(&path, listed_bytes).await {
            Ok(size_bytes) => {
                let path = path.to_string();
                self.found.taken.push(Artifact { path, size_bytes, id: None, sha256: None });
            }
            Err(reason) => self.skip(path.to_string(), &reason),
        }
    }

    /// Stores a file where that is wanted; the size is the stored one then.
    async fn store(&mut self, path: &ArtifactPath, listed_bytes: u64) -> Result<u64, String> {
        let ArtifactsWanted::Stored(store) = &mut self.wanted else { return Ok(listed_bytes) };
        let inside = guest_path(Some(path)).map_err(|_| "its path is too long".to_owned())?;
        let reader = self.sandbox.read_file(&inside).await.map_err(|error| error.to_string())?;
        let mut content = Capped::new(reader, self.bytes_left);
        let stored = store.put(path, &mut content).await.map_err(|error| error.to_string())?;
        self.bytes_left = self.bytes_left.saturating_sub(stored);
        Ok(stored)
    }

    fn skip(&mut self, path: String, reason: &str) {
        self.found.skipped.push(SkippedArtifact { path, reason: reason.to_owned() });
    }
}

fn guest_path(path: Option<&ArtifactPath>) -> Result<GuestPath, cofferdam_core::InvalidValue> {
    match path {
        Some(path) => GuestPath::parse("artifact", &format!("{ARTIFACTS_DIR}/{path}")),
        None => GuestPath::parse("artifact", ARTIFACTS_DIR),
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
