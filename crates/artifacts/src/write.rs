//! A writing: plain bytes in, sealed segments out, one segment in memory at a time.

use crate::Result;
use crate::keys::ObjectKey;
use crate::layout::{CHUNK_BYTES, SEALED_BYTES, SEGMENT_CHUNKS};
use crate::place::{Name, Vault};
use crate::seal::seal_chunk;
use sha2::{Digest, Sha256};

const CHUNK: usize = CHUNK_BYTES as usize;
const SEGMENT: usize = (SEGMENT_CHUNKS * SEALED_BYTES) as usize;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub size: u64,
    /// Of the plain bytes, in hexadecimal.
    pub sha256: String,
}

#[derive(Debug)]
pub struct Writing {
    vault: Vault,
    name: Name,
    key: ObjectKey,
    about: Vec<u8>,
    hash: Sha256,
    size: u64,
    /// Plain bytes that may yet turn out to be the last chunk.
    pending: Vec<u8>,
    segment: Vec<u8>,
    chunk: u64,
    segment_number: u64,
}

impl Writing {
    pub(crate) fn new(vault: Vault, name: Name, key: ObjectKey) -> Self {
        Self {
            about: name.about(),
            vault,
            name,
            key,
            hash: Sha256::new(),
            size: 0,
            pending: Vec::new(),
            segment: Vec::new(),
            chunk: 0,
            segment_number: 0,
        }
    }

    /// How many bytes it has so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.pending.len() == CHUNK {
                self.seal(false);
                if self.segment.len() == SEGMENT {
                    self.flush().await?;
                }
            }
            let (now, rest) = bytes.split_at(bytes.len().min(CHUNK - self.pending.len()));
            self.pending.extend_from_slice(now);
            bytes = rest;
        }
        Ok(())
    }

    /// Seals the end. When this returns, all of it is on the disk of the place.
    pub async fn finish(mut self) -> Result<Written> {
        self.seal(true);
        self.flush().await?;
        let sha256 = self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Written { size: self.size, sha256 })
    }

    fn seal(&mut self, is_last: bool) {
        seal_chunk(&self.key, &self.about, self.chunk, is_last, &self.pending, &mut self.segment);
        self.pending.clear();
        self.chunk += 1;
    }

    async fn flush(&mut self) -> Result<()> {
        let bytes = std::mem::take(&mut self.segment);
        self.vault.put_segment(&self.name, self.segment_number, bytes).await?;
        self.segment_number += 1;
        Ok(())
    }
}
