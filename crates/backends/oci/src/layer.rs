//! What is put over every root folder: the helper, places for mounts, a name for the user. Made once for each
//! image and each helper, and shared by all sandboxes.

use cofferdam_guest::{PROGRAM, UID};
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Raised when what is put in changes.
const LAYOUT: &str = "1";

fn with_user(mut text: String, line: &str) -> String {
    let number = UID.to_string();
    if !text.lines().any(|line| line.split(':').nth(2) == Some(&*number)) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// A file of the image, without following a link out of it: one that is a link is left alone.
fn of_image(image: &Path, name: &str) -> String {
    let path = image.join(name);
    match fs::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_file() => fs::read_to_string(path).unwrap_or_default(),
        _ => String::new(),
    }
}

/// The layer for an image, in a folder of layers.
pub(crate) fn layer(layers: &Path, image: &Path, helper: &Path) -> io::Result<PathBuf> {
    let passwd = of_image(image, "etc/passwd");
    let passwd = with_user(passwd, &format!("sandbox:x:{UID}:{UID}:sandbox:/workspace:/bin/sh"));
    let group = with_user(of_image(image, "etc/group"), &format!("sandbox:x:{UID}:"));
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
