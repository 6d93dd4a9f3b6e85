//! The file of the keys. It is read and replaced whole, under a lock, and belongs to its owner alone.

use super::Keys;
use crate::{ids, now_ms};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_core::timestamp;
use cofferdam_proof::{ChainPoint, Envelope, Head, KeyId, KeyList, ListedKey, SigningKey};
use cofferdam_store::AuditHead;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use thiserror::Error;

const NAME: &str = "keys.json";

/// Why the keys cannot be used.
#[derive(Debug, Error)]
pub enum SigningError {
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },

    #[error("{path} cannot be used: {why}")]
    Unusable { path: String, why: String },

    #[error("no folder for signing keys is set")]
    NoFolder,
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> SigningError + '_ {
    |source| SigningError::Io { path: path.display().to_string(), source }
}

fn unusable(path: &Path, why: impl ToString) -> SigningError {
    SigningError::Unusable { path: path.display().to_string(), why: why.to_string() }
}

/// A key as it is kept. Of a retired one only the public half is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    key: ListedKey,
    seed: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyFile {
    /// Oldest first; the last is the current one.
    keys: Vec<Kept>,
}

/// Tells one content of the file from another: it is never changed in place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Version {
    inode: u64,
    modified_ns: i64,
    modified_s: i64,
}

/// What a rotation did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rotated {
    pub current: KeyId,
    pub retired: Option<KeyId>,
}

/// Makes a new key and retires the one before, whose secret half is destroyed. A `leaked` one is given up: nothing
/// that it has signed stands from now on.
pub fn rotate_signing_key(folder: &Path, leaked: bool) -> Result<Rotated, SigningError> {
    let _lock = lock(folder)?;
    let mut file = KeyFile::read_or_empty(folder)?;
    let now = timestamp(now_ms());
    let retired = file.keys.last_mut().map(|kept| {
        kept.key.retired_at = Some(now.clone());
        kept.key.leaked_at = leaked.then(|| now.clone());
        kept.key.keyid.clone()
    });
    file.keys.iter_mut().for_each(|kept| kept.seed = None);
    let current = file.add(folder)?;
    file.write(folder)?;
    Ok(Rotated { current, retired })
}

/// Signs the head of a chain with the key of a folder, for whoever takes a chain out of its store directly.
pub fn sign_head(
    folder: &Path,
    tenant: &str,
    head: &AuditHead,
    at_ms: i64,
) -> Result<Envelope, SigningError> {
    let keys = KeyFile::read(folder)?.keys(folder)?;
    Ok(Head(ChainPoint::new(tenant, head.seq, &head.hash, at_ms)).seal(&keys.current))
}

/// The public halves of the keys in a folder.
pub fn signing_key_list(folder: &Path) -> Result<KeyList, SigningError> {
    Ok(KeyFile::read(folder)?.keys(folder)?.list)
}

impl KeyFile {
    pub(super) fn open_or_make(folder: &Path) -> Result<(), SigningError> {
        let _lock = lock(folder)?;
        let mut file = Self::read_or_empty(folder)?;
        if file.keys.is_empty() {
            file.add(folder)?;
            file.write(folder)?;
        }
        file.keys(folder).map(drop)
    }

    pub(super) fn version(folder: &Path) -> Result<Version, SigningError> {
        let path = folder.join(NAME);
        let metadata = std::fs::metadata(&path).map_err(failed(&path))?;
        let (inode, modified_s, modified_ns) = (metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
        Ok(Version { inode, modified_ns, modified_s })
    }

    pub(super) fn read(folder: &Path) -> Result<Self, SigningError> {
        let path = folder.join(NAME);
        let mode = std::fs::metadata(&path).map_err(failed(&path))?.mode();
        if mode & 0o077 != 0 {
            let why = format!(
                "others may read it (mode {:o}); chmod 600 it, and rotate if anybody may have",
                mode & 0o777
            );
            return Err(unusable(&path, why));
        }
        let bytes = std::fs::read(&path).map_err(failed(&path))?;
        serde_json::from_slice(&bytes).map_err(|error| unusable(&path, error))
    }

    fn read_or_empty(folder: &Path) -> Result<Self, SigningError> {
        match Self::read(folder) {
            Err(SigningError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                Ok(Self { keys: Vec::new() })
            }
            other => other,
        }
    }

    /// Adds a key that nobody has had before.
    fn add(&mut self, folder: &Path) -> Result<KeyId, SigningError> {
        let seed: [u8; 32] = ids::random().map_err(|error| unusable(folder, error))?;
        let key = SigningKey::from_seed(&seed);
        let kept = Kept { key: ListedKey::new(&key.public(), now_ms()), seed: Some(STANDARD.encode(seed)) };
        self.keys.push(kept);
        Ok(key.id())
    }

    /// The whole new file is on the disk before it takes the place of the old one.
    fn write(&self, folder: &Path) -> Result<(), SigningError> {
        let (path, draft) = (folder.join(NAME), folder.join("keys.json.new"));
        let text = serde_json::to_string_pretty(self).map_err(|error| unusable(&path, error))?;
        let written = || {
            // What a rotation that was killed left, nobody else is writing: we hold the lock.
            let _ = std::fs::remove_file(&draft);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&draft, &path)?;
            File::open(folder)?.sync_all()
        };
        written().map_err(failed(&path))
    }

