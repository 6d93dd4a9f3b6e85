//! The place where the bytes lie: a folder of this machine, or a bucket. Nothing outside this file asks which.
//!
//! An object is `TENANT/ARTIFACT/ATTEMPT/SEGMENT`. Every writing of an artifact is an attempt with a key of its own,
//! so one that was cut off is never mixed with the next.

use crate::keys::{MasterKey, ObjectKey, random};
use crate::layout;
use crate::read::Reading;
use crate::write::Writing;
use crate::{ArtifactError, Result};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig};
use std::fmt;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};

/// Where artifacts are kept.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    Folder(PathBuf),
    S3(Bucket),
}

/// A bucket of an S3-compatible store.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bucket {
    pub name: String,
    /// Of another store than Amazon's.
    pub endpoint: Option<String>,
    pub region: Option<String>,
    pub access_key_id: Option<String>,
    pub secret_access_key: Option<String>,
    pub session_token: Option<String>,
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::S3(bucket) => bucket.fmt(f),
        }
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without its secrets.
        write!(f, "s3://{} at {}", self.name, self.endpoint.as_deref().unwrap_or("Amazon"))
    }
}

/// Names one writing of an artifact. Made of plain words only, so that no name leads to another's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub(crate) tenant: String,
    pub(crate) id: String,
    pub(crate) attempt: String,
}

const MAX_WORD: usize = 64;

fn is_word(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    (1..=MAX_WORD).contains(&text.len()) && text.bytes().all(plain)
}

impl Name {
    pub fn new(tenant: &str, id: &str, attempt: &str) -> Result<Self> {
        match [tenant, id, attempt].into_iter().find(|word| !is_word(word)) {
            None => Ok(Self { tenant: tenant.to_owned(), id: id.to_owned(), attempt: attempt.to_owned() }),
            Some(word) => {
                Err(ArtifactError::Setup { what: format!("{word:?} cannot name an artifact's bytes") })
            }
        }
    }

    /// A name for another writing of the same artifact.
    pub fn draw(tenant: &str, id: &str) -> Result<Self> {
        let attempt: String = random::<8>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        Self::new(tenant, id, &attempt)
    }

    pub fn attempt(&self) -> &str {
        &self.attempt
    }

    /// What its key and its chunks are bound to.
    pub fn about(&self) -> Vec<u8> {
        format!("cofferdam artifact 1\0{}\0{}\0{}", self.tenant, self.id, self.attempt).into_bytes()
    }

    fn segment(&self, number: u64) -> Key {
        Key::from(format!("{}/{}/{}/{number:08}", self.tenant, self.id, self.attempt))
    }
}

/// Something that lies in the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub tenant: String,
    pub id: String,
    pub attempt: String,
    /// In milliseconds since 1970.
    pub changed_at_ms: i64,
}

/// How long a store may be silent. A worker waits for it at the end of a job.
const REQUEST_TIME: Duration = Duration::from_secs(30);
const CONNECT_TIME: Duration = Duration::from_secs(5);
const RETRIES: usize = 3;
const RETRY_TIME: Duration = Duration::from_secs(10);

/// Says that this place holds the artifacts that the records speak of.
const MARK: &str = "cofferdam-artifacts";

/// Written and removed to see whether the place takes anything.
const PROBE: &str = "cofferdam-probe";

/// Found entries that wait for whoever looks through them.
const LISTED: usize = 256;

/// The place, and the key for what lies there.
#[derive(Clone)]
pub struct Vault {
    store: Arc<dyn ObjectStore>,
    /// Of a folder, which a kill can leave parts of files in that no listing of objects shows.
    folder: Option<PathBuf>,
    master: MasterKey,
    health: Arc<Health>,
}

/// What is known of the place from its use.
#[derive(Debug)]
struct Health {
    /// Counts what it did not do for us.
    failures: watch::Sender<u64>,
    was_marked: AtomicBool,
}

impl Default for Health {
    fn default() -> Self {
        Self { failures: watch::Sender::new(0), was_marked: AtomicBool::new(false) }
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vault({})", self.store)
    }
}

impl Vault {
    /// Opens the place; a folder is made, a bucket has to be there. Whether it answers is for [`Vault::check`].
    pub fn open(location: &Location, master: MasterKey) -> Result<Self> {
        let setup =
            |error: &dyn fmt::Display| ArtifactError::Setup { what: format!("{location:?}: {error}") };
        match location {
            Location::Folder(path) => {
                let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
                made.map_err(|error| setup(&error))?;
                let path = std::fs::canonicalize(path).map_err(|error| setup(&error))?;
                let store = LocalFileSystem::new_with_prefix(&path).map_err(|error| setup(&error))?;
                Ok(Self {
                    store: Arc::new(store.with_fsync(true)),
                    folder: Some(path),
                    master,
                    health: Arc::default(),
                })
            }
            Location::S3(bucket) => {
                let store = s3(bucket).map_err(|error| setup(&error))?;
                Ok(Self { store: Arc::new(store), folder: None, master, health: Arc::default() })
            }
        }
    }

