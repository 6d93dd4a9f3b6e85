//! What is put over every root folder: the helper, places for mounts, a name for the user. Made once for each
//! image and each helper, and shared by all sandboxes.

use cofferdam_guest::PROGRAM;
use cofferdam_guest::accounts::with_user;
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Raised when what is put in changes.
const LAYOUT: &str = "1";

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

/// The layer for an image, in a folder of layers.
pub(crate) fn layer(layers: &Path, image: &[PathBuf], helper: &Path) -> io::Result<PathBuf> {
    let (passwd, group) = with_user(of_image(image, "etc/passwd"), of_image(image, "etc/group"));
    let program = fs::read(helper)?;
    let mut digest = Sha256::new();
    for part in [LAYOUT.as_bytes(), passwd.as_bytes(), group.as_bytes(), &program] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let name: String = digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let done = layers.join(&name);
    if done.exists() {
        return Ok(done);
    }
    // Another one may be making the same: each makes its own, and the first to rename it is taken.
    let making = layers.join(format!("{name}.{}", unique()));
    for folder in [".cofferdam", "workspace", "tmp", "proc", "dev/pts", "dev/shm", "etc"] {
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
