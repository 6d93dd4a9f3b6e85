//! The `host` image: this machine's programs, without this machine.

use super::layers::{made_once, make_folder};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Changes with what the layer holds.
const VERSION: u32 = 3;

/// Folders at the top that hold programs; links on most machines, folders on others.
const TOP: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// What programs read from `/etc` and cannot do without: where libraries and alternatives are, certificates,
/// and the settings of runtimes. Nothing in it says whose machine this is.
const ETC: [&str; 15] = [
    "alternatives",
    "ca-certificates.conf",
    "debian_version",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "matplotlibrc",
    "mime.types",
    "os-release",
    "perl",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/certs",
];

/// Settings folders of runtimes, by the beginning of their names.
const ETC_PREFIXES: [&str; 3] = ["java-", "python3", "php"];

/// The parts of the host that are mounted over the layer.
pub(super) fn parts() -> impl Iterator<Item = &'static str> {
    TOP.into_iter().filter(|name| is_real_folder(&Path::new("/").join(name)))
}

fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// The layer with the links at the top and the copied parts of `/etc`; another one when those have changed.
pub(super) fn layer(runtime_folder: &Path) -> io::Result<PathBuf> {
    let name = format!("host-{VERSION}-{:x}", fingerprint());
    made_once(runtime_folder, &name, |folder| {
        for name in TOP {
            let host = Path::new("/").join(name);
            match fs::symlink_metadata(&host) {
                Ok(metadata) if metadata.is_symlink() => symlink(fs::read_link(&host)?, folder.join(name))?,
                Ok(metadata) if metadata.is_dir() => make_folder(&folder.join(name))?,
                _ => {}
            }
        }
        make_folder(&folder.join("etc"))?;
        for name in etc_names()? {
            let target = folder.join("etc").join(&name);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            copy(&Path::new("/etc").join(&name), &target)?;
        }
        Ok(())
    })
}

fn etc_names() -> io::Result<Vec<String>> {
    let mut names: Vec<String> = ETC.iter().map(|name| (*name).to_owned()).collect();
    for entry in fs::read_dir("/etc")? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        if ETC_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Changes when a package changed one of the copied folders or the library cache.
fn fingerprint() -> u64 {
    let paths =
        ["/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/certs", "/etc/os-release", "/etc/matplotlibrc"];
    let times = paths.iter().filter_map(|path| fs::metadata(path).ok());
    times.fold(0xcbf2_9ce4_8422_2325, |hash, metadata| {
        let time = metadata.mtime() as u64 ^ (metadata.mtime_nsec() as u64) << 20 ^ metadata.ino();
        (hash ^ time).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Copies a tree as everyone sees it: links stay links, and what only root may read stays behind. Times stay, too: Python
/// has compiled what is in its settings, and compiles it again at each start where the source seems to be another.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(metadata) = fs::symlink_metadata(from) else { return Ok(()) };
    if metadata.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if metadata.permissions().mode() & 0o004 == 0 {
        return Ok(());
    }
    if metadata.is_dir() {
        make_folder(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if metadata.is_file() {
        fs::copy(from, to)?;
        fs::File::options().write(true).open(to)?.set_modified(metadata.modified()?)?;
        fs::set_permissions(to, fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}
