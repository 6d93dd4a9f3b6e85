//! The folder for locks and made layers. What lies in it ends up in every sandbox, so it must be this user's own.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Makes the folder, or makes sure that nobody else could have put something into it.
pub(crate) fn prepare(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o755).create(folder) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let metadata = fs::symlink_metadata(folder)?;
    let is_own = metadata.uid() == cofferdam_linux::sys::geteuid();
    if metadata.is_dir() && is_own && metadata.mode() & 0o022 == 0 {
        return Ok(());
    }
    let problem = format!("{} is not a folder that only this user can write to; remove it", folder.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let folder = std::env::temp_dir().join(format!("cofferdam-runtime-{}", std::process::id()));
        prepare(&folder).unwrap();
        prepare(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(prepare(&folder).is_err());
        fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink("/", &folder).unwrap();
        assert!(prepare(&folder).is_err());
        fs::remove_file(&folder).unwrap();
    }
}