    pub fn master(&self) -> &MasterKey {
        &self.master
    }

    /// A fresh key for one writing, plain and wrapped.
    pub fn new_key(&self, name: &Name) -> Result<(ObjectKey, String)> {
        let key = ObjectKey::draw()?;
        let wrapped = self.master.wrap(&key, &name.about())?;
        Ok((key, wrapped))
    }

    pub fn open_key(&self, name: &Name, wrapped: &str) -> Result<ObjectKey> {
        self.master.unwrap(wrapped, &name.about())
    }

    /// Begins a writing. What was written counts when it is finished; before that it is an orphan.
    pub fn write(&self, name: Name, key: ObjectKey) -> Writing {
        Writing::new(self.clone(), name, key)
    }

    /// Begins to read a part of an artifact that has `size` bytes.
    pub fn read(&self, name: Name, key: ObjectKey, size: u64, part: Range<u64>) -> Reading {
        Reading::new(self.clone(), name, key, size, part)
    }

    pub(crate) async fn put_segment(&self, name: &Name, number: u64, bytes: Vec<u8>) -> Result<()> {
        let put = self.store.put(&name.segment(number), PutPayload::from(bytes)).await;
        put.map(drop).map_err(|error| self.failed(error))
    }

    pub(crate) async fn get_segment(&self, name: &Name, number: u64, part: Range<u64>) -> Result<Bytes> {
        let key = name.segment(number);
        if let Some(root) = &self.folder {
            // A pipe would be waited for without end, and a link is not what was put there.
            match tokio::fs::symlink_metadata(root.join(key.as_ref())).await {
                Ok(found) if !found.is_file() => return Err(ArtifactError::Damaged("a segment is no file")),
                _ => {}
            }
        }
        match self.store.get_range(&key, part.clone()).await {
            Ok(bytes) => Ok(bytes),
            // A part behind the end is an error of its own with each store.
            Err(error) => match self.store.head(&key).await {
                Ok(found) if found.size < part.end => Err(ArtifactError::Damaged("a segment was cut off")),
                _ => Err(self.failed(error)),
            },
        }
    }

    /// A failure of the place's own is worth a look at it.
    fn failed(&self, error: object_store::Error) -> ArtifactError {
        let error = ArtifactError::from(error);
        if matches!(error, ArtifactError::Away(_)) {
            self.health.failures.send_modify(|failures| *failures += 1);
        }
        error
    }

    /// Tells of every failure of the place, as it happens.
    pub fn failures(&self) -> watch::Receiver<u64> {
        self.health.failures.subscribe()
    }

