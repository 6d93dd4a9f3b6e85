//! What the kernel tells of watched folders (inotify), told in the words of [`Watched`]: the same for every backend that
//! has it, wherever its instance lives. Who asks the kernel is [`Folders`]; nothing is asked here.
//!
//! What is told may come from a sandbox that lies: numbers of watches that were never made mean nothing, and every list
//! ends.

use crate::{BackendError, Change, Entry, EntryKind, Result, Watched};
use async_trait::async_trait;
use cofferdam_core::GuestPath;
use std::collections::{HashMap, HashSet, VecDeque};

/// So many folders are watched at once. Larger trees are dependencies and caches, which nobody watches on purpose.
const MAX_FOLDERS: usize = 4096;

/// Entries of a new folder that are looked at, and what may be told of at once.
const MAX_ENTRIES: usize = 10_000;

/// The words of the kernel, which are the same on every machine.
pub mod words {
    pub const MODIFY: u32 = 0x2;
    pub const ATTRIB: u32 = 0x4;
    pub const CLOSE_WRITE: u32 = 0x8;
    pub const MOVED_FROM: u32 = 0x40;
    pub const MOVED_TO: u32 = 0x80;
    pub const CREATE: u32 = 0x100;
    pub const DELETE: u32 = 0x200;
    pub const QUEUE_OVERFLOW: u32 = 0x4000;
    pub const IGNORED: u32 = 0x8000;
    pub const ONLYDIR: u32 = 0x0100_0000;
    pub const EXCL_UNLINK: u32 = 0x0400_0000;
    pub const ISDIR: u32 = 0x4000_0000;
    /// What is asked for of every folder.
    pub const WANTED: u32 =
        CREATE | MODIFY | CLOSE_WRITE | ATTRIB | DELETE | MOVED_FROM | MOVED_TO | ONLYDIR | EXCL_UNLINK;
}

use words::*;

/// One event, as the kernel told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub watch: i32,
    pub what: u32,
    pub cookie: u32,
    pub name: Vec<u8>,
}

impl Told {
    /// Whether it is half of a move, of which the other may follow.
    pub fn is_moved_from(&self) -> bool {
        self.what & MOVED_FROM != 0
    }
}

/// Folders of a sandbox, as they are watched. No link is followed.
#[async_trait]
pub trait Folders: Send {
    /// Watches one, and says by which number.
    async fn add(&mut self, path: &GuestPath) -> Result<i32>;

    /// The kernel may have removed it already.
    async fn remove(&mut self, watch: i32);

    async fn list(&mut self, path: &GuestPath, limit: usize) -> Result<Vec<Entry>>;
}

/// A folder and all below it, as far as they are watched.
#[derive(Debug)]
pub struct WatchedTree {
    root: GuestPath,
    root_watch: i32,
    /// Where each watched folder is, below the root.
    folders: HashMap<i32, Vec<u8>>,
    /// Entries of new folders that were told already, because they may have been there before the watch was.
    found: HashSet<Vec<u8>>,
    is_over: bool,
}

impl WatchedTree {
    pub async fn start(root: &GuestPath, at: &mut dyn Folders) -> Result<Self> {
        let mut tree = Self {
            root: root.clone(),
            root_watch: -1,
            folders: HashMap::new(),
            found: HashSet::new(),
            is_over: false,
        };
        tree.root_watch = tree.add(root, Vec::new(), at).await?;
        let mut missed = Vec::new();
        tree.add_below(Vec::new(), false, &mut missed, at).await;
        match missed.is_empty() {
            true => Ok(tree),
            false => Err(BackendError::NotPermitted {
                path: root.to_string(),
                reason: format!("it has more than {MAX_FOLDERS} folders: watch one of them"),
            }),
        }
    }

    /// Whether the folder itself is gone.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether it matters to know when everything was told.
    pub fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// Everything was told up to here, so nothing can come that was found before.
    pub fn all_is_told(&mut self) {
        self.found.clear();
    }

    async fn add(&mut self, path: &GuestPath, below: Vec<u8>, at: &mut dyn Folders) -> Result<i32> {
        let watch = at.add(path).await?;
        self.folders.insert(watch, below);
        Ok(watch)
    }

