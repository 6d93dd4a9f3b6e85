//! What changes in a folder of a sandbox, and in those below it.
//!
//! The instance is init's, so what it costs is counted as the sandbox's own and not as the host's. Every folder is
//! opened by init, which follows no link, and watched as what was opened: no name is looked up here that the guest
//! could have put something else behind meanwhile. Nothing stays open: a watch does not hold a filesystem up.

use crate::connection::{Connection, gone, too_large};
use crate::sandbox::{list, open};
use cofferdam_backend::{BackendError, Change, EntryKind, Result, Watched, Watcher, async_trait};
use cofferdam_core::GuestPath;
use cofferdam_linux::protocol;
use rustix::fs::inotify::{ReadFlags, Reader, WatchFlags, add_watch, remove_watch};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// So many folders are watched at once. Larger trees are dependencies and caches, which nobody watches on purpose.
const MAX_FOLDERS: usize = 4096;

/// Entries of a new folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// So many changes are handed over at once.
const MAX_BATCH: usize = 1024;

const WANTED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);

/// One event, as the kernel told it.
#[derive(Debug)]
struct Told {
    watch: i32,
    what: ReadFlags,
    cookie: u32,
    name: Vec<u8>,
}

pub(crate) struct NativeWatcher {
    connection: Arc<Connection>,
    events: AsyncFd<OwnedFd>,
    root: GuestPath,
    root_watch: i32,
    /// Where each watched folder is, below the root.
    folders: HashMap<i32, Vec<u8>>,
    /// Entries of new folders that were told already, because they may have been there before the watch was.
    found: HashSet<Vec<u8>>,
    is_over: bool,
}

