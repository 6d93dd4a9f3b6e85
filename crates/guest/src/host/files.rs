//! Files between the host and the sandbox.

use super::Connection;
use super::channel::{ChannelReader, ChannelWriter};
use super::words::file_error;
use crate::protocol::{Answer, Ask, CHUNK, Counted, Kind, Stat, frame};
use cofferdam_backend::{BackendError, Entry, EntryKind, FileStat, Reader, Result};
use cofferdam_core::GuestPath;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// An answer that does not fit its question: the helper is not ours any more.
pub(super) fn unexpected() -> BackendError {
    BackendError::Gone { cause: "its helper gave an answer that fits no question".to_owned() }
}

fn kind(letter: char) -> EntryKind {
    match letter {
        'f' => EntryKind::File,
        'd' => EntryKind::Folder,
        'l' => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

impl Connection {
    pub async fn read_file(&self, path: &GuestPath) -> Result<Reader> {
        let (number, channel) = self.channel();
        let reader = ChannelReader::new(&channel, &self.sender);
        let answer = self.ask(Ask::Read { channel: number, path: path.to_string() }).await?;
        answer.map_err(|failure| file_error(path, failure))?;
        Ok(Box::new(reader))
    }

    /// With when it was last changed, where that is not now.
    pub async fn write_file(
        &self,
        path: &GuestPath,
        mode: u32,
        modified_ms: Option<i64>,
        mut content: Reader,
    ) -> Result<u64> {
        let (number, channel) = self.channel();
        let mut writer = ChannelWriter::new(&channel, &self.sender);
        let mut answered =
            self.begin(Ask::Write { channel: number, path: path.to_string(), mode, modified_ms })?;
        let send = async {
            let mut buffer = vec![0; CHUNK];
            loop {
                let read = content.read(&mut buffer).await?;
                if read == 0 {
                    return writer.shutdown().await;
                }
                writer.write_all(&buffer[..read]).await?;
            }
        };
        let answer = tokio::select! {
            biased;
            answer = &mut answered => answer,
            sent = send => {
                if let Err(error) = sent {
                    self.check()?;
                    self.sender.send(frame(Kind::Close, number, &[]));
                    return Err(BackendError::failed(format!("reading what goes to {path}"), error));
                }
                answered.await
            }
        };
        // Its end is the connection's, which `check` explains.
        let Ok(answer) = answer else { return Err(self.check().err().unwrap_or_else(unexpected)) };
        match answer.map_err(|failure| file_error(path, failure))? {
            Answer::Written { bytes } => Ok(bytes),
            _ => Err(unexpected()),
        }
    }

    pub async fn make_folder(&self, path: &GuestPath) -> Result<()> {
        let answer = self.ask(Ask::MakeFolder { path: path.to_string() }).await?;
        answer.map(drop).map_err(|failure| file_error(path, failure))
    }

    pub async fn list_files(&self, path: &GuestPath, limit: usize) -> Result<Vec<Entry>> {
        let answer = self.ask(Ask::List { path: path.to_string(), limit }).await?;
        let Answer::Entries(entries) = answer.map_err(|failure| file_error(path, failure))? else {
            return Err(unexpected());
        };
        let entries = entries.into_iter().take(limit);
        Ok(entries.map(|e| Entry { name: e.name, kind: kind(e.kind), size_bytes: e.size }).collect())
    }

    pub async fn stat(&self, path: &GuestPath) -> Result<FileStat> {
        match self.ask(Ask::Stat { path: path.to_string() }).await?.map_err(|e| file_error(path, e))? {
            Answer::Stat(Stat { kind: letter, size, mode, modified_ms }) => {
                Ok(FileStat { kind: kind(letter), size_bytes: size, mode, modified_ms })
            }
            _ => Err(unexpected()),
        }
    }

    pub async fn remove(&self, path: &GuestPath, kind: EntryKind) -> Result<()> {
        let ask = Ask::Remove { path: path.to_string(), is_folder: kind == EntryKind::Folder };
        self.ask(ask).await?.map(drop).map_err(|failure| file_error(path, failure))
    }

    pub async fn rename(&self, from: &GuestPath, to: &GuestPath) -> Result<()> {
        let ask = Ask::Rename { from: from.to_string(), to: to.to_string() };
        self.ask(ask).await?.map(drop).map_err(|failure| file_error(from, failure))
    }

    pub async fn set_mode(&self, path: &GuestPath, mode: u32) -> Result<()> {
        let ask = Ask::SetMode { path: path.to_string(), mode: mode & 0o777 };
        self.ask(ask).await?.map(drop).map_err(|failure| file_error(path, failure))
    }

    pub async fn restore_folder(&self, path: &GuestPath, mode: u32, modified_ms: i64) -> Result<()> {
        let ask = Ask::RestoreFolder { path: path.to_string(), mode, modified_ms };
        self.ask(ask).await?.map(drop).map_err(|failure| file_error(path, failure))
    }

    pub async fn make_link(&self, path: &GuestPath, target: &[u8]) -> Result<()> {
        let target = std::str::from_utf8(target).map_err(|_| BackendError::NotPermitted {
            path: path.to_string(),
            reason: "where the link leads is not UTF-8".to_owned(),
        })?;
        let ask = Ask::MakeLink { path: path.to_string(), target: target.to_owned() };
        self.ask(ask).await?.map(drop).map_err(|failure| file_error(path, failure))
    }

    pub async fn read_link(&self, path: &GuestPath) -> Result<Vec<u8>> {
        match self.ask(Ask::ReadLink { path: path.to_string() }).await?.map_err(|e| file_error(path, e))? {
            Answer::Link(target) => Ok(target),
            _ => Err(unexpected()),
        }
    }

    /// What shows inside of what was used.
    pub async fn counted(&self) -> Result<Counted> {
        match self.ask(Ask::Stats).await? {
            Ok(Answer::Stats(counted)) => Ok(counted),
            Ok(_) => Err(unexpected()),
            Err(failure) => {
                Err(BackendError::failed("counting", io::Error::from_raw_os_error(failure.errno)))
            }
        }
    }

    /// What a process inside sees of its walls.
    pub async fn look(&self) -> Result<crate::facts::Facts> {
        match self.ask(Ask::Look).await? {
            Ok(Answer::Seen(facts)) => Ok(*facts),
            Ok(_) => Err(unexpected()),
            Err(failure) => Err(BackendError::failed(
                "looking at the walls from inside",
                io::Error::from_raw_os_error(failure.errno),
            )),
        }
    }
}
