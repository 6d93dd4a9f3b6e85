//! Layers that are made here, once, and then only read.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Changes with what `base` holds, so that an old layer is never taken for a new one.
const BASE_VERSION: u32 = 1;

/// Mount points of every sandbox.
const FOLDERS: [&str; 6] = ["dev", "etc", "proc", "run", "tmp", "workspace"];

const FILES: [(&str, &str); 6] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/workspace:/bin/sh\n\
         sandbox:x:1000:1000:sandbox:/workspace:/bin/sh\n\
         nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    ),
    ("etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n"),
    ("etc/hostname", "sandbox\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    ("etc/resolv.conf", ""),
];

/// The layer with the mount points and the made-up `/etc`.
pub(super) fn base(runtime_folder: &Path) -> io::Result<PathBuf> {
    made_once(runtime_folder, &format!("base-{BASE_VERSION}"), |folder| {
        for name in FOLDERS {
            make_folder(&folder.join(name))?;
        }
        for (name, content) in FILES {
            let path = folder.join(name);
            fs::write(&path, content)?;
            fs::set_permissions(&path, Permissions::from_mode(0o644))?;
        }
        Ok(())
    })
}

/// Makes a folder that everyone can read, whatever the umask.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
}

/// Returns a layer, made by `fill` unless it is there. It appears under its name only when it is complete.
pub(super) fn made_once(
    runtime_folder: &Path,
    name: &str,
    fill: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let layers = runtime_folder.join("layers");
    let layer = layers.join(name);
    if layer.is_dir() {
        return Ok(layer);
    }
    fs::create_dir_all(&layers)?;
    static MADE: AtomicU32 = AtomicU32::new(0);
    let unique = MADE.fetch_add(1, Ordering::Relaxed);
    let unfinished = layers.join(format!(".{name}-{}-{unique}", std::process::id()));
    let _ = fs::remove_dir_all(&unfinished);
    make_folder(&unfinished)?;
    fill(&unfinished)?;
    match fs::rename(&unfinished, &layer) {
        // Another process was quicker; its layer is as good.
        Err(_) if layer.is_dir() => fs::remove_dir_all(&unfinished)?,
        other => other?,
    }
    Ok(layer)
}