    pub(super) fn keys(&self, folder: &Path) -> Result<Keys, SigningError> {
        let path = folder.join(NAME);
        let list = KeyList::new(self.keys.iter().map(|kept| kept.key.clone()).collect());
        let list = list.map_err(|error| unusable(&path, error))?;
        let current = self.keys.last().ok_or_else(|| unusable(&path, "it has no key"))?;
        let seed = current.seed.as_ref().and_then(|text| STANDARD.decode(text).ok());
        let seed: Option<[u8; 32]> = seed.and_then(|seed| seed.try_into().ok());
        let key =
            SigningKey::from_seed(&seed.ok_or_else(|| unusable(&path, "the last key has no secret half"))?);
        match key.id() == current.key.keyid {
            true => Ok(Keys { current: key, list }),
            false => Err(unusable(&path, "the two halves of its last key do not fit together")),
        }
    }
}

/// Makes the folder where it is not there, and keeps others from writing until the lock is dropped.
fn lock(folder: &Path) -> Result<File, SigningError> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(folder))?;
    let path = folder.join("lock");
    let open = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = open.map_err(failed(&path))?;
    file.lock().map_err(failed(&path))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::super::{Signing, SigningSettings};
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            Self(std::env::temp_dir().join(format!("cofferdam-signing-{}-{number}", std::process::id())))
        }

        fn open(&self) -> Result<Signing, SigningError> {
            Signing::open(&SigningSettings { folder: Some(self.0.clone()) })
        }

        fn text(&self) -> String {
            std::fs::read_to_string(self.0.join(NAME)).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_first_start_makes_a_key_for_its_owner_alone_and_later_ones_keep_it() {
        let folder = Folder::new();
        let first = folder.open().unwrap().keys().unwrap().current.id();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder.0), mode(&folder.0.join(NAME))), (0o700, 0o600));
        assert_eq!(folder.open().unwrap().keys().unwrap().current.id(), first);
    }

    #[test]
    fn a_rotation_is_seen_by_who_runs_and_destroys_the_old_secret() {
        let folder = Folder::new();
        let running = folder.open().unwrap();
        let first = running.keys().unwrap().current.id();
        let secret: serde_json::Value = serde_json::from_str(&folder.text()).unwrap();
        let secret = secret["keys"][0]["seed"].as_str().unwrap().to_owned();
        let rotated = rotate_signing_key(&folder.0, false).unwrap();
        assert_eq!(rotated.retired, Some(first.clone()));
        let keys = running.keys().unwrap();
        assert_eq!(keys.current.id(), rotated.current);
        let listed: Vec<_> =
            keys.list.keys().iter().map(|key| (key.keyid.clone(), key.retired_at.is_some())).collect();
        assert_eq!(listed, [(first, true), (rotated.current, false)]);
        assert!(keys.list.keys().iter().all(|key| key.leaked_at.is_none()));
        assert!(!folder.text().contains(&secret));
        rotate_signing_key(&folder.0, true).unwrap();
        let list = signing_key_list(&folder.0).unwrap();
        let leaked: Vec<_> = list.keys().iter().map(|key| key.leaked_at.is_some()).collect();
        assert_eq!(leaked, [false, true, false]);
    }

    #[test]
    fn keys_that_others_may_read_or_that_were_altered_are_not_used() {
        let folder = Folder::new();
        folder.open().unwrap();
        let path = folder.0.join(NAME);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(folder.open().unwrap_err().to_string().contains("chmod 600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let whole = folder.text();
        let mut other: serde_json::Value = serde_json::from_str(&whole).unwrap();
        other["keys"][0]["seed"] = STANDARD.encode([7; 32]).into();
        for text in [other.to_string(), "{\"keys\":[]}x".to_owned(), whole[..whole.len() / 2].to_owned()] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(folder.open(), Err(SigningError::Unusable { .. })));
        }
    }

    #[test]
    fn what_a_killed_rotation_left_is_no_hindrance() {
        let folder = Folder::new();
        folder.open().unwrap();
        std::fs::write(folder.0.join("keys.json.new"), "half").unwrap();
        rotate_signing_key(&folder.0, false).unwrap();
        assert_eq!(signing_key_list(&folder.0).unwrap().keys().len(), 2);
    }

    #[test]
    fn starts_and_rotations_at_once_lose_no_key() {
        let folder = Folder::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| folder.open().unwrap());
                scope.spawn(|| rotate_signing_key(&folder.0, false).unwrap());
            }
        });
        let list = signing_key_list(&folder.0).unwrap();
        let current: Vec<_> = list.keys().iter().filter(|key| key.retired_at.is_none()).collect();
        assert!(current.len() == 1 && (4..=5).contains(&list.keys().len()), "{list:?}");
    }

    #[test]
    fn without_a_folder_nothing_is_signed() {
        let signing = Signing::open(&SigningSettings::default()).unwrap();
        assert!(matches!(signing.keys(), Err(SigningError::NoFolder)));
    }
}
