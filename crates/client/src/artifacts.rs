//! Verbs on artifacts. Bytes go through in pieces, up and down, and are held against their hash.

use crate::error::ClientError;
use crate::{Client, Result};
use bytes::Bytes;
use cofferdam_api::{Artifact, ArtifactCreated, ArtifactList, ArtifactRequest, FinalizeRequest};
use http_body::{Frame, SizeHint};
use reqwest::{Method, Response};
use sha2::{Digest, Sha256};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

/// Hears how many bytes went through since it was last told.
pub type Progress = Box<dyn Fn(u64) + Send + Sync>;

const PIECE_BYTES: usize = 64 << 10;

impl Client {
    /// What a job left.
    pub async fn job_artifacts(&self, id: &str, cursor: Option<&str>) -> Result<ArtifactList> {
        let mut call = self.call(Method::GET, &["v1", "jobs", id, "artifacts"]);
        if let Some(cursor) = cursor {
            call = call.query("cursor", cursor);
        }
        call.json().await
    }

    pub async fn artifact_delete(&self, id: &str) -> Result<()> {
        self.call(Method::DELETE, &["v1", "artifacts", id]).gone().await
    }

    /// Makes an artifact of a file.
    pub async fn artifact_upload(&self, path: &Path, progress: Progress) -> Result<Artifact> {
        let failed = |error: io::Error| ClientError::Setup(format!("{}: {error}", path.display()));
        let (size_bytes, sha256) = measure(path).await.map_err(failed)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let request = ArtifactRequest { name, size_bytes, sha256: Some(sha256.clone()), content_type: None };
        let call = self.call(Method::POST, &["v1", "artifacts"]).body(&request)?;
        let made: ArtifactCreated = call.json().await?;
        let file = File::open(path).await.map_err(failed)?;
        let body = Sending::new(file, size_bytes, progress);
        self.put(&made.upload.url, reqwest::Body::wrap(body)).await?;
        let call = self.call(Method::POST, &["v1", "artifacts", &made.artifact.id, "finalize"]);
        call.body(&FinalizeRequest { sha256: Some(sha256) })?.repeatable().json().await
    }

    /// The bytes of an artifact, one piece after the other.
    pub async fn artifact_download(&self, artifact: &Artifact) -> Result<Download> {
        let response =
            self.call(Method::GET, &["v1", "artifacts", &artifact.id, "content"]).stream().open().await?;
        let (size_bytes, sha256) = (artifact.size_bytes, artifact.sha256.clone());
        Ok(Download { response, hash: Sha256::new(), seen_bytes: 0, size_bytes, sha256 })
    }
}

/// How large a file is, and its hash.
async fn measure(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path).await?;
    let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, vec![0; PIECE_BYTES]);
    loop {
        let n = file.read(&mut buffer).await?;
        if n == 0 {
            return Ok((size, hex(hash)));
        }
        hash.update(&buffer[..n]);
        size += n as u64;
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file as it is sent.
pub(crate) struct Sending {
    file: File,
    left: u64,
    buffer: Vec<u8>,
    progress: Progress,
}

impl Sending {
    pub(crate) fn new(file: File, size_bytes: u64, progress: Progress) -> Self {
        Self { file, left: size_bytes, buffer: vec![0; PIECE_BYTES], progress }
    }
}

impl http_body::Body for Sending {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        if this.left == 0 {
            return Poll::Ready(None);
        }
        // A file that grows meanwhile is sent as it was measured.
        let most = this.buffer.len().min(usize::try_from(this.left).unwrap_or(usize::MAX));
        let mut piece = ReadBuf::new(&mut this.buffer[..most]);
        if let Err(error) = ready!(Pin::new(&mut this.file).poll_read(context, &mut piece)) {
            return Poll::Ready(Some(Err(error)));
        }
        let piece = Bytes::copy_from_slice(piece.filled());
        if piece.is_empty() {
            return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
        }
        this.left -= piece.len() as u64;
        (this.progress)(piece.len() as u64);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// An artifact on its way here.
#[derive(Debug)]
pub struct Download {
    response: Response,
    hash: Sha256,
    seen_bytes: u64,
    size_bytes: u64,
    sha256: Option<String>,
}

impl Download {
    /// The next piece; none when all of it was seen and is what it should be.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let url = self.response.url().path().to_owned();
        let chunk = self.response.chunk().await;
        let chunk = chunk
            .map_err(|source| ClientError::Unreachable { url: url.clone(), source: source.without_url() })?;
        if let Some(chunk) = chunk {
            self.hash.update(&chunk);
            self.seen_bytes += chunk.len() as u64;
            return Ok(Some(chunk.to_vec()));
        }
        let hash = hex(std::mem::take(&mut self.hash));
        let is_whole = self.seen_bytes == self.size_bytes;
        match self.sha256.as_ref().is_none_or(|wanted| *wanted == hash) && is_whole {
            true => Ok(None),
            false => {
                Err(ClientError::Strange { url, what: "its bytes are not what the service said".to_owned() })
            }
        }
    }
}
