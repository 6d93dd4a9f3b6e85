//! The files of a master key, and how one takes the other's place.
//!
//! `master.key` is the key. `master.key.next` is one that is about to be, and `master.key.old` one that was, for as long
//! as a change takes. Which of them counts is not theirs to say: the store has the fingerprint. Every step here can be
//! the last of a process, and [`KeyFiles::settle`] goes on from wherever that was.

use crate::keys::{MasterKey, make, random, read};
use crate::{ArtifactError, Result};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

#[derive(Debug, Clone)]
pub struct KeyFiles {
    folder: PathBuf,
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> ArtifactError {
    ArtifactError::Setup { what: format!("{}: it cannot be {what}: {error}", path.display()) }
}

impl KeyFiles {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    pub fn current(&self) -> PathBuf {
        self.folder.join("master.key")
    }

    fn next(&self) -> PathBuf {
        self.folder.join("master.key.next")
    }

    fn old(&self) -> PathBuf {
        self.folder.join("master.key.old")
    }

    /// Whether a change has begun that was not finished.
    pub fn are_unsettled(&self) -> bool {
        self.next().exists() || self.old().exists()
    }

    /// Draws the key that is to be, and writes it beside the one that is.
    pub fn draw_next(&self) -> Result<MasterKey> {
        let (path, bytes) = (self.next(), Zeroizing::new(random::<32>()?));
        make(&path, &bytes).map_err(|error| failed(&path, "made", &error))?;
        self.open(&path)?.ok_or_else(|| failed(&path, "read", &ErrorKind::NotFound.into()))
    }

    /// Brings the files to where the store is, which is under the key of this fingerprint: a key that was to be takes its
    /// place or is given up, and one that was is destroyed. Without a fingerprint nothing can have begun.
    pub fn settle(&self, fingerprint: Option<&str>) -> Result<()> {
        self.remove_drafts()?;
        let (current, next, old) = (self.current(), self.next(), self.old());
        let counts = |key: &MasterKey| Some(key.fingerprint()) == fingerprint;
        match self.open(&next)? {
            Some(key) if counts(&key) => self.promote()?,
            Some(_) => destroy(&next)?,
            None => {}
        }
        if old.exists() {
            match self.open(&current)? {
                Some(key) if counts(&key) => destroy(&old)?,
                _ => {
                    let what = format!(
                        "{}: it is not the key that the store is under, and neither is what was put beside it; \
                         put the right file there",
                        current.display()
                    );
                    return Err(ArtifactError::Setup { what });
                }
            }
        }
        Ok(())
    }

    /// The key that the store is under takes its place. The one before keeps a name until its bytes are overwritten.
    pub fn promote(&self) -> Result<()> {
        let (current, next, old) = (self.current(), self.next(), self.old());
        match std::fs::hard_link(&current, &old) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists || error.kind() == ErrorKind::NotFound => {
            }
            linked => linked.map_err(|error| failed(&old, "made", &error))?,
        }
        self.sync()?;
        std::fs::rename(&next, &current).map_err(|error| failed(&current, "replaced", &error))?;
        self.sync()
    }

    /// Destroys the file of the key, which lives on elsewhere or not at all.
    pub fn destroy_current(&self) -> Result<()> {
        destroy(&self.current())
    }

    /// What a death has left of a key that was being written, and that nobody has used.
    fn remove_drafts(&self) -> Result<()> {
        let entries =
            std::fs::read_dir(&self.folder).map_err(|error| failed(&self.folder, "read", &error))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with("master.") && name.ends_with(".part") {
                destroy(&path)?;
            }
        }
        Ok(())
    }

    fn open(&self, path: &Path) -> Result<Option<MasterKey>> {
        match File::open(path) {
            Ok(file) => read(file)
                .map(Some)
                .map_err(|what| ArtifactError::Setup { what: format!("{}: {what}", path.display()) }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(path, "read", &error)),
        }
    }

    fn sync(&self) -> Result<()> {
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| failed(&self.folder, "written", &error))
    }
}

/// Overwrites a file and removes it. What a filesystem keeps of what was overwritten is not for us to say.
fn destroy(path: &Path) -> Result<()> {
    let file = match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file,
    };
    let overwrite = |mut file: File| {
        let length = file.metadata()?.len();
        file.write_all(&vec![b'0'; length as usize])?;
        file.sync_all()?;
        std::fs::remove_file(path)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    file.and_then(overwrite).map_err(|error| failed(path, "destroyed", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("cofferdam-key-files-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    type Step = (&'static str, fn(&KeyFiles), bool);

    #[test]
    fn a_change_goes_on_from_every_step() {
        // What was done before the death, and whether the store was under the new key by then.
        let steps: [Step; 5] = [
            ("drawn", |_| {}, false),
            ("written", |_| {}, true),
            ("linked", |files| std::fs::hard_link(files.current(), files.old()).unwrap(), true),
            ("promoted", |files| files.promote().unwrap(), true),
            (
                "half destroyed",
                |files| {
                    files.promote().unwrap();
                    std::fs::write(files.old(), "0000").unwrap();
                },
                true,
            ),
        ];
        for (name, step, is_written) in steps {
            let place = folder(&name.replace(' ', "-"));
            let files = KeyFiles::new(&place);
            let before = MasterKey::open_or_make(&files.current()).unwrap();
            let next = files.draw_next().unwrap();
            step(&files);
            std::fs::write(place.join("master.key.0123.part"), "half of a").unwrap();
            let counts = if is_written { &next } else { &before };
            for _ in 0..2 {
                files.settle(Some(counts.fingerprint())).unwrap();
                let now = MasterKey::open_or_make(&files.current()).unwrap();
                assert_eq!(now.fingerprint(), counts.fingerprint(), "{name}");
                assert_eq!(names(&place), ["master.key"], "{name}");
            }
            std::fs::remove_dir_all(&place).unwrap();
        }
    }

    #[test]
    fn no_key_is_destroyed_while_another_counts() {
        let place = folder("foreign");
        let files = KeyFiles::new(&place);
        MasterKey::open_or_make(&files.current()).unwrap();
        files.draw_next().unwrap();
        files.promote().unwrap();
        let error = files.settle(Some("somebody else's")).unwrap_err().to_string();
        assert!(error.contains("put the right file there"), "{error}");
        assert_eq!(names(&place), ["master.key", "master.key.old"]);
        std::fs::remove_dir_all(&place).unwrap();
    }
}
