//! Artifacts into a folder of the host, such as `--artifacts-out` names.
//!
//! The folder is the caller's word and may be a link itself; nothing below it is followed. Files that are
//! there already are replaced, as `cp` would, yet never written through: each artifact is written under a
//! name of its own and then renamed, so a link (symbolic or hard) at its place is replaced and its target
//! left alone, and no half of a file is ever seen. Folders are merged; other files are left as they are.

use super::ArtifactStore;
use super::path::ArtifactPath;
use cofferdam_backend::async_trait;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use tokio::io::{AsyncRead, AsyncReadExt};

const COPY_BYTES: usize = 64 << 10;

/// A folder of the host, held open.
#[derive(Debug)]
pub struct HostFolder {
    folder: OwnedFd,
}

impl HostFolder {
    /// Opens the folder, and makes it where it is missing; what it lies in has to be there.
    pub fn open(path: &Path) -> io::Result<Self> {
        match std::fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let folder = open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { folder })
    }

    /// The folder that `names` lead to, made where missing. None of them may be a link.
    fn descend(&self, names: &[String]) -> io::Result<OwnedFd> {
        let mut folder = self.folder.try_clone()?;
        for name in names {
            match mkdirat(&folder, name.as_str(), Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            folder = match openat(&folder, name.as_str(), flags, Mode::empty()) {
                Ok(next) => next,
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    let reason = format!("{name:?} in the output folder is a link or a file");
                    return Err(io::Error::new(io::ErrorKind::NotADirectory, reason));
                }
                Err(error) => return Err(error.into()),
            };
        }
        Ok(folder)
    }
}

#[async_trait]
impl ArtifactStore for HostFolder {
    async fn put(
        &mut self,
        path: &ArtifactPath,
        content: &mut (dyn AsyncRead + Send + Sync + Unpin),
    ) -> io::Result<u64> {
        let (folders, name) = path.split();
        let mut part = Part::create(self.descend(folders)?)?;
        let mut buffer = Vec::with_capacity(COPY_BYTES);
        let mut written = 0;
        while content.read_buf(&mut buffer).await? > 0 {
            // Files of the host take bytes at once or at the speed of its disk; there is nothing to wait on.
            part.file.write_all(&buffer)?;
            written += buffer.len() as u64;
            buffer.clear();
        }
        part.rename(name)?;
        Ok(written)
    }
}

/// A file under a name of its own, removed again unless it is renamed.
struct Part {
    folder: OwnedFd,
    name: String,
    file: File,
    renamed: bool,
}

impl Part {
    fn create(folder: OwnedFd) -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let name = format!(".cofferdam-{:016x}.part", u64::from_ne_bytes(random));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&folder, name.as_str(), flags, Mode::from_raw_mode(0o666))?;
        Ok(Self { folder, name, file: File::from(file), renamed: false })
    }

    fn rename(mut self, name: &str) -> io::Result<()> {
        let folder = self.folder.as_fd();
        renameat(folder, self.name.as_str(), folder, name)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.renamed {
            // It holds half of an artifact; if even this fails, its name says what it is.
            let _ = unlinkat(&self.folder, self.name.as_str(), AtFlags::empty());
        }
    }
}

#[cfg(test)]
#[path = "host_folder_tests.rs"]
mod tests;
