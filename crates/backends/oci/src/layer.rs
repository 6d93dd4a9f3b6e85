//! What is put over every root folder: the helper, places for mounts, a name for the user. Made once for each
//! image and each helper, and shared by all sandboxes.

use cofferdam_guest::accounts::with_user;
use cofferdam_guest::{PROGRAM, SECRETS};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Raised when what is put in changes.
const LAYOUT: &str = "3";

/// A file of the image, from its uppermost layer that has it. No link is followed: one that is a link, or that a layer
/// deletes, is left alone.
fn of_image(image: &[PathBuf], name: &str) -> String {
    for layer in image {
        let path = layer.join(name);
        let folder = path.parent().map(fs::symlink_metadata);
        match (folder, fs::symlink_metadata(&path)) {
            (Some(Ok(folder)), Ok(file)) if folder.is_dir() && file.is_file() => {
                return fs::read_to_string(path).unwrap_or_default();
            }
            // The layer says nothing of it, and neither of what it lies in.
            (Some(Ok(folder)), Err(_)) if folder.is_dir() => {}
            (Some(Err(_)), _) => {}
            _ => break,
        }
    }
    String::new()
}

/// Which file it is. A program is replaced by another file, and a change in its place shows in the last of these, which
/// nobody can set. Its bytes would say the same, but to read and hash all of them takes longer than all else here.
fn which(file: &File) -> io::Result<Vec<u8>> {
    let of = file.metadata()?;
    let parts = [of.dev(), of.ino(), of.size(), of.ctime() as u64, of.ctime_nsec() as u64];
    Ok(parts.iter().flat_map(|part| part.to_le_bytes()).collect())
}

/// The layer for an image, in a folder of layers.
pub(crate) fn layer(layers: &Path, image: &[PathBuf], helper: &Path) -> io::Result<PathBuf> {
    let (passwd, group) = with_user(of_image(image, "etc/passwd"), of_image(image, "etc/group"));
    let mut helper = File::open(helper)?;
    let mut digest = Sha256::new();
    for part in [LAYOUT.as_bytes(), passwd.as_bytes(), group.as_bytes(), &which(&helper)?] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let name: String = digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let done = layers.join(&name);
    if done.exists() {
        return Ok(done);
    }
    let mut program = Vec::new();
    helper.read_to_end(&mut program)?;
    // Another one may be making the same: each makes its own, and the first to rename it is taken.
    let making = layers.join(format!("{name}.{}", unique()));
    let secrets = SECRETS.trim_start_matches('/');
    for folder in [".cofferdam", "workspace", "tmp", "proc", "dev/pts", "dev/shm", "etc", secrets] {
        fs::create_dir_all(making.join(folder))?;
    }
    fs::set_permissions(&making, fs::Permissions::from_mode(0o755))?;
    let files: [(&str, &[u8], u32); 5] = [
        (PROGRAM.trim_start_matches('/'), &program, 0o755),
        ("etc/passwd", passwd.as_bytes(), 0o644),
        ("etc/group", group.as_bytes(), 0o644),
        ("etc/hosts", b"127.0.0.1\tlocalhost\n::1\tlocalhost\n", 0o644),
        ("etc/resolv.conf", b"", 0o644),
    ];
    for (path, content, mode) in files {
        let path = making.join(path);
        fs::write(&path, content)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    if fs::rename(&making, &done).is_err() {
        fs::remove_dir_all(&making)?;
    }
    Ok(done)
}

fn unique() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_made_once_for_a_helper_and_anew_for_another_in_its_place() {
        let folder = std::env::temp_dir().join(format!("cofferdam-layer-{}", unique()));
        let (layers, helper) = (folder.join("layers"), folder.join("helper"));
        fs::create_dir_all(&layers).unwrap();
        let put = |content: &str| {
            fs::write(folder.join("new"), content).unwrap();
            fs::rename(folder.join("new"), &helper).unwrap();
        };
        let made = || layer(&layers, &[], &helper).unwrap();
        put("one");
        let first = made();
        assert_eq!(made(), first);
        assert_eq!(fs::read_to_string(first.join(PROGRAM.trim_start_matches('/'))).unwrap(), "one");
        put("two");
        let second = made();
        assert_ne!(second, first);
        assert_eq!(fs::read_to_string(second.join(PROGRAM.trim_start_matches('/'))).unwrap(), "two");
        assert_eq!(fs::read_dir(&layers).unwrap().count(), 2);
        fs::remove_dir_all(&folder).unwrap();
    }
}
