//! Folders of the machine itself, and those of them that an operator lets into sandboxes.

use crate::InvalidValue;
use std::fmt;

/// An absolute path of the host in one spelling: no `..`, no `.`, no `//`, no NUL. Whether it leads anywhere, and
/// through which links, is not known here.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPath(String);

/// The kernel's PATH_MAX, less its NUL.
const MAX_BYTES: usize = 4095;

impl HostPath {
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidValue> {
        let wrong = |fix: &str| InvalidValue::new(field, text, fix);
        if !text.starts_with('/') {
            return Err(wrong("it must be an absolute path of the server's machine, such as /srv/data"));
        }
        if text.len() > MAX_BYTES || text.contains('\0') {
            return Err(wrong("it must be at most 4095 bytes, without NUL"));
        }
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") {
            return Err(wrong("it must not contain .."));
        }
        Ok(Self(format!("/{}", parts.join("/"))))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path from `root` to this one, `.` for the root itself; none where it is elsewhere.
    pub fn below(&self, root: &Self) -> Option<&str> {
        match self.0.strip_prefix(root.0.trim_end_matches('/'))? {
            "" | "/" => Some("."),
            rest => rest.strip_prefix('/'),
        }
    }
}

impl fmt::Display for HostPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A folder of the host that jobs may mount, and folders below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountRoot {
    pub path: HostPath,
    /// Whether nothing in it may be written to.
    pub read_only: bool,
}

impl MountRoot {
    /// The innermost of some roots that a path lies in.
    pub fn of<'r>(roots: impl IntoIterator<Item = &'r Self>, path: &HostPath) -> Option<&'r Self> {
        let around = roots.into_iter().filter(|root| path.below(&root.path).is_some());
        around.max_by_key(|root| root.path.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> HostPath {
        HostPath::parse("path", text).unwrap()
    }

    #[test]
    fn one_spelling_and_no_way_up() {
        assert_eq!(path("/srv//data/./a/").as_str(), "/srv/data/a");
        assert_eq!(path("/").as_str(), "/");
        for wrong in ["", "srv", "./srv", "/srv/../etc", "/..", "/a\0b"] {
            assert!(HostPath::parse("path", wrong).is_err(), "{wrong:?}");
        }
        assert!(HostPath::parse("path", &format!("/{}", "a".repeat(4095))).is_err());
    }

    #[test]
    fn a_neighbour_of_the_same_beginning_is_not_below() {
        assert_eq!(path("/srv/a/b").below(&path("/srv/a")), Some("b"));
        assert_eq!(path("/srv/a").below(&path("/srv/a")), Some("."));
        assert_eq!(path("/srv/ab").below(&path("/srv/a")), None);
        assert_eq!(path("/srv").below(&path("/srv/a")), None);
        assert_eq!(path("/etc").below(&path("/")), Some("etc"));
    }

    #[test]
    fn the_innermost_root_decides() {
        let root = |text, read_only| MountRoot { path: path(text), read_only };
        let roots = [root("/srv", true), root("/srv/out", false)];
        assert!(!MountRoot::of(&roots, &path("/srv/out/x")).unwrap().read_only);
        assert!(MountRoot::of(&roots, &path("/srv/outer")).unwrap().read_only);
        assert_eq!(MountRoot::of(&roots, &path("/etc")), None);
    }
}
