//! A place for one case, with a way around the vault to look at it and to do harm.

use crate::s3;
use cofferdam_artifacts::{Location, MasterKey, Name, ObjectKey, Vault};
use futures_util::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Bed {
    pub(crate) vault: Vault,
    raw: Arc<dyn ObjectStore>,
    pub(crate) folder: Option<PathBuf>,
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

pub(crate) fn master() -> MasterKey {
    MasterKey::from_bytes(&[3; 32])
}

impl Bed {
    pub(crate) async fn folder() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("cofferdam-place-{}-{number}", std::process::id()));
        let vault = Vault::open(&Location::Folder(folder.clone()), master()).unwrap();
        let raw = Arc::new(LocalFileSystem::new_with_prefix(&folder).unwrap());
        Self { vault, raw, folder: Some(folder) }
    }

    pub(crate) async fn bucket() -> Self {
        let bucket = tokio::task::spawn_blocking(s3::bucket).await.unwrap();
        let vault = Vault::open(&Location::S3(bucket.clone()), master()).unwrap();
        let raw = AmazonS3Builder::new()
            .with_bucket_name(&bucket.name)
            .with_endpoint(bucket.endpoint.unwrap())
            .with_region("us-east-1")
            .with_access_key_id(bucket.access_key_id.unwrap())
            .with_secret_access_key(bucket.secret_access_key.unwrap())
            .with_allow_http(true)
            .build()
            .unwrap();
        Self { vault, raw: Arc::new(raw), folder: None }
    }

    /// Every object, with its bytes.
    pub(crate) async fn objects(&self) -> Vec<(String, Vec<u8>)> {
        let found: Vec<_> = self.raw.list(None).try_collect().await.unwrap();
        let mut objects = Vec::new();
        for object in found {
            let bytes = self.raw.get(&object.location).await.unwrap().bytes().await.unwrap();
            objects.push((object.location.to_string(), bytes.to_vec()));
        }
        objects.sort();
        objects
    }

    pub(crate) async fn overwrite(&self, key: &str, bytes: Vec<u8>) {
        self.raw.put(&Key::from(key), PutPayload::from(bytes)).await.unwrap();
    }

    pub(crate) async fn lose(&self, key: &str) {
        self.raw.delete(&Key::from(key)).await.unwrap();
    }
}

/// Bytes that no two places of have much in common.
pub(crate) fn bytes(size: u64, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..size).map(|_| next()).collect()
}

/// Something that was written: all that it takes to read it again.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) name: Name,
    pub(crate) key: ObjectKey,
    pub(crate) plain: Vec<u8>,
}

impl Bed {
    pub(crate) async fn write(&self, tenant: &str, id: &str, plain: Vec<u8>) -> Kept {
        let name = Name::draw(tenant, id).unwrap();
        let (key, _) = self.vault.new_key(&name).unwrap();
        let mut writing = self.vault.write(name.clone(), key.clone());
        // In pieces that fit nothing.
        for piece in plain.chunks(70_001) {
            writing.write(piece).await.unwrap();
        }
        let written = writing.finish().await.unwrap();
        assert_eq!(written.size, plain.len() as u64);
        Kept { name, key, plain }
    }

    pub(crate) async fn read(
        &self,
        kept: &Kept,
        part: std::ops::Range<u64>,
    ) -> cofferdam_artifacts::Result<Vec<u8>> {
        let size = kept.plain.len() as u64;
        let mut reading = self.vault.read(kept.name.clone(), kept.key.clone(), size, part);
        let mut out = Vec::new();
        while let Some(bytes) = reading.next().await? {
            assert!(!bytes.is_empty() && bytes.len() <= 4 << 20, "{} bytes at once", bytes.len());
            out.extend_from_slice(&bytes);
        }
        Ok(out)
    }

    pub(crate) async fn read_all(&self, kept: &Kept) -> cofferdam_artifacts::Result<Vec<u8>> {
        self.read(kept, 0..kept.plain.len() as u64).await
    }
}
