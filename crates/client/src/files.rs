//! Verbs on the files of a session. Bytes go through in pieces, up and down.

use crate::artifacts::Sending;
use crate::error::ClientError;
use crate::{Client, Progress, Result};
use bytes::Bytes;
use cofferdam_api::{ArchiveWritten, FileInfo, FileList, FileMatches};
use http_body::Frame;
use reqwest::{Method, Response};
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::fs::File;
use tokio::sync::mpsc;

const PIECE_BYTES: usize = 64 << 10;

/// A folder as one stream of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveFormat {
    Tar,
    Zip,
}

impl ArchiveFormat {
    fn as_str(self) -> &'static str {
        match self {
            Self::Tar => "tar",
            Self::Zip => "zip",
        }
    }
}

/// Bytes on their way here. A connection that breaks is an error, and not their end.
#[derive(Debug)]
pub struct FileDownload {
    response: Response,
}

impl FileDownload {
    /// How many there are, where that is known.
    pub fn size_bytes(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// The next piece; none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let url = self.response.url().path().to_owned();
        let chunk = self.response.chunk().await;
        chunk.map_err(|source| ClientError::Unreachable { url, source: source.without_url() })
    }
}

impl Client {
    /// What a path of a session is; refused with 404 where nothing is there.
    pub async fn file_stat(&self, session: &str, path: &str) -> Result<FileInfo> {
        let parts = ["v1", "sessions", session, "files", "stat"];
        self.call(Method::GET, &parts).query("path", path).json().await
    }

    pub async fn file_exists(&self, session: &str, path: &str) -> Result<bool> {
        match self.file_stat(session, path).await {
            Ok(_) => Ok(true),
            // A session that is not there is not an answer to this.
            Err(ClientError::Refused(refusal)) if refusal.status == 404 => {
                self.session_get(session).await.map(|_| false)
            }
            Err(error) => Err(error),
        }
    }

    pub async fn file_list(&self, session: &str, path: &str, depth: u32) -> Result<FileList> {
        let parts = ["v1", "sessions", session, "files", "list"];
        let call = self.call(Method::GET, &parts).query("path", path);
        call.query("depth", &depth.to_string()).json().await
    }

    pub async fn file_remove(&self, session: &str, path: &str, is_recursive: bool) -> Result<()> {
        let call = self.call(Method::DELETE, &["v1", "sessions", session, "files"]).query("path", path);
        call.query("recursive", if is_recursive { "true" } else { "false" }).gone().await
    }

    /// Those whose name fits a pattern, whose lines match an expression, or both.
    pub async fn file_search(
        &self,
        session: &str,
        path: &str,
        name: Option<&str>,
        content: Option<&str>,
    ) -> Result<FileMatches> {
        let parts = ["v1", "sessions", session, "files", "search"];
        let mut call = self.call(Method::GET, &parts).query("path", path);
        for (field, value) in [("name", name), ("content", content)] {
            if let Some(value) = value {
                call = call.query(field, value);
            }
        }
        call.json().await
    }

    pub async fn file_read(&self, session: &str, path: &str) -> Result<FileDownload> {
        let call = self.call(Method::GET, &["v1", "sessions", session, "files"]).query("path", path);
        Ok(FileDownload { response: call.stream().open().await? })
    }

    /// Sends an open file, of which so many bytes are to go.
    pub async fn file_write(
        &self,
        session: &str,
        path: &str,
        mode: u32,
        file: File,
        size_bytes: u64,
        progress: Progress,
    ) -> Result<FileInfo> {
        let call = self.call(Method::PUT, &["v1", "sessions", session, "files"]).query("path", path);
        let body = reqwest::Body::wrap(Sending::new(file, size_bytes, progress));
        call.query("mode", &format!("{:03o}", mode & 0o777)).send_bytes(body).await
    }

    /// A folder as an archive. Its length is not known beforehand: it is made while it comes.
    pub async fn archive_read(
        &self,
        session: &str,
        path: &str,
        format: ArchiveFormat,
    ) -> Result<FileDownload> {
        let call = self.call(Method::GET, &["v1", "sessions", session, "archive"]).query("path", path);
        Ok(FileDownload { response: call.query("format", format.as_str()).stream().open().await? })
    }

    /// Unpacks an archive, read from `content` on a thread of its own, into a folder of a session.
    pub async fn archive_write(
        &self,
        session: &str,
        path: &str,
        format: ArchiveFormat,
        content: impl Read + Send + 'static,
        progress: Progress,
    ) -> Result<ArchiveWritten> {
        let call = self.call(Method::PUT, &["v1", "sessions", session, "archive"]).query("path", path);
        let (sender, receiver) = mpsc::channel(4);
        let reading = tokio::task::spawn_blocking(move || read_all(content, &sender));
        let body = reqwest::Body::wrap(Pieces { receiver, progress });
        let sent = call.query("format", format.as_str()).send_bytes(body).await;
        // What could not be read here explains a request that was cut off better than the cut does.
        match reading.await {
            Ok(Err(error)) => Err(ClientError::Setup(format!("the folder cannot be read: {error}"))),
            _ => sent,
        }
    }
}

fn read_all(mut content: impl Read, sender: &mpsc::Sender<io::Result<Bytes>>) -> io::Result<()> {
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        match content.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                piece.truncate(count);
                // Nobody sends it any more: the answer came first.
                if sender.blocking_send(Ok(piece.into())).is_err() {
                    return Ok(());
                }
            }
            Err(error) => {
                let _ = sender.blocking_send(Err(io::Error::other(error.to_string())));
                return Err(error);
            }
        }
    }
}

/// What is read elsewhere, as it is sent.
struct Pieces {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    progress: Progress,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.receiver.poll_recv(context).map(|piece| {
            let piece = piece?;
            if let Ok(bytes) = &piece {
                (self.progress)(bytes.len() as u64);
            }
            Some(piece.map(Frame::data))
        })
    }
}