impl NativeWatcher {
    pub(crate) async fn start(connection: &Arc<Connection>, root: &GuestPath) -> Result<Self> {
        let request = connection.next();
        let mut buffer = [0; 16];
        let message = protocol::encode_watch(&mut buffer, request).map_err(too_large)?;
        let (errno, fd) = connection.ask(request, message).await?;
        let failed = |error| BackendError::failed(format!("watching {root}"), error);
        let fd = fd.filter(|_| errno == 0).ok_or_else(|| failed(io::Error::from_raw_os_error(errno)))?;
        #[expect(
            deprecated,
            reason = "sound for a descriptor that is owned and never replaced; the other is unsafe"
        )]
        let events = AsyncFd::with_interest(fd, Interest::READABLE).map_err(failed)?;
        let mut watcher = Self {
            connection: Arc::clone(connection),
            events,
            root: root.clone(),
            root_watch: -1,
            folders: HashMap::new(),
            found: HashSet::new(),
            is_over: false,
        };
        watcher.root_watch = watcher.add(root, Vec::new()).await?;
        let mut missed = Vec::new();
        watcher.add_below(Vec::new(), false, &mut missed).await;
        match missed.is_empty() {
            true => Ok(watcher),
            false => Err(BackendError::NotPermitted {
                path: root.to_string(),
                reason: format!("it has more than {MAX_FOLDERS} folders: watch one of them"),
            }),
        }
    }

    async fn add(&mut self, path: &GuestPath, below: Vec<u8>) -> Result<i32> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let folder = open(&self.connection, path, flags, 0, false).await?;
        // The descriptor is what was opened, whatever its path names by now. One that was no folder is refused here.
        let own = format!("/proc/self/fd/{}", folder.as_raw_fd());
        let watch = add_watch(self.events.get_ref(), own, WANTED).map_err(|errno| match errno {
            Errno::NOTDIR => {
                BackendError::NotPermitted { path: path.to_string(), reason: "not a folder".to_owned() }
            }
            other => BackendError::failed(format!("watching {path}"), other.into()),
        })?;
        self.folders.insert(watch, below);
        Ok(watch)
    }

    /// Watches the folders below one. With `tells`, what is in them is told as new.
    async fn add_below(&mut self, below: Vec<u8>, tells: bool, news: &mut Vec<Watched>) {
        let mut waiting = VecDeque::from([below]);
        while let Some(below) = waiting.pop_front() {
            let Some(path) = self.path(&below) else { continue };
            // What has gone meanwhile, or became a link, has nothing in it that is ours to watch.
            let Ok(entries) = list(&self.connection, &path, MAX_ENTRIES).await else { continue };
            for entry in entries {
                let child = joined(&below, &entry.name);
                if tells && self.found.insert(child.clone()) {
                    let change = Change::Created;
                    news.push(Watched::Changed { path: child.clone(), kind: entry.kind, change });
                }
                if entry.kind != EntryKind::Folder {
                    continue;
                }
                if self.folders.len() >= MAX_FOLDERS || news.len() > MAX_ENTRIES {
                    news.push(Watched::Missed);
                    return;
                }
                if let Some(path) = self.path(&child)
                    && self.add(&path, child.clone()).await.is_ok()
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

    /// What the kernel has to tell now.
    fn read(&self) -> io::Result<Vec<Told>> {
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = Reader::new(self.events.get_ref(), &mut buffer);
        let mut told = Vec::new();
        loop {
            match reader.next() {
                Ok(event) => told.push(Told {
                    watch: event.wd(),
                    what: event.events(),
                    cookie: event.cookie(),
                    name: event.file_name().map(|name| name.to_bytes().to_vec()).unwrap_or_default(),
                }),
                Err(Errno::AGAIN) if told.is_empty() => return Err(io::ErrorKind::WouldBlock.into()),
                Err(Errno::AGAIN) => return Ok(told),
                Err(errno) => return Err(errno.into()),
            }
            if told.len() >= MAX_BATCH && reader.is_buffer_empty() {
                return Ok(told);
            }
        }
    }

    async fn explain(&mut self, told: Vec<Told>) -> Vec<Watched> {
        let mut news = Vec::new();
        let mut told = told.into_iter().peekable();
        while let Some(Told { watch, what, cookie, name }) = told.next() {
            if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                news.push(Watched::Missed);
                continue;
            }
            if what.contains(ReadFlags::IGNORED) {
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
            let is_folder = what.contains(ReadFlags::ISDIR);
            let kind = if is_folder { EntryKind::Folder } else { EntryKind::File };
            if what.contains(ReadFlags::MOVED_FROM) {
                let pair =
                    told.next_if(|next| next.cookie == cookie && next.what.contains(ReadFlags::MOVED_TO));
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
                            self.forget(&path);
                        }
                        news.push(Watched::Changed { path, kind, change: Change::Removed });
                    }
                }
            } else if what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                let is_told = what.contains(ReadFlags::CREATE) && self.found.remove(&path);
                if !is_told {
                    news.push(Watched::Changed { path: path.clone(), kind, change: Change::Created });
                }
                let is_watched = self.folders.values().any(|folder| *folder == path);
                if is_folder && !is_watched {
                    self.follow(path, &mut news).await;
                }
            } else if what.contains(ReadFlags::DELETE) {
                self.found.remove(&path);
                news.push(Watched::Changed { path, kind, change: Change::Removed });
            } else if what.intersects(ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE | ReadFlags::ATTRIB) {
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
    async fn follow(&mut self, below: Vec<u8>, news: &mut Vec<Watched>) {
        if self.folders.len() >= MAX_FOLDERS {
            return news.push(Watched::Missed);
        }
        if let Some(path) = self.path(&below)
            && self.add(&path, below.clone()).await.is_ok()
        {
            self.add_below(below, true, news).await;
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
    fn forget(&mut self, path: &[u8]) {
        let events = self.events.get_ref();
        self.folders.retain(|watch, folder| {
            let stays = below(folder, path).is_none();
            if !stays {
                // The kernel may have removed it already.
                let _ = remove_watch(events, *watch);
            }
            stays
        });
    }
}

fn joined(above: &[u8], name: &[u8]) -> Vec<u8> {
    if above.is_empty() { name.to_vec() } else { [above, b"/", name].concat() }
}

/// What follows a folder in a path that is it, or lies in it.
fn below<'p>(path: &'p [u8], folder: &[u8]) -> Option<&'p [u8]> {
    path.strip_prefix(folder).filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[async_trait]
impl Watcher for NativeWatcher {
    async fn next(&mut self) -> Result<Vec<Watched>> {
        loop {
            if self.is_over {
                return Err(gone());
            }
            let told = match self.read() {
                Ok(told) => told,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Everything was told up to here, so nothing can come that was found before.
                    self.found.clear();
                    let ready = self.events.readable().await;
                    let mut ready = ready.map_err(|error| BackendError::failed("watching", error))?;
                    match ready.try_io(|_| self.read()) {
                        Ok(told) => told.map_err(|error| BackendError::failed("watching", error))?,
                        Err(_) => continue,
                    }
                }
                Err(error) => return Err(BackendError::failed("watching", error)),
            };
            let news = self.explain(told).await;
            if !news.is_empty() {
                return Ok(news);
            }
        }
    }
}
