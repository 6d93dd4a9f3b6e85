//! Where the benchmark keeps things, and how it leaves the machine: one lock, the prepared cache, one folder
//! in /run for daemons and container state, one cgroup parent for every peer. Closing takes it all down and
//! says so if it cannot.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::failure::{Doing, Failure, Result};

/// Parent of every cgroup that a daemon makes for us, and prefix of the ids of those made without one.
pub(crate) const CGROUP: &str = "cofferdam-bench";

/// Made by peers at fixed places, whatever they are told. Innermost first; removed when empty and not there
/// before.
const SIDE_EFFECTS: [&str; 5] =
    ["/run/docker/plugins", "/run/docker", "/run/containerd/s", "/run/containerd", "/run/runc"];

#[derive(Debug)]
pub(crate) struct Workplace {
    cache: PathBuf,
    run: PathBuf,
    stamp: String,
    side_effects: Vec<&'static str>,
    /// Held, not read: two benchmarks at once would measure each other.
    _lock: File,
}

impl Workplace {
    pub(crate) fn open() -> Result<Self> {
        let cache = cache_dir()?;
        let stamp = fs::read_to_string(cache.join("rootfs.stamp")).map_err(|_| {
            Failure::new(format!(
                "no root filesystem in {}: run bench/setup.sh as root first",
                cache.display()
            ))
        })?;
        let (run, lock) = claim_run_dir(&cache)?;
        let side_effects = SIDE_EFFECTS.into_iter().filter(|path| !Path::new(path).exists()).collect();
        Ok(Self { cache, run, stamp: stamp.trim().to_owned(), side_effects, _lock: lock })
    }

    pub(crate) fn rootfs(&self) -> PathBuf {
        self.cache.join("rootfs")
    }

    /// What outlives a run, such as a peer's image store.
    pub(crate) fn cache(&self, name: &str) -> PathBuf {
        self.cache.join(name)
    }

    /// What does not.
    pub(crate) fn run(&self, name: &str) -> PathBuf {
        self.run.join(name)
    }

    /// The image's name in any store. It carries the tree's stamp, so an image of an older tree is never
    /// taken for it.
    pub(crate) fn image(&self) -> String {
        format!("localhost/cofferdam-bench:{}", self.stamp)
    }

    /// Of the tree: another tree has another one.
    pub(crate) fn stamp(&self) -> &str {
        &self.stamp
    }

    /// Why set-up could not install a peer, where it said so.
    pub(crate) fn absence(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.cache.join("absent").join(name)).ok()?;
        Some(text.trim().to_owned())
    }

    /// To be called when every peer is gone.
    pub(crate) fn close(self) -> Result<()> {
        let mounts = mounts_below(&[&self.run, &self.cache])?;
        if !mounts.is_empty() {
            return Err(Failure::new(format!("mounts left behind: {}", mounts.join(", "))));
        }
        remove_tree(&self.run)?;
        remove_cgroups()?;
        for path in &self.side_effects {
            let _ = fs::remove_dir(path);
        }
        Ok(())
    }
}

fn cache_dir() -> Result<PathBuf> {
    let root = match (std::env::var_os("COFFERDAM_CACHE"), std::env::var_os("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => Path::new(&home).join(".cache/cofferdam"),
        (None, None) => return Err(Failure::new("neither COFFERDAM_CACHE nor HOME is set")),
    };
    Ok(root.join("bench"))
}

/// In /run where that is allowed (a memory filesystem, and short enough for socket paths), else in the cache.
/// The path is the same every time, because Podman's database remembers it.
fn claim_run_dir(cache: &Path) -> Result<(PathBuf, File)> {
    for dir in [PathBuf::from("/run/cofferdam-bench"), cache.join("run")] {
        if fs::create_dir_all(&dir).is_ok()
            && fs::set_permissions(&dir, Permissions::from_mode(0o700)).is_ok()
        {
            let lock = lock(&dir)?;
            clear(&dir, cache)?;
            return Ok((dir, lock));
        }
    }
    Err(Failure::new("cannot make a folder in /run or in the cache"))
}

/// The folder is its own lock, so that nobody clears it while another benchmark is at work in it.
fn lock(dir: &Path) -> Result<File> {
    let file = File::open(dir).doing(format_args!("opening {}", dir.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Failure::new("another benchmark is running")),
        Err(TryLockError::Error(error)) => Err(error).doing(format_args!("locking {}", dir.display())),
    }
}

/// Away with what a killed benchmark left, unless it is mounted: then it is not ours to delete through.
fn clear(dir: &Path, cache: &Path) -> Result<()> {
    let mounts = mounts_below(&[dir, cache])?;
    if !mounts.is_empty() {
        return Err(Failure::new(format!("an earlier benchmark left mounts: {}", mounts.join(", "))));
    }
    for entry in fs::read_dir(dir).doing(format_args!("reading {}", dir.display()))?.flatten() {
        remove_tree(&entry.path())?;
    }
    Ok(())
}

fn remove_tree(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).doing(format_args!("removing {}", dir.display()))
        }
        _ => Ok(()),
    }
}

fn mounts_below(dirs: &[&Path]) -> Result<Vec<String>> {
    let table = fs::read_to_string("/proc/self/mounts").doing("reading /proc/self/mounts")?;
    let points = table.lines().filter_map(|line| line.split(' ').nth(1));
    let below = |point: &&str| dirs.iter().any(|dir| Path::new(point).starts_with(dir));
    Ok(points.filter(below).map(String::from).collect())
}

/// Under each v1 controller and at the top of v2: whichever of them holds the parent.
fn remove_cgroups() -> Result<()> {
    let top = Path::new("/sys/fs/cgroup");
    let Ok(entries) = fs::read_dir(top) else { return Ok(()) };
    let controllers = entries.flatten().map(|entry| entry.path());
    for parent in controllers.chain([top.to_owned()]).map(|dir| dir.join(CGROUP)) {
        if parent.is_dir() {
            remove_cgroup(&parent).doing(format_args!("removing cgroup {}", parent.display()))?;
        }
    }
    Ok(())
}

/// Files in a cgroup cannot be unlinked, so only folders are removed, the innermost first.
fn remove_cgroup(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_cgroup(&entry.path())?;
        }
    }
    fs::remove_dir(dir)
}
