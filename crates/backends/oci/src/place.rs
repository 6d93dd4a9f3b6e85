//! Where a sandbox is on the host while it lives: a folder with its bundle, its root and its room for files.
//!
//! Layers are named to the kernel relative to the folder, by links in it, because their names show inside.

use cofferdam_guest::maker;
use cofferdam_linux::attached::detach;
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::thread;

/// A file in memory for every 16 KiB: with less, empty files would take more memory than full ones.
const BYTES_PER_INODE: u64 = 16 << 10;

/// A folder that runtimes may pass through as another user, and that nobody else may list.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o711).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        // Whatever the umask was.
        _ => fs::set_permissions(path, fs::Permissions::from_mode(0o711)),
    }
}

/// What lies below our own layer.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    /// The uppermost first.
    pub(crate) folders: Vec<PathBuf>,
    /// Whether deletions are written as layers of the image store have them.
    are_layers: bool,
}

impl Root {
    pub(crate) fn of_folder(folder: PathBuf) -> Self {
        Self { folders: vec![folder], are_layers: false }
    }

    pub(crate) fn of_layers(folders: Vec<PathBuf>) -> Self {
        Self { folders, are_layers: true }
    }
}

#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
}

/// What was done, before the kernel's own words.
fn on(doing: &str, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("{doing}: {error}"))
}

/// Does something in a folder: on a thread that has a working directory of its own.
fn inside(folder: &Path, act: impl FnOnce() -> io::Result<()> + Send) -> io::Result<()> {
    let work = || {
        unshare(CloneFlags::CLONE_FS)?;
        std::env::set_current_dir(folder)?;
        act()
    };
    let done = thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|_| Err(io::Error::other("what was done in the folder broke off")))
}

impl Place {
    /// Makes the folder and mounts what a sandbox is made of. `owner` is the host's id of its user.
    pub(crate) fn make(
        places: &Path,
        id: &str,
        root: &Root,
        layer: &Path,
        files_bytes: u64,
        owner: u32,
    ) -> io::Result<Self> {
        let place = Self { folder: places.join(id) };
        make_folder(&place.folder)?;
        fs::write(place.folder.join("owner"), maker::own())?;
        let made = place.mount(root, layer, files_bytes, owner);
        if made.is_err() {
            let _ = place.remove();
        }
        made.map(|()| place)
    }

    fn mount(&self, root: &Root, layer: &Path, bytes: u64, owner: u32) -> io::Result<()> {
        let folder = &self.folder;
        symlink(layer, folder.join("layer"))?;
        let mut layers = "layer".to_owned();
        for (i, below) in root.folders.iter().enumerate() {
            // Short: all names together have to fit into a page.
            let name = if i == 0 { "image".to_owned() } else { format!("i{i}") };
            symlink(below, folder.join(&name))?;
            layers = format!("{layers}:{name}");
        }
        for name in ["root", "files"] {
            make_folder(&folder.join(name))?;
        }
        let inodes = (bytes / BYTES_PER_INODE).max(64);
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let options = CString::new(format!("size={bytes},nr_inodes={inodes},mode=0711"))?;
        mount("tmpfs", folder.join("files"), "tmpfs", flags, options.as_c_str())
            .map_err(|errno| on("mounting memory for files", errno))?;
        for (name, mode) in [("workspace", 0o755), ("tmp", 0o1777), ("shm", 0o1777)] {
            let path = folder.join("files").join(name);
            fs::create_dir(&path)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
            chown(&path, Some(owner), Some(owner))?;
        }
        let attributes = if root.are_layers { ",userxattr" } else { "" };
        let options = CString::new(format!("lowerdir={layers}{attributes}"))?;
        inside(folder, || {
            mount("overlay", "root", "overlay", flags | MountFlags::RDONLY, options.as_c_str())
                .map_err(|errno| on("mounting the image", errno))
        })
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    pub(crate) fn files(&self, name: &str) -> PathBuf {
        self.folder.join("files").join(name)
    }

    /// How many bytes and files fit into its room for files.
    pub(crate) fn room(&self) -> Option<(u64, u64)> {
        let stat = rustix::fs::statvfs(self.folder.join("files")).ok()?;
        Some((stat.f_blocks * stat.f_frsize, stat.f_files))
    }

    /// How many still do.
    pub(crate) fn free(&self) -> Option<(u64, u64)> {
        let stat = rustix::fs::statvfs(self.folder.join("files")).ok()?;
        Some((stat.f_bavail * stat.f_frsize, stat.f_favail))
    }

    /// Takes it all away. What is not there is what was asked for.
    pub(crate) fn remove(&self) -> io::Result<()> {
        for name in ["root", "files"] {
            // Lazily: a runtime may be on its way out still.
            let _ = detach(&self.folder.join(name));
        }
        // Never through a mount that is still there.
        for name in ["root", "files"] {
            match fs::remove_dir(self.folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// The places whose makers are gone.
pub(crate) fn left_behind(places: &Path) -> Vec<(String, Place)> {
    let entries = fs::read_dir(places).into_iter().flatten().flatten();
    let gone = |folder: &Path| {
        let Ok(owner) = fs::read_to_string(folder.join("owner")) else { return false };
        // A place of another boot is left as well; this folder is the machine's own.
        maker::is_gone(&owner, true)
    };
    let places = entries.filter(|entry| gone(&entry.path()));
    places
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), Place { folder: entry.path() }))
        .collect()
}
