//! Workspaces on disk: an image file for each sandbox, copied from a template of its size.
//!
//! The image has no name from the start, or for an instant where the filesystem cannot do that, so however a
//! sandbox or this process ends, its space comes back with the last mount of it. What is mounted goes to the
//! launcher as a descriptor; no path of it is ever told to a sandbox.

mod template;

use crate::doctor::find_anywhere;
use cofferdam_backend::{BackendError, Result};
use cofferdam_core::{ByteSize, Disk, InvalidValue};
use cofferdam_linux::{disk, sys};
use std::ffi::CString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of workspace for each file that it may hold: enough for source trees, too few to exhaust the kernel.
const BYTES_PER_INODE: u64 = 16 << 10;

/// Even the smallest workspace holds the handful of folders that it starts with, and some files.
const MIN_INODES: u64 = 256;

/// Names of images that could not be made without one.
const IMAGE_PREFIX: &str = ".cofferdam-image-";

/// Makes disks, and remembers templates.
#[derive(Debug, Clone)]
pub(crate) struct Disks {
    templates: PathBuf,
}

/// Why this machine has no workspaces on disk, in words that follow "the backend cannot".
pub(crate) fn obstacle() -> Option<&'static str> {
    if sys::geteuid() != 0 {
        return Some(
            "keep a workspace on disk without root; run it as root, or ask for at most half of --memory, \
             and 1g, with --disk",
        );
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some(
            "keep a workspace on disk without /dev/loop-control; load the kernel's module with `modprobe \
             loop`, or give the container its devices",
        );
    }
    if find_anywhere("mkfs.ext4").is_none() {
        return Some("keep a workspace on disk without mkfs.ext4; install e2fsprogs");
    }
    None
}

fn inodes(bytes: u64) -> u64 {
    (bytes / BYTES_PER_INODE).max(MIN_INODES)
}

/// The most files that a sandbox's filesystem may hold.
pub(crate) fn max_inodes(disk: Disk) -> u64 {
    match disk {
        Disk::Memory { bytes } => inodes(bytes),
        Disk::OnDisk { bytes } => inodes(bytes) + template::surplus_inodes(bytes),
    }
}

/// The image of a disk.
#[derive(Debug)]
pub(crate) struct DiskImage {
    file: File,
    /// The first of the ids that its files belong to, where that is not its sandbox's own.
    pub(crate) first_id: Option<u32>,
}

impl DiskImage {
    /// Says whose its files are, unless that was said before.
    pub(crate) fn belongs_to(self, first_id: u32) -> Self {
        Self { first_id: self.first_id.or(Some(first_id)), ..self }
    }

    /// Another image that has the same, and shares it with this one until either is written to. Only some filesystems
    /// can do that.
    pub(crate) fn copy(&self, root: &Path) -> io::Result<Self> {
        let file = image(root)?;
        rustix::fs::ioctl_ficlone(&file, &self.file)?;
        Ok(Self { file, first_id: self.first_id })
    }
}

/// A disk that was just made.
#[derive(Debug)]
pub(crate) struct MadeDisk {
    /// Attached nowhere.
    pub(crate) mount: OwnedFd,
    pub(crate) image: DiskImage,
}

impl Disks {
    pub(crate) fn new(runtime_folder: &Path) -> Self {
        Self { templates: runtime_folder.join("templates") }
    }

    /// A new, empty filesystem of that size, mounted and not attached anywhere. Takes milliseconds.
    pub(crate) fn make(&self, bytes: u64, root: &Path) -> Result<MadeDisk> {
        if let Some(what) = obstacle() {
            return Err(BackendError::Unsupported { backend: "native", what });
        }
        prepare(root)?;
        check_space(root, bytes)?;
        let failed = |step: &'static str| move |e: io::Error| BackendError::failed(step, e);
        let template = template::open(&self.templates, bytes, inodes(bytes));
        let template = template.map_err(failed("making an ext4 filesystem"))?;
        let image = image(root).map_err(|e| wrong_root(root, format!("no file can be made in it: {e}")))?;
        let copied = disk::copy_sparse(template.as_fd(), image.as_fd(), template::whole_blocks(bytes));
        copied.map_err(|e| failed("writing the image of a disk")(e.into()))?;
        mount(DiskImage { file: image, first_id: None })
    }

    /// One that begins with what another has. Takes milliseconds, however much that is.
    pub(crate) fn make_from(&self, other: &DiskImage, bytes: u64, root: &Path) -> Result<MadeDisk> {
        check_space(root, bytes)?;
        let failed = |e: io::Error| BackendError::failed("sharing the image of a disk", e);
        if other.file.metadata().map_err(failed)?.len() != template::whole_blocks(bytes) {
            let what = "begin with the files of a disk of another size";
            return Err(BackendError::Unsupported { backend: "native", what });
        }
        mount(other.copy(root).map_err(failed)?)
    }
}

fn mount(image: DiskImage) -> Result<MadeDisk> {
    match disk::mount_image(image.file.as_fd()) {
        Ok(mount) => Ok(MadeDisk { mount, image }),
        Err((step, errno)) => Err(BackendError::failed(step, errno.into())),
    }
}

fn wrong_root(root: &Path, fix: impl Into<String>) -> BackendError {
    InvalidValue::new("workspace-root", root.display().to_string(), fix).into()
}

