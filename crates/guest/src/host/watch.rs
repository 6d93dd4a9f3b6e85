//! What changes in a folder inside. The instance is the helper's, and its events come on a channel; what they mean is
//! found out here, as for a native sandbox.

use super::Connection;
use super::channel::ChannelReader;
use super::words::file_error;
use crate::inotify::take;
use crate::protocol::{Answer, Ask, Failure};
use cofferdam_backend::watching::{Folders, Told, WatchedTree};
use cofferdam_backend::{BackendError, Entry, Result, Watched, Watcher, async_trait};
use cofferdam_core::GuestPath;
use rustix::io::Errno;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

/// So many changes are handed over at once.
const MAX_BATCH: usize = 1024;

/// So much is read at once.
const PIECE: usize = 16 << 10;

/// For so long the other half of a move is waited for: the kernel tells them one after the other.
const PAIR_WITHIN: Duration = Duration::from_millis(50);

/// The helper, for as long as somebody else holds the connection to it: a watch does not keep a sandbox.
struct Helper {
    connection: Weak<Connection>,
    channel: u32,
}

fn gone() -> BackendError {
    BackendError::Gone { cause: "its helper ended".to_owned() }
}

fn unexpected() -> BackendError {
    BackendError::failed("watching", io::Error::other("the helper's answer is not one to what was asked"))
}

fn watch_error(path: &GuestPath, failure: Failure) -> BackendError {
    match Errno::from_raw_os_error(failure.errno) {
        // Of watches and instances, which the kernel counts by user.
        Errno::NOSPC | Errno::MFILE | Errno::NOSYS => {
            BackendError::failed(format!("watching {path}"), io::Error::from_raw_os_error(failure.errno))
        }
        Errno::NOTDIR => {
            BackendError::NotPermitted { path: path.to_string(), reason: "not a folder".to_owned() }
        }
        _ => file_error(path, failure),
    }
}

impl Helper {
    async fn ask(&self, ask: Ask) -> Result<std::result::Result<Answer, Failure>> {
        let answer = self.connection.upgrade().ok_or_else(gone)?.begin(ask)?;
        answer.await.map_err(|_| gone())
    }

    /// Whether everything that happened is on its way, or here.
    async fn is_empty(&self) -> Result<bool> {
        match self.ask(Ask::WatchIsEmpty { channel: self.channel }).await? {
            Ok(Answer::IsEmpty(is_empty)) => Ok(is_empty),
            Ok(_) => Err(unexpected()),
            Err(failure) => {
                Err(BackendError::failed("watching", io::Error::from_raw_os_error(failure.errno)))
            }
        }
    }
}

#[async_trait]
impl Folders for Helper {
    async fn add(&mut self, path: &GuestPath) -> Result<i32> {
        let ask = Ask::WatchFolder { channel: self.channel, path: path.to_string() };
        match self.ask(ask).await?.map_err(|failure| watch_error(path, failure))? {
            Answer::Watch(watch) => Ok(watch),
            _ => Err(unexpected()),
        }
    }

    async fn remove(&mut self, watch: i32) {
        let _ = self.ask(Ask::UnwatchFolder { channel: self.channel, watch }).await;
    }

    async fn list(&mut self, path: &GuestPath, limit: usize) -> Result<Vec<Entry>> {
        let connection = self.connection.upgrade().ok_or_else(gone)?;
        let entries = connection.list_files(path, limit).await?;
        match entries.iter().any(|entry| entry.name.is_empty() || entry.name.contains(&b'/')) {
            true => Err(unexpected()),
            false => Ok(entries),
        }
    }
}

struct GuestWatcher {
    reader: ChannelReader,
    /// What is no whole event yet.
    buffer: Vec<u8>,
    tree: WatchedTree,
    helper: Helper,
}

impl Connection {
    pub async fn watch(self: &Arc<Self>, root: &GuestPath) -> Result<Box<dyn Watcher>> {
        let (number, channel) = self.channel();
        let reader = ChannelReader::new(&channel, &self.sender);
        drop(channel);
        let answer = self.ask(Ask::Watch { channel: number }).await?;
        answer.map_err(|failure| watch_error(root, failure))?;
        let mut helper = Helper { connection: Arc::downgrade(self), channel: number };
        let tree = WatchedTree::start(root, &mut helper).await?;
        Ok(Box::new(GuestWatcher { reader, buffer: Vec::new(), tree, helper }))
    }
}

impl GuestWatcher {
    /// Takes what comes within a time; nothing where nothing has come.
    async fn read(&mut self, within: Option<Duration>) -> Result<Option<Vec<Told>>> {
        let failed = |error| BackendError::failed("watching", error);
        self.buffer.reserve(PIECE);
        let read = self.reader.read_buf(&mut self.buffer);
        let read = match within {
            None => read.await,
            Some(time) => match timeout(time, read).await {
                Ok(read) => read,
                Err(_) => return Ok(None),
            },
        };
        match read.map_err(failed)? {
            0 => Err(gone()),
            _ => take(&mut self.buffer).map(Some).map_err(failed),
        }
    }

    /// What was told by now; waits for the first of it.
    async fn told(&mut self) -> Result<Vec<Told>> {
        let mut told: Vec<Told> = Vec::new();
        while told.len() < MAX_BATCH {
            let within = match told.last() {
                None if self.tree.has_found() => Some(Duration::ZERO),
                None => None,
                Some(last) if last.is_moved_from() => Some(PAIR_WITHIN),
                Some(_) => Some(Duration::ZERO),
            };
            match self.read(within).await? {
                Some(more) => told.extend(more),
                None if !told.is_empty() => break,
                // What the helper has sent before its answer is here with it.
                None if self.helper.is_empty().await? => match self.read(Some(Duration::ZERO)).await? {
                    Some(more) => told.extend(more),
                    None => self.tree.all_is_told(),
                },
                None => told.extend(self.read(None).await?.unwrap_or_default()),
            }
        }
        Ok(told)
    }
}

#[async_trait]
impl Watcher for GuestWatcher {
    async fn next(&mut self) -> Result<Vec<Watched>> {
        loop {
            if self.tree.is_over() {
                return Err(gone());
            }
            let told = self.told().await?;
            let news = self.tree.explain(told, &mut self.helper).await;
            if !news.is_empty() {
                return Ok(news);
            }
        }
    }
}
