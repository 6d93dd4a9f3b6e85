//! The data folder of a server: where its database is, and which small files belong to it.

use crate::exit::Failure;
use cofferdam_store::file::KeptFile;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// The database and what SQLite keeps beside it, or what was set aside, begin so.
const DATABASE: &str = "cofferdam.db";

/// Too large for one file, and content-addressed: it is copied with any tool, before or after.
const ARTIFACTS: &str = "artifacts";

/// A key has some hundred bytes. What is larger is no file of ours.
const MAX_FILE_BYTES: u64 = 1 << 20;

pub(super) fn database(folder: &Path) -> PathBuf {
    folder.join(DATABASE)
}

/// A runtime for a command that mostly waits for a disk.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// What a folder has besides the database.
#[derive(Debug, Default)]
pub(super) struct SmallFiles {
    pub(super) files: Vec<KeptFile>,
    /// Names of what is not taken.
    pub(super) left_out: Vec<String>,
}

impl SmallFiles {
    /// The master key, as its file has it.
    pub(super) fn master_key(&self) -> Option<&KeptFile> {
        self.files.iter().find(|file| file.path == "master.key")
    }
}

pub(super) fn read_files(folder: &Path) -> Result<SmallFiles, Failure> {
    let mut found = SmallFiles::default();
    walk(folder, "", &mut found)?;
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn walk(folder: &Path, prefix: &str, found: &mut SmallFiles) -> Result<(), Failure> {
    let failed = |path: &Path, error| Failure::new(format!("{}: {error}", path.display()));
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let (path, shown) = (entry.path(), format!("{prefix}{name}"));
        // The name and the lock of a folder are no other folder's.
        if prefix.is_empty() && (name.starts_with(DATABASE) || name == "lock" || name == "node") {
            continue;
        }
        // Links are not followed: what they lead to is not in this folder.
        let data = fs::symlink_metadata(&path).map_err(|error| failed(&path, error))?;
        if data.is_dir() && !(prefix.is_empty() && name == ARTIFACTS) {
            walk(&path, &format!("{shown}/"), found)?;
        } else if data.is_file() && data.len() <= MAX_FILE_BYTES && entry.file_name().to_str().is_some() {
            let bytes = fs::read(&path).map_err(|error| failed(&path, error))?;
            found.files.push(KeptFile { path: shown, mode: data.mode() & 0o777, bytes });
        } else {
            found.left_out.push(shown);
        }
    }
    Ok(())
}

/// Puts files where they were. One that is there with other bytes is refused, unless it is to be replaced.
pub(super) fn write_files(folder: &Path, files: &[KeptFile], replaces: bool) -> Result<(), Failure> {
    for file in files {
        let path = folder.join(inside(&file.path)?);
        if !replaces && fs::read(&path).is_ok_and(|bytes| bytes != file.bytes) {
            return Err(Failure::new(format!("{} is there already, and is another", path.display())));
        }
    }
    for file in files {
        let path = folder.join(inside(&file.path)?);
        if let Some(parent) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        // As a new file, so that nothing that reads the old one sees a half.
        let partial = path.with_extension("restoring");
        let _ = fs::remove_file(&partial);
        let mut target =
            OpenOptions::new().write(true).create_new(true).mode(file.mode & 0o777).open(&partial)?;
        target.write_all(&file.bytes)?;
        target.sync_all()?;
        fs::rename(&partial, &path)?;
    }
    Ok(())
}

/// A path that a backup names, if it stays inside the folder and is not the database's.
fn inside(path: &str) -> Result<&Path, Failure> {
    let plain = Path::new(path);
    let is_inside = plain.components().all(|part| matches!(part, Component::Normal(_)));
    if is_inside && !path.is_empty() && !path.starts_with(DATABASE) {
        return Ok(plain);
    }
    Err(Failure::new(format!("the backup names a file {path:?}, which is not inside a data folder")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_cannot_write_outside() {
        for path in ["../x", "/etc/passwd", "a/../../x", "", ".", "cofferdam.db", "cofferdam.db-wal"] {
            assert!(inside(path).is_err(), "{path:?}");
        }
        assert!(inside("signing/current.key").is_ok());
    }
}