/// Makes the folder for images, unless it is there.
fn prepare(root: &Path) -> Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(root) {
        Ok(()) => Ok(()),
        Err(_) if root.exists() => Err(wrong_root(root, "it must be a folder")),
        Err(error) => Err(wrong_root(root, format!("it cannot be made: {error}"))),
    }
}

/// Filesystems that are in memory: a disk there would be in the host's, where no limit of the sandbox's counts it.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58F6];

/// Refuses a disk that could not even hold what it promises while nothing else is written. Images are sparse, so
/// several may promise the same space.
fn check_space(root: &Path, bytes: u64) -> Result<()> {
    let stat = statfs(root).map_err(|e| wrong_root(root, format!("it cannot be looked at: {e}")))?;
    if IN_MEMORY.contains(&stat.kind) {
        return Err(wrong_root(root, "it is in memory; name a folder on a disk"));
    }
    let total = stat.blocks.saturating_mul(stat.block_bytes as u64);
    if bytes > total {
        let fix = format!("it must be at most {total}, which is all that {} holds", root.display());
        return Err(InvalidValue::new("disk", bytes.to_string(), fix).into());
    }
    let free = stat.blocks_available.saturating_mul(stat.block_bytes as u64);
    if bytes <= free {
        return Ok(());
    }
    let (asked, free) = (ByteSize(bytes), ByteSize(free >> 20 << 20));
    Err(BackendError::Refused {
        reason: format!("a disk of {asked} does not fit: {} has {free} free", root.display()),
        fix: "ask for less with --disk, free some space, or name another folder with --workspace-root"
            .to_owned(),
    })
}

fn statfs(folder: &Path) -> io::Result<sys::StatFs> {
    let path = CString::new(folder.as_os_str().as_encoded_bytes())?;
    let fd = sys::open(sys::CWD, &path, libc::O_PATH | libc::O_DIRECTORY, 0)?;
    Ok(sys::fstatfs(fd.as_raw_fd())?)
}

/// A file that is gone with its last descriptor.
fn image(root: &Path) -> io::Result<File> {
    let nameless =
        OpenOptions::new().read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE).open(root);
    match nameless {
        // Such as overlayfs, before Linux 6.3.
        Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)) => {
            named_image(root)
        }
        other => other,
    }
}

/// The same by way of a name, which a crash may leave; the next one removes it.
fn named_image(root: &Path) -> io::Result<File> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    sweep(root)?;
    let unique = MADE.fetch_add(1, Ordering::Relaxed);
    let path = root.join(format!("{IMAGE_PREFIX}{}-{unique}", std::process::id()));
    let image = OpenOptions::new().read(true).write(true).mode(0o600).create_new(true).open(&path)?;
    match fs::remove_file(&path) {
        // Another process has swept it up, which is as good.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(image),
        other => other.map(|()| image),
    }
}

/// Removes the names that a crash left. One that is in use at this moment would be gone in the next.
fn sweep(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)?.flatten() {
        let is_image = entry.file_name().as_encoded_bytes().starts_with(IMAGE_PREFIX.as_bytes());
        if is_image && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("cofferdam-disk-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        path
    }

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn images_have_no_name() {
        let root = folder("nameless");
        for make in [image, named_image] {
            let image = make(&root).unwrap();
            assert_eq!((image.metadata().unwrap().nlink(), entries(&root)), (0, 0));
            assert_eq!(image.metadata().unwrap().mode() & 0o777, 0o600);
        }
        fs::remove_dir(&root).unwrap();
    }

    #[test]
    fn what_a_crash_left_is_swept_up_and_nothing_else() {
        let root = folder("sweep");
        for name in [".cofferdam-image-1-0", ".cofferdam-image-99-7", "others", ".cofferdam"] {
            fs::write(root.join(name), "x").unwrap();
        }
        fs::create_dir(root.join(".cofferdam-image-folder")).unwrap();
        named_image(&root).unwrap();
        let mut left: Vec<_> = fs::read_dir(&root).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".cofferdam", ".cofferdam-image-folder", "others"]);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_root_that_holds_no_files_is_named() {
        let root = folder("wrong");
        let file = root.join("file");
        fs::write(&file, "x").unwrap();
        let error = prepare(&file).unwrap_err().to_string();
        assert!(error.starts_with("workspace-root: ") && error.ends_with("it must be a folder"), "{error}");
        let error = prepare(&file.join("below")).unwrap_err().to_string();
        assert!(error.contains("it cannot be made"), "{error}");
        prepare(&root.join("a/b")).unwrap();
        assert_eq!(fs::metadata(root.join("a/b")).unwrap().mode() & 0o777, 0o700);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_disk_larger_than_what_is_free_is_refused() {
        let error = check_space(Path::new("/"), u64::MAX).unwrap_err();
        assert!(matches!(&error, BackendError::Invalid(InvalidValue { field, .. }) if field == "disk"));
        let stat = statfs(Path::new("/")).unwrap();
        let error = check_space(Path::new("/"), stat.blocks * stat.block_bytes as u64).unwrap_err();
        assert!(matches!(&error, BackendError::Refused { fix, .. } if fix.contains("--workspace-root")));
        check_space(Path::new("/"), 1).unwrap();
    }

    #[test]
    fn a_disk_in_memory_is_refused() {
        let error = check_space(Path::new("/dev/shm"), 1).unwrap_err().to_string();
        assert!(error.starts_with("workspace-root: ") && error.contains("in memory"), "{error}");
    }
}