    /// Watches the folders below one. With `tells`, what is in them is told as new.
    async fn add_below(
        &mut self,
        below: Vec<u8>,
        tells: bool,
        news: &mut Vec<Watched>,
        at: &mut dyn Folders,
    ) {
        let mut waiting = VecDeque::from([below]);
        while let Some(below) = waiting.pop_front() {
            let Some(path) = self.path(&below) else { continue };
            // What has gone meanwhile, or became a link, has nothing in it that is ours to watch.
            let Ok(entries) = at.list(&path, MAX_ENTRIES).await else { continue };
            for entry in entries.into_iter().take(MAX_ENTRIES) {
                let child = joined(&below, &entry.name);
                let is_folder = entry.kind == EntryKind::Folder;
                if news.len() > MAX_ENTRIES || is_folder && self.folders.len() >= MAX_FOLDERS {
                    news.push(Watched::Missed);
                    return;
                }
                if tells && self.found.insert(child.clone()) {
                    let change = Change::Created;
                    news.push(Watched::Changed { path: child.clone(), kind: entry.kind, change });
                }
                if is_folder
                    && let Some(path) = self.path(&child)
                    && self.add(&path, child.clone(), at).await.is_ok()
                {
                    waiting.push_back(child);
                }
            }
        }
    }

    /// Names that are not UTF-8 are not gone into.
    fn path(&self, below: &[u8]) -> Option<GuestPath> {
        if below.is_empty() {
            return Some(self.root.clone());
        }
        self.root.join(std::str::from_utf8(below).ok()?).ok()
    }

    /// What all of that means, in order.
    pub async fn explain(&mut self, told: Vec<Told>, at: &mut dyn Folders) -> Vec<Watched> {
        let mut news = Vec::new();
        let mut told = told.into_iter().peekable();
        while let Some(Told { watch, what, cookie, name }) = told.next() {
            if what & QUEUE_OVERFLOW != 0 {
                news.push(Watched::Missed);
                continue;
            }
            if what & IGNORED != 0 {
                self.folders.remove(&watch);
                self.is_over |= watch == self.root_watch;
                continue;
            }
            let Some(above) = self.folders.get(&watch) else { continue };
            // What happens to a watched folder itself is told by the one above it.
            if name.is_empty() {
                continue;
            }
            let path = joined(above, &name);
            let is_folder = what & ISDIR != 0;
            let kind = if is_folder { EntryKind::Folder } else { EntryKind::File };
            if what & MOVED_FROM != 0 {
                let pair = told.next_if(|next| next.cookie == cookie && next.what & MOVED_TO != 0);
                let to = pair.and_then(|next| Some(joined(self.folders.get(&next.watch)?, &next.name)));
                match to {
                    Some(to) => {
                        if is_folder {
                            self.renamed(&path, &to);
                        }
                        news.push(Watched::Changed { path: to, kind, change: Change::Moved { from: path } });
                    }
                    None => {
                        if is_folder {
                            self.forget(&path, at).await;
                        }
                        news.push(Watched::Changed { path, kind, change: Change::Removed });
                    }
                }
            } else if what & (CREATE | MOVED_TO) != 0 {
                let is_told = what & CREATE != 0 && self.found.remove(&path);
                if !is_told {
                    news.push(Watched::Changed { path: path.clone(), kind, change: Change::Created });
                }
                let is_watched = self.folders.values().any(|folder| *folder == path);
                if is_folder && !is_watched {
                    self.follow(path, &mut news, at).await;
                }
            } else if what & DELETE != 0 {
                self.found.remove(&path);
                news.push(Watched::Changed { path, kind, change: Change::Removed });
            } else if what & (MODIFY | CLOSE_WRITE | ATTRIB) != 0 {
                let change = Watched::Changed { path, kind, change: Change::Modified };
                // A write, its end and a change of mode in a row are one change.
                if news.last() != Some(&change) {
                    news.push(change);
                }
            }
        }
        news
    }

    /// A folder that is new here.
    async fn follow(&mut self, below: Vec<u8>, news: &mut Vec<Watched>, at: &mut dyn Folders) {
        if self.folders.len() >= MAX_FOLDERS {
            return news.push(Watched::Missed);
        }
        if let Some(path) = self.path(&below)
            && self.add(&path, below.clone(), at).await.is_ok()
        {
            self.add_below(below, true, news, at).await;
        }
    }

    fn renamed(&mut self, from: &[u8], to: &[u8]) {
        for folder in self.folders.values_mut() {
            if let Some(rest) = below(folder, from) {
                *folder = [to, rest].concat();
            }
        }
    }

    /// A folder that was moved to where nobody watches.
    async fn forget(&mut self, path: &[u8], at: &mut dyn Folders) {
        let gone = self.folders.extract_if(|_, folder| below(folder, path).is_some());
        for watch in gone.map(|(watch, _)| watch).collect::<Vec<_>>() {
            at.remove(watch).await;
        }
    }
}

fn joined(above: &[u8], name: &[u8]) -> Vec<u8> {
    if above.is_empty() { name.to_vec() } else { [above, b"/", name].concat() }
}

/// What follows a folder in a path that is it, or lies in it.
fn below<'p>(path: &'p [u8], folder: &[u8]) -> Option<&'p [u8]> {
    path.strip_prefix(folder).filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
