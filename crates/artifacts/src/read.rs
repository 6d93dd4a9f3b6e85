//! A reading: sealed segments in, plain bytes out, a few chunks in memory at a time. Nothing comes out that did not
//! open; where something does not, the reading ends with an error.

use crate::keys::ObjectKey;
use crate::layout::{CHUNK_BYTES, SEALED_BYTES, SEGMENT_CHUNKS, TAG_BYTES, chunks};
use crate::place::{Name, Vault};
use crate::seal::open_chunk;
use crate::{ArtifactError, Result};
use bytes::Bytes;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

/// As many chunks as are asked for at once: 2 MiB, so that a far store is not asked too often.
const FETCH_CHUNKS: u64 = 32;

#[derive(Debug)]
pub struct Reading {
    vault: Vault,
    name: Name,
    key: ObjectKey,
    about: Vec<u8>,
    size: u64,
    /// What is still to come out.
    part: Range<u64>,
}

impl Reading {
    pub(crate) fn new(vault: Vault, name: Name, key: ObjectKey, size: u64, part: Range<u64>) -> Self {
        let part = part.start.min(size)..part.end.min(size);
        Self { about: name.about(), vault, name, key, size, part }
    }

    /// The next bytes; none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        if self.part.is_empty() {
            return Ok(None);
        }
        let first = self.part.start / CHUNK_BYTES;
        let segment = first / SEGMENT_CHUNKS;
        let last = (self.part.end - 1) / CHUNK_BYTES;
        let end = (last + 1).min(first + FETCH_CHUNKS).min((segment + 1) * SEGMENT_CHUNKS);
        let plain = self.fetch(segment, first..end).await?;
        // Only what was asked for, of the first and the last chunk.
        let offset = first * CHUNK_BYTES;
        let from = (self.part.start - offset) as usize;
        let to = (self.part.end - offset).min(plain.len() as u64) as usize;
        self.part.start = offset + to as u64;
        Ok(Some(plain.slice(from..to)))
    }

    /// Opens some chunks of one segment.
    async fn fetch(&self, segment: u64, wanted: Range<u64>) -> Result<Bytes> {
        let count = chunks(self.size);
        let before = segment * SEGMENT_CHUNKS;
        let start = (wanted.start - before) * SEALED_BYTES;
        let plain_end = (wanted.end * CHUNK_BYTES).min(self.size);
        let length = plain_end - wanted.start * CHUNK_BYTES + (wanted.end - wanted.start) * TAG_BYTES;
        let sealed = self.vault.get_segment(&self.name, segment, start..start + length).await?;
        if sealed.len() as u64 != length {
            return Err(ArtifactError::Damaged("a segment was cut off"));
        }
        let mut sealed = Vec::from(sealed);
        let mut plain = Vec::with_capacity((plain_end - wanted.start * CHUNK_BYTES) as usize);
        for (number, chunk) in wanted.zip(sealed.chunks_mut(SEALED_BYTES as usize)) {
            let opened = open_chunk(&self.key, &self.about, number, number + 1 == count, chunk);
            plain.extend_from_slice(opened.map_err(|_| ArtifactError::Damaged("a chunk does not open"))?);
        }
        Ok(plain.into())
    }

    /// The same as a stream of bytes. Nothing is fetched before it is read from: many may be open at once.
    pub fn into_reader(self) -> impl AsyncRead + Send + Sync + Unpin + 'static {
        let left = self.part.end.saturating_sub(self.part.start);
        Pieces { source: Source::Closed(Some(Box::new(self))), rest: Bytes::new(), left }
    }

    /// Fetches in a task of its own, which ends when nobody reads.
    fn fetch_all(mut self) -> mpsc::Receiver<io::Result<Bytes>> {
        let (pieces, waiting) = mpsc::channel(1);
        tokio::spawn(async move {
            loop {
                let piece = match self.next().await {
                    Ok(None) => return,
                    Ok(Some(piece)) => Ok(piece),
                    Err(error) => Err(error.into()),
                };
                let is_over = piece.is_err();
                if pieces.send(piece).await.is_err() || is_over {
                    return;
                }
            }
        });
        waiting
    }
}

enum Source {
    Closed(Option<Box<Reading>>),
    Open(mpsc::Receiver<io::Result<Bytes>>),
}

struct Pieces {
    source: Source,
    rest: Bytes,
    /// An end before that is not the end.
    left: u64,
}

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            if let Source::Closed(reading) = &mut self.source
                && let Some(reading) = reading.take()
            {
                self.source = Source::Open(reading.fetch_all());
            }
            let Source::Open(waiting) = &mut self.source else { return Poll::Ready(Ok(())) };
            match ready!(waiting.poll_recv(cx)) {
                Some(piece) => self.rest = piece?,
                None if self.left == 0 => return Poll::Ready(Ok(())),
                None => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            }
        }
        let now = self.rest.len().min(buf.remaining());
        let now = self.rest.split_to(now);
        self.left = self.left.saturating_sub(now.len() as u64);
        buf.put_slice(&now);
        Poll::Ready(Ok(()))
    }
}
