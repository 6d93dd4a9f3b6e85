//! The master key, and the keys of artifacts that are wrapped under it.

use crate::{ArtifactError, Result};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use zeroize::Zeroizing;

const NONCE: usize = 24;

/// What keys are derived for, so that none serves two ends.
const WRAPPING: &str = "cofferdam 2026 artifact keys";
const SIGNING: &str = "cofferdam 2026 artifact links";
const SECRETS: &str = "cofferdam 2026 secrets at rest";
const MARKS: &str = "cofferdam 2026 marks of secrets";
const FINGERPRINT: &str = "cofferdam 2026 master key fingerprint";

pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(n) if n == N => Ok(bytes),
        _ => Err(ArtifactError::NoRandomness),
    }
}

/// The key that all others are wrapped under. It lies in a file of the operator's, outside of the database and of
/// the place where the bytes are.
#[derive(Clone)]
pub struct MasterKey {
    wrapping: Zeroizing<[u8; 32]>,
    signing: Zeroizing<[u8; 32]>,
    secrets: Zeroizing<[u8; 32]>,
    fingerprint: String,
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey")
    }
}

impl MasterKey {
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self {
            wrapping: Zeroizing::new(blake3::derive_key(WRAPPING, bytes)),
            signing: Zeroizing::new(blake3::derive_key(SIGNING, bytes)),
            secrets: Zeroizing::new(blake3::derive_key(SECRETS, bytes)),
            fingerprint: hex(&blake3::derive_key(FINGERPRINT, bytes)[..8]),
        }
    }

    /// Reads a key as it is written: 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(decode_hex(text.trim())?);
        Some(Self::from_bytes(bytes.as_slice().try_into().ok()?))
    }

    /// A name for the key that tells nothing of it.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Reads the key from its file, or draws one and writes it, for its owner alone, where there is none.
    pub fn open_or_make(path: &Path) -> Result<Self> {
        let setup = |what: String| ArtifactError::Setup { what: format!("{}: {what}", path.display()) };
        match OpenOptions::new().read(true).open(path) {
            Ok(file) => read(file).map_err(setup),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let bytes = Zeroizing::new(random::<32>()?);
                make(path, &bytes).map_err(|error| setup(format!("it cannot be made: {error}")))?;
                // Whoever was quicker has made the one that counts.
                let file = File::open(path).map_err(|error| setup(error.to_string()))?;
                read(file).map_err(setup)
            }
            Err(error) => Err(setup(format!("it cannot be read: {error}"))),
        }
    }

    pub(crate) fn signing(&self) -> &[u8; 32] {
        &self.signing
    }

    /// Wraps an artifact's key. `about` says whose it is, and has to be said again to open it.
    pub fn wrap(&self, key: &ObjectKey, about: &[u8]) -> Result<String> {
        let nonce = random::<NONCE>()?;
        let payload = Payload { msg: key.bytes(), aad: about };
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.expect("a key is small");
        Ok(nonce.iter().chain(&sealed).map(|byte| format!("{byte:02x}")).collect())
    }

    pub fn unwrap(&self, wrapped: &str, about: &[u8]) -> Result<ObjectKey> {
        let bytes = decode_hex(wrapped).ok_or(ArtifactError::WrongMasterKey)?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>().ok_or(ArtifactError::WrongMasterKey)?;
        let opened = self.cipher().decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: about });
        let opened = Zeroizing::new(opened.map_err(|_| ArtifactError::WrongMasterKey)?);
        let bytes: [u8; 32] = opened.as_slice().try_into().map_err(|_| ArtifactError::WrongMasterKey)?;
        Ok(ObjectKey::from_bytes(bytes))
    }

    /// What was wrapped under this key, under another one.
    pub fn rewrap(&self, wrapped: &str, about: &[u8], next: &Self) -> Result<String> {
        next.wrap(&self.unwrap(wrapped, about)?, about)
    }

    /// What was sealed under this key, under another one.
    pub fn reseal(&self, sealed: &str, about: &[u8], next: &Self) -> Result<String> {
        next.seal_secret(&self.open_secret(sealed, about)?, about)
    }

    /// What tells bytes from others to whoever has this key, and tells nobody else anything: not even whether a guess is
    /// right.
    pub fn mark(&self, bytes: &[u8]) -> String {
        let key = Zeroizing::new(blake3::derive_key(MARKS, &*self.secrets));
        blake3::keyed_hash(&key, bytes).to_string()
    }

    /// Seals a small secret that is kept in the database. `about` has to be said again to open it.
    pub fn seal_secret(&self, secret: &str, about: &[u8]) -> Result<String> {
        let nonce = random::<NONCE>()?;
        let payload = Payload { msg: secret.as_bytes(), aad: about };
        let sealed = XChaCha20Poly1305::new(&Key::from(*self.secrets)).encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.expect("a secret is small");
        Ok(nonce.iter().chain(&sealed).map(|byte| format!("{byte:02x}")).collect())
    }

    pub fn open_secret(&self, sealed: &str, about: &[u8]) -> Result<Zeroizing<String>> {
        let bytes = decode_hex(sealed).ok_or(ArtifactError::WrongMasterKey)?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>().ok_or(ArtifactError::WrongMasterKey)?;
        let cipher = XChaCha20Poly1305::new(&Key::from(*self.secrets));
        let opened = cipher.decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: about });
        let opened = opened.map_err(|_| ArtifactError::WrongMasterKey)?;
        String::from_utf8(opened).map(Zeroizing::new).map_err(|_| ArtifactError::WrongMasterKey)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(*self.wrapping))
    }
}

