//! Looking for programs, and saying how to get one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where programs are looked for inside a sandbox.
pub(super) const INSIDE: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// An ordinary user's PATH often lacks the last ones.
const ANYWHERE: [&str; 6] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The first file of that name that may be executed.
pub(super) fn find(folders: &[&str], name: &str) -> Option<PathBuf> {
    folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| is_program(path))
}

pub(crate) fn find_anywhere(name: &str) -> Option<PathBuf> {
    find(&ANYWHERE, name)
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// The line that installs a package of Debian's; elsewhere its name has to do.
pub(super) fn install(package: &str) -> String {
    install_on(&fs::read_to_string("/etc/os-release").unwrap_or_default(), package)
}

fn install_on(os_release: &str, package: &str) -> String {
    let is_debian = os_release.lines().filter_map(|line| line.split_once('=')).any(|(key, value)| {
        matches!(key, "ID" | "ID_LIKE") && value.trim_matches('"').split(' ').any(|id| id == "debian")
    });
    if is_debian {
        format!("sudo apt-get install {package}")
    } else {
        format!("install what Debian has in its package {package}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_the_distribution() {
        assert_eq!(install_on("ID=debian\n", "ruby"), "sudo apt-get install ruby");
        assert_eq!(
            install_on("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "ruby"),
            "sudo apt-get install ruby"
        );
        assert!(install_on("ID=fedora\n", "ruby").contains("package ruby"));
        assert!(install_on("", "ruby").contains("package ruby"));
    }

    #[test]
    fn folders_and_plain_files_are_no_programs() {
        assert!(find(&["/etc", "/"], "passwd").is_none());
        assert!(find(&["/"], "usr").is_none());
        assert!(find_anywhere("sh").is_some());
    }
}
