//! Files of the host that go into a sandbox. They are opened before anything is made, so that one that
//! cannot be read leaves nothing behind.

use super::reader::{PlainFile, threaded};
use crate::exit::Failure;
use cofferdam_backend::Reader;
use cofferdam_core::GuestPath;
use cofferdam_worker::FileIn;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A file of the host, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileSource {
    pub(crate) host: PathBuf,
    pub(crate) guest: GuestPath,
}

/// Opens a file. What may be executed here may be executed inside.
pub(crate) fn open(source: FileSource) -> Result<FileIn, Failure> {
    let FileSource { host, guest } = source;
    let wrong = |what: &dyn std::fmt::Display| Failure::new(format!("{}: {what}", host.display()));
    let file = File::open(&host).map_err(|error| wrong(&error))?;
    let meta = file.metadata().map_err(|error| wrong(&error))?;
    if meta.is_dir() {
        return Err(wrong(&"it is a folder; only files can be put into the sandbox"));
    }
    let mode = if meta.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 };
    let content: Reader = if meta.is_file() {
        Box::new(PlainFile(file))
    } else {
        threaded(file).map_err(|error| wrong(&error))?
    };
    Ok(FileIn { path: guest, mode, content })
}

/// That a folder which the user named is there.
pub(crate) fn check_folder(option: &str, path: &Path) -> Result<(), Failure> {
    let wrong = |what: &dyn std::fmt::Display| Failure::new(format!("{option} {}: {what}", path.display()));
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(wrong(&"it is not a folder")),
        Err(error) => Err(wrong(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    fn source(host: &str) -> FileSource {
        FileSource { host: host.into(), guest: GuestPath::parse("file", "/workspace/x").unwrap() }
    }

    #[tokio::test]
    async fn files_are_opened_with_their_mode() {
        let plain = open(source("/proc/self/status")).unwrap();
        assert_eq!(plain.mode, 0o644);
        let mut program = open(source("/proc/self/exe")).unwrap();
        assert_eq!(program.mode, 0o755);
        assert_eq!(program.content.read_u8().await.unwrap(), 0x7f);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let message = open(source("/nowhere/at all")).unwrap_err().message;
        assert!(message.starts_with("/nowhere/at all: No such file"), "{message}");
        assert!(open(source("/")).unwrap_err().message.contains("folder"));
        assert!(check_folder("--rootfs", Path::new("/proc/self/status")).is_err());
        assert!(check_folder("--rootfs", Path::new("/")).is_ok());
    }
}