    /// Whether all segments of an artifact are there, each with the bytes that it should have.
    pub async fn is_whole(&self, name: &Name, size: u64) -> Result<bool> {
        for number in 0..layout::segments(size) {
            match self.store.head(&name.segment(number)).await {
                Ok(found) if found.size == layout::segment_sealed_bytes(size, number) => {}
                Ok(_) | Err(object_store::Error::NotFound { .. }) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Removes everything of an artifact, except the attempt to be kept.
    pub async fn remove(&self, tenant: &str, id: &str, except: Option<&str>) -> Result<()> {
        // The words are checked as those of a name are.
        Name::new(tenant, id, except.unwrap_or("none"))?;
        match &self.folder {
            Some(root) => remove_below(&root.join(tenant).join(id), except).await,
            None => {
                let prefix = Key::from(format!("{tenant}/{id}"));
                let kept = except.map(|attempt| format!("{tenant}/{id}/{attempt}/"));
                let keys = self.store.list(Some(&prefix)).map_ok(|found| found.location);
                let goes = move |key: &Key| !kept.as_ref().is_some_and(|kept| key.as_ref().starts_with(kept));
                let keys = keys.try_filter(move |key| std::future::ready(goes(key)));
                self.store.delete_stream(keys.boxed()).try_for_each(|_| async { Ok(()) }).await?;
                Ok(())
            }
        }
    }

    /// Removes what one writing has left.
    pub async fn remove_attempt(&self, name: &Name) -> Result<()> {
        let Name { tenant, id, attempt } = name;
        match &self.folder {
            Some(root) => remove_folder(&root.join(tenant).join(id).join(attempt)).await,
            None => {
                let prefix = Key::from(format!("{tenant}/{id}/{attempt}"));
                let keys = self.store.list(Some(&prefix)).map_ok(|found| found.location);
                self.store.delete_stream(keys.boxed()).try_for_each(|_| async { Ok(()) }).await?;
                Ok(())
            }
        }
    }

    /// Lists what lies here, attempt by attempt; one may come more than once.
    pub fn list(&self) -> mpsc::Receiver<Result<Found>> {
        let (found, listed) = mpsc::channel(LISTED);
        match self.folder.clone() {
            Some(root) => drop(tokio::task::spawn_blocking(move || walk(&root, &found))),
            None => {
                let store = Arc::clone(&self.store);
                tokio::spawn(async move {
                    let mut objects = store.list(None);
                    while let Some(object) = objects.next().await {
                        let sent = match object {
                            Ok(object) => match names(object.location.as_ref()) {
                                Some((tenant, id, attempt)) => {
                                    let changed_at_ms = object.last_modified.timestamp_millis();
                                    found.send(Ok(Found { tenant, id, attempt, changed_at_ms })).await
                                }
                                None => Ok(()),
                            },
                            Err(error) => found.send(Err(error.into())).await,
                        };
                        if sent.is_err() {
                            return;
                        }
                    }
                });
            }
        }
        listed
    }

    /// Whether the place answers.
    pub async fn check(&self) -> Result<()> {
        match self.store.head(&Key::from(MARK)).await {
            Ok(_) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the place is the one that it was, and answers. Nothing is written.
    pub async fn probe_reading(&self) -> Result<()> {
        match self.is_marked().await? || !self.health.was_marked.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(away(std::io::Error::other("what was there is gone"))),
        }
    }

    /// Whether the place takes what is put there, too.
    pub async fn probe_writing(&self) -> Result<()> {
        // First: a folder that is gone would be made anew.
        self.probe_reading().await?;
        self.store.put(&Key::from(PROBE), PutPayload::from_static(b"probe\n")).await?;
        self.store.delete(&Key::from(PROBE)).await?;
        Ok(())
    }

    /// Marks the place as the one that the records speak of.
    pub async fn mark(&self) -> Result<()> {
        self.store.put(&Key::from(MARK), PutPayload::from_static(b"artifacts of cofferdam\n")).await?;
        self.health.was_marked.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub async fn is_marked(&self) -> Result<bool> {
        match self.store.head(&Key::from(MARK)).await {
            Ok(_) => {
                self.health.was_marked.store(true, Ordering::Relaxed);
                Ok(true)
            }
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn s3(bucket: &Bucket) -> object_store::Result<impl ObjectStore> {
    // The client takes the process's default; whoever has set one before is right as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = ClientOptions::new().with_timeout(REQUEST_TIME).with_connect_timeout(CONNECT_TIME);
    let backoff = BackoffConfig { init_backoff: Duration::from_millis(100), ..BackoffConfig::default() };
    let retry = RetryConfig { backoff, max_retries: RETRIES, retry_timeout: RETRY_TIME };
    let is_plain = bucket.endpoint.as_deref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&bucket.name)
        .with_region(bucket.region.as_deref().unwrap_or("us-east-1"))
        .with_client_options(options)
        .with_allow_http(is_plain)
        .with_retry(retry);
    if let Some(endpoint) = &bucket.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let (Some(id), Some(secret)) = (&bucket.access_key_id, &bucket.secret_access_key) {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
    }
    if let Some(token) = &bucket.session_token {
        builder = builder.with_token(token);
    }
    builder.build()
}

fn names(key: &str) -> Option<(String, String, String)> {
    let mut parts = key.split('/').map(str::to_owned);
    Some((parts.next()?, parts.next()?, parts.next().filter(|_| key.split('/').count() == 4)?))
}

fn away(error: std::io::Error) -> ArtifactError {
    ArtifactError::Away(object_store::Error::Generic { store: "folder", source: Box::new(error) })
}

async fn remove_folder(folder: &Path) -> Result<()> {
    match tokio::fs::remove_dir_all(folder).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(away(error)),
        _ => Ok(()),
    }
}

async fn remove_below(folder: &Path, except: Option<&str>) -> Result<()> {
    let mut entries = match tokio::fs::read_dir(folder).await {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(away)?,
    };
    while let Some(entry) = entries.next_entry().await.map_err(away)? {
        if except.is_none_or(|kept| entry.file_name() != kept) {
            remove_folder(&entry.path()).await?;
        }
    }
    if except.is_none() {
        // Not empty: somebody writes there again. Gone: somebody was quicker.
        let _ = tokio::fs::remove_dir(folder).await;
    }
    Ok(())
}

/// Sends every attempt below a folder, with the time at which it last changed.
fn walk(root: &Path, found: &mpsc::Sender<Result<Found>>) {
    let folders = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    };
    let name = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    for tenant in folders(root) {
        for artifact in folders(&tenant.path()) {
            for attempt in folders(&artifact.path()) {
                let found_here = Found {
                    tenant: name(&tenant),
                    id: name(&artifact),
                    attempt: name(&attempt),
                    changed_at_ms: changed_at_ms(&attempt.path()),
                };
                if found.blocking_send(Ok(found_here)).is_err() {
                    return;
                }
            }
        }
    }
}

/// When a folder or a file in it last changed: one that is being written to is not old.
fn changed_at_ms(folder: &Path) -> i64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let times = files.filter_map(|file| file.metadata().and_then(|metadata| metadata.modified()).ok());
    let own = std::fs::metadata(folder).and_then(|metadata| metadata.modified()).ok();
    let newest = times.chain(own).max().unwrap_or_else(SystemTime::now);
    newest.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
