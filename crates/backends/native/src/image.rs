//! Images: what a sandbox's root filesystem is made of.
//!
//! The root is an overlay. Its upper layer `base`, made here, has the mount points and a made-up `/etc`; below it
//! lies the image: the layers of a stored one, a folder of the user's, or for `host` a layer that is made here as
//! well, with links such as `/bin` and the few files of the host's `/etc` that programs cannot do without. `/usr`
//! then is a part of its own, straight from the host.

mod host;
mod layers;
mod writable;

use crate::launcher::Launcher;
use cofferdam_backend::{BackendError, Image, Result};
use cofferdam_core::InvalidValue;
use cofferdam_linux::sys;
use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The images that the launcher knows.
#[derive(Debug)]
pub(crate) struct Images {
    runtime_folder: PathBuf,
    known: Mutex<HashMap<Image, u32>>,
}

impl Images {
    pub(crate) fn new(runtime_folder: PathBuf) -> Self {
        Self { runtime_folder, known: Mutex::default() }
    }

    /// The launcher's number for an image, which is handed to it at first use.
    pub(crate) fn open(&self, image: &Image, launcher: &Launcher) -> Result<u32> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.get(image) {
            return Ok(*number);
        }
        let layers = self.layers(image)?;
        let number = known.len() as u32;
        if sys::geteuid() == 0 {
            let detached: Result<Vec<_>> =
                layers.into_iter().map(|(name, path)| Ok((name, detached(&path)?))).collect();
            launcher.add_image(number, &detached?)?;
        } else {
            launcher.add_image_by_path(number, &layers)?;
        }
        known.insert(image.clone(), number);
        Ok(number)
    }

    /// Why a root of that image cannot be writable here, in words that follow "the backend cannot".
    pub(crate) fn writable_obstacle(&self, image: &Image) -> Option<&'static str> {
        if sys::geteuid() != 0 {
            return Some("make the root writable without root; run it as root, or leave --writable-root out");
        }
        let can = match image {
            Image::Folder(folder) => {
                [folder, &self.runtime_folder].into_iter().all(|folder| writable::can_change_owners(folder))
            }
            Image::Layers(layers) => {
                layers.iter().chain([&self.runtime_folder]).all(|folder| writable::can_change_owners(folder))
            }
            Image::Host => host_can_change_owners(&self.runtime_folder),
            // Refused by its name later.
            Image::Named(_) => true,
        };
        (!can).then_some(
            "make the root writable on this filesystem, which has no id-mapped mounts; use a --rootfs on ext4, \
             xfs or btrfs",
        )
    }

    /// A layer cannot lie within another.
    fn check_apart(&self, folder: &Path) -> Result<()> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if !real(&self.runtime_folder).starts_with(real(folder)) {
            return Ok(());
        }
        let fix = "it holds Cofferdam's own files; leave --rootfs out to use this machine's programs";
        Err(InvalidValue::new("rootfs", folder.display().to_string(), fix).into())
    }

    /// The folders that an image is made of, by the launcher's names for them.
    fn layers(&self, image: &Image) -> Result<Vec<(String, PathBuf)>> {
        let making = |e| BackendError::failed("making the base layer", e);
        let base = layers::base(&self.runtime_folder).map_err(making)?;
        let mut layers = vec![("base".to_owned(), base)];
        match image {
            Image::Folder(folder) => {
                check_folder(folder)?;
                self.check_apart(folder)?;
                let folder = std::path::absolute(folder)
                    .map_err(|e| BackendError::failed("resolving the rootfs", e))?;
                layers.push(("image".to_owned(), folder));
            }
            Image::Layers(folders) => {
                if folders.is_empty() {
                    return Err(InvalidValue::new("image", "", "it has no layers").into());
                }
                // Whoever unpacked them has seen to it that no mount is led astray.
                for (i, folder) in folders.iter().enumerate() {
                    let name = if i == 0 { "image".to_owned() } else { format!("image-{i}") };
                    layers.push((name, folder.clone()));
                }
            }
            Image::Named(name) => {
                let fix = "it is the name of a daemon's image; take it into the image store first";
                return Err(InvalidValue::new("image", name.as_str(), fix).into());
            }
            Image::Host => {
                let host = host::layer(&self.runtime_folder).map_err(making)?;
                layers.push(("image".to_owned(), host));
                for part in host::parts() {
                    layers.push((part.to_owned(), Path::new("/").join(part)));
                }
            }
        }
        Ok(layers)
    }
}

/// Whether the layers of the image `host` can be shown with other owners.
pub(crate) fn host_can_change_owners(runtime_folder: &Path) -> bool {
    let parts = host::parts().map(|part| Path::new("/").join(part));
    parts.chain([runtime_folder.to_owned()]).all(|folder| writable::can_change_owners(&folder))
}

fn detached(path: &Path) -> Result<OwnedFd> {
    let failed = |e: io::Error| BackendError::failed(format!("opening the layer {}", path.display()), e);
    let text = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|e| failed(e.into()))?;
    sys::clone_mount(sys::CWD, &text).map_err(|e| failed(e.into()))
}

/// Refuses what cannot be a root filesystem, or would lead mounts astray.
fn check_folder(folder: &Path) -> Result<()> {
    let wrong =
        |fix: String| BackendError::from(InvalidValue::new("rootfs", folder.display().to_string(), fix));
    let metadata = std::fs::metadata(folder).map_err(|e| wrong(format!("it cannot be opened: {e}")))?;
    if !metadata.is_dir() {
        return Err(wrong("it must be a folder that holds a root filesystem".to_owned()));
    }
    for name in ["dev", "dev/null", "dev/console", "proc", "tmp", "run", "etc", "workspace"] {
        let is_link = std::fs::symlink_metadata(folder.join(name)).is_ok_and(|m| m.file_type().is_symlink());
        if is_link {
            return Err(wrong(format!(
                "/{name} in it is a symbolic link; it must be a folder, a file or absent"
            )));
        }
    }
    Ok(())
}
