//! Empty filesystems, one file per size: made once by mkfs.ext4, and copied for each sandbox.
//!
//! They lie in the runtime folder, which is gone when the machine restarts, and hold a few hundred kilobytes each.

use crate::doctor::find_anywhere;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// Changes with how they are made, so that an old one is never taken for a new one.
const VERSION: u32 = 1;

/// Whoever asks for more sizes than this waits for mkfs.ext4 again.
const MAX_TEMPLATES: usize = 64;

pub(super) const BLOCK_BYTES: u64 = 4096;

/// Features that every kernel has for which there are sandboxes. No journal: nothing outlives a crash here.
const FEATURES: &str = "none,extent,filetype,sparse_super,large_file,huge_file,dir_index,dir_nlink,\
                        extra_isize,flex_bg,uninit_bg,64bit";

/// What of a size a filesystem can use.
pub(super) fn whole_blocks(bytes: u64) -> u64 {
    bytes / BLOCK_BYTES * BLOCK_BYTES
}

/// How many more files there may be than were asked for: tables have whole blocks, one table for each group of
/// blocks.
pub(super) fn surplus_inodes(bytes: u64) -> u64 {
    const INODES_PER_BLOCK: u64 = BLOCK_BYTES / 256;
    const GROUP_BYTES: u64 = BLOCK_BYTES * BLOCK_BYTES * 8;
    bytes.div_ceil(GROUP_BYTES) * INODES_PER_BLOCK
}

/// The template of a size, which is made at first use.
pub(super) fn open(folder: &Path, bytes: u64, inodes: u64) -> io::Result<File> {
    let path = folder.join(format!("ext4-{VERSION}-{bytes}-{inodes}"));
    match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(folder, &path, bytes, inodes),
        other => other,
    }
}

/// Makes a template. It appears under its name only when it is complete.
fn make(folder: &Path, path: &Path, bytes: u64, inodes: u64) -> io::Result<File> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    fs::create_dir_all(folder)?;
    let unique = MADE.fetch_add(1, Ordering::Relaxed);
    let unfinished = folder.join(format!(".{}-{unique}", std::process::id()));
    let _ = fs::remove_file(&unfinished);
    let file = OpenOptions::new().read(true).write(true).mode(0o600).create_new(true).open(&unfinished)?;
    let made = file.set_len(whole_blocks(bytes)).and_then(|()| mkfs(&unfinished, inodes));
    match made.and_then(|()| fs::rename(&unfinished, path)) {
        Ok(()) => {
            forget_oldest(folder);
            Ok(file)
        }
        Err(error) => {
            let _ = fs::remove_file(&unfinished);
            Err(error)
        }
    }
}

fn mkfs(image: &Path, inodes: u64) -> io::Result<()> {
    let program = find_anywhere("mkfs.ext4").ok_or_else(|| io::Error::other("there is no mkfs.ext4"))?;
    let mut command = Command::new(program);
    // Only what is asked for here: the machine's own defaults are for disks that last.
    command.env_clear().env("MKE2FS_CONFIG", "/dev/null").stdin(Stdio::null());
    command.args(["-q", "-F", "-t", "ext4", "-m", "0", "-I", "256"]);
    command.args(["-b", &BLOCK_BYTES.to_string(), "-N", &inodes.to_string(), "-O", FEATURES]);
    command.args(["-E", "lazy_itable_init=1,nodiscard"]).arg(image);
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    Err(io::Error::other(format!("mkfs.ext4 failed: {}", last.trim())))
}

fn forget_oldest(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let age = |path: PathBuf| Some((fs::metadata(&path).ok()?.modified().ok()?, path));
    let mut templates: Vec<(SystemTime, PathBuf)> =
        entries.flatten().filter_map(|entry| age(entry.path())).collect();
    templates.sort();
    let surplus = templates.len().saturating_sub(MAX_TEMPLATES);
    for (_, path) in &templates[..surplus] {
        // Whoever has it open keeps it.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt, MetadataExt};

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("cofferdam-template-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_template_is_made_once_and_is_sparse() {
        let folder = folder("once");
        let first = open(&folder, 100 << 20, 6400).unwrap();
        let again = open(&folder, 100 << 20, 6400).unwrap();
        let (first, again) = (first.metadata().unwrap(), again.metadata().unwrap());
        assert_eq!(first.ino(), again.ino());
        assert_eq!(first.len(), 100 << 20);
        assert!(first.blocks() * 512 < 1 << 20, "{} bytes", first.blocks() * 512);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        let mut magic = [0; 2];
        File::open(folder.join("ext4-1-104857600-6400"))
            .unwrap()
            .read_exact_at(&mut magic, 1024 + 56)
            .unwrap();
        assert_eq!(magic, [0x53, 0xEF]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_failure_says_what_mkfs_said_and_leaves_nothing() {
        let folder = folder("failure");
        let error = open(&folder, 8192, 1 << 20).unwrap_err().to_string();
        assert!(error.starts_with("mkfs.ext4 failed: ") && error.len() > 25, "{error}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn only_so_many_are_kept() {
        let folder = folder("many");
        fs::create_dir(&folder).unwrap();
        for i in 0..MAX_TEMPLATES + 5 {
            File::create(folder.join(format!("{i:03}"))).unwrap();
        }
        forget_oldest(&folder);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), MAX_TEMPLATES);
        fs::remove_dir_all(&folder).unwrap();
    }
}
