//! What changes in a folder of a sandbox, and in those below it.
//!
//! The instance is init's, so what it costs is counted as the sandbox's own and not as the host's. Every folder is
//! opened by init, which follows no link, and watched as what was opened: no name is looked up here that the guest
//! could have put something else behind meanwhile. Nothing stays open: a watch does not hold a filesystem up.

use crate::connection::{Connection, gone, too_large};
use crate::listing::list;
use crate::sandbox::open;
use cofferdam_backend::watching::words::WANTED;
use cofferdam_backend::watching::{Folders, Told, WatchedTree};
use cofferdam_backend::{BackendError, Entry, Result, Watched, Watcher, async_trait};
use cofferdam_core::GuestPath;
use cofferdam_linux::protocol;
use rustix::fs::inotify::{Reader, WatchFlags, add_watch, remove_watch};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// So many changes are handed over at once.
const MAX_BATCH: usize = 1024;

/// Who opens folders, and the instance that watches them.
struct Opened<'w> {
    connection: &'w Arc<Connection>,
    events: &'w AsyncFd<OwnedFd>,
}

#[async_trait]
impl Folders for Opened<'_> {
    async fn add(&mut self, path: &GuestPath) -> Result<i32> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let folder = open(self.connection, path, flags, 0, false).await?;
        // The descriptor is what was opened, whatever its path names by now. One that was no folder is refused here.
        let own = format!("/proc/self/fd/{}", folder.as_raw_fd());
        let wanted = WatchFlags::from_bits_retain(WANTED);
        add_watch(self.events.get_ref(), own, wanted).map_err(|errno| match errno {
            Errno::NOTDIR => {
                BackendError::NotPermitted { path: path.to_string(), reason: "not a folder".to_owned() }
            }
            other => BackendError::failed(format!("watching {path}"), other.into()),
        })
    }

    async fn remove(&mut self, watch: i32) {
        let _ = remove_watch(self.events.get_ref(), watch);
    }

    async fn list(&mut self, path: &GuestPath, limit: usize) -> Result<Vec<Entry>> {
        let listed = list(self.connection, path, limit, false).await?;
        Ok(listed.into_iter().map(|listed| listed.entry).collect())
    }
}

pub(crate) struct NativeWatcher {
    connection: Arc<Connection>,
    events: AsyncFd<OwnedFd>,
    tree: WatchedTree,
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
        let tree = WatchedTree::start(root, &mut Opened { connection, events: &events }).await?;
        Ok(Self { connection: Arc::clone(connection), events, tree })
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
                    what: event.events().bits(),
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
}

#[async_trait]
impl Watcher for NativeWatcher {
    async fn next(&mut self) -> Result<Vec<Watched>> {
        loop {
            if self.tree.is_over() {
                return Err(gone());
            }
            let told = match self.read() {
                Ok(told) => told,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.tree.all_is_told();
                    let ready = self.events.readable().await;
                    let mut ready = ready.map_err(|error| BackendError::failed("watching", error))?;
                    match ready.try_io(|_| self.read()) {
                        Ok(told) => told.map_err(|error| BackendError::failed("watching", error))?,
                        Err(_) => continue,
                    }
                }
                Err(error) => return Err(BackendError::failed("watching", error)),
            };
            let mut opened = Opened { connection: &self.connection, events: &self.events };
            let news = self.tree.explain(told, &mut opened).await;
            if !news.is_empty() {
                return Ok(news);
            }
        }
    }
}