pub(crate) fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    let bytes = text.as_bytes();
    bytes.len().is_multiple_of(2).then(|| bytes.chunks_exact(2).map(pair).collect())?
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn read(mut file: File) -> std::result::Result<MasterKey, String> {
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if metadata.mode() & 0o077 != 0 {
        let mode = metadata.mode() & 0o777;
        return Err(format!("others than its owner may use it (mode {mode:o}); chmod it to 600"));
    }
    let mut text = Zeroizing::new(String::new());
    file.read_to_string(&mut text).map_err(|error| error.to_string())?;
    let fix = "it is not 64 hexadecimal digits; put the right file there: without it no artifact can be read";
    MasterKey::parse(&text).ok_or_else(|| fix.to_owned())
}

/// Written whole under another name first, so that a death leaves no half of a key.
pub(crate) fn make(path: &Path, key: &[u8; 32]) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let suffix = random::<8>().map_err(std::io::Error::other)?;
    let part = path.with_extension(format!("{:016x}.part", u64::from_ne_bytes(suffix)));
    let text: Zeroizing<String> = Zeroizing::new(key.iter().map(|byte| format!("{byte:02x}")).collect());
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    // A link, unlike a rename, does not replace the key of somebody who was quicker.
    let linked = written.and_then(|()| match std::fs::hard_link(&part, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    std::fs::remove_file(&part)?;
    linked?;
    File::open(folder)?.sync_all()
}

/// The key of one writing of one artifact.
#[derive(Clone)]
pub struct ObjectKey(Zeroizing<[u8; 32]>);

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObjectKey")
    }
}

impl ObjectKey {
    pub fn draw() -> Result<Self> {
        random().map(Self::from_bytes)
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Seals one of many small things under the same key, each with a nonce of its own, which goes before it. `about` has
    /// to be said again to open it.
    pub fn seal(&self, plain: &[u8], about: &[u8]) -> Result<Vec<u8>> {
        let nonce = random::<NONCE>()?;
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: about });
        let sealed = sealed.expect("it is small");
        Ok([&nonce[..], &sealed].concat())
    }

    pub fn open(&self, sealed: &[u8], about: &[u8]) -> Result<Vec<u8>> {
        let damaged = ArtifactError::Damaged("it does not open under its key");
        let Some((nonce, sealed)) = sealed.split_first_chunk::<NONCE>() else { return Err(damaged) };
        let opened = self.cipher().decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: about });
        opened.map_err(|_| damaged)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(*self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_wrapped_key_opens_for_its_own_artifact_under_its_own_master() {
        let (master, other) = (MasterKey::from_bytes(&[1; 32]), MasterKey::from_bytes(&[2; 32]));
        let key = ObjectKey::draw().unwrap();
        let wrapped = master.wrap(&key, b"art-a").unwrap();
        assert_eq!(master.unwrap(&wrapped, b"art-a").unwrap().bytes(), key.bytes());
        assert!(master.unwrap(&wrapped, b"art-b").is_err());
        assert!(other.unwrap(&wrapped, b"art-a").is_err());
        let changed = wrapped.replacen(wrapped.chars().last().unwrap(), "x", 1);
        for text in ["", "00", &changed, &wrapped[2..]] {
            assert!(master.unwrap(text, b"art-a").is_err(), "{text}");
        }
        assert_ne!(wrapped, master.wrap(&key, b"art-a").unwrap(), "a nonce is drawn each time");
    }

    #[test]
    fn what_a_key_has_sealed_opens_for_what_it_was_sealed_for() {
        let (key, other) = (ObjectKey::draw().unwrap(), ObjectKey::draw().unwrap());
        let sealed = key.seal(b"what a step wrote", b"stp-a").unwrap();
        assert_eq!(key.open(&sealed, b"stp-a").unwrap(), b"what a step wrote");
        assert!(!sealed.windows(4).any(|part| part == b"step"));
        assert!(key.open(&sealed, b"stp-b").is_err() && other.open(&sealed, b"stp-a").is_err());
        assert!(key.open(&sealed[1..], b"stp-a").is_err() && key.open(b"", b"stp-a").is_err());
        assert_ne!(sealed, key.seal(b"what a step wrote", b"stp-a").unwrap(), "a nonce is drawn each time");
    }

    #[test]
    fn a_sealed_secret_opens_for_what_it_was_sealed_for() {
        let (master, other) = (MasterKey::from_bytes(&[1; 32]), MasterKey::from_bytes(&[2; 32]));
        let sealed = master.seal_secret("a secret of somebody's", b"https://a").unwrap();
        assert!(!sealed.contains("secret"));
        assert_eq!(*master.open_secret(&sealed, b"https://a").unwrap(), "a secret of somebody's");
        assert!(master.open_secret(&sealed, b"https://b").is_err());
        assert!(other.open_secret(&sealed, b"https://a").is_err());
        for text in ["", "00", "a secret of somebody's", &sealed[2..]] {
            assert!(master.open_secret(text, b"https://a").is_err(), "{text}");
        }
    }

    #[test]
    fn the_master_key_is_made_once_and_for_its_owner() {
        let folder = std::env::temp_dir().join(format!("cofferdam-master-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("master.key");
        let first = MasterKey::open_or_make(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(MasterKey::open_or_make(&path).unwrap().signing(), first.signing());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = MasterKey::open_or_make(&path).unwrap_err().to_string();
        assert!(error.contains("chmod"), "{error}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "short").unwrap();
        assert!(MasterKey::open_or_make(&path).is_err(), "a broken key is not replaced");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
