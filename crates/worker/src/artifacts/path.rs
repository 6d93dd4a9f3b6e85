//! Where an artifact lies below its folder, made only of names that are safe to use on the host.

use std::fmt;
use std::str;

/// The kernel's NAME_MAX.
const NAME_MAX_BYTES: usize = 255;

/// A path below the artifacts folder: one name at least, none of them `.`, `..` or with a `/` in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArtifactPath {
    names: Vec<String>,
}

impl ArtifactPath {
    /// The path of `name` in `folder`, or in the artifacts folder itself. The error says why not.
    pub fn below(folder: Option<&Self>, name: &[u8]) -> Result<Self, &'static str> {
        let name = str::from_utf8(name).map_err(|_| "its name is not UTF-8")?;
        if name.is_empty() || name == "." || name == ".." || name.contains('/') {
            return Err("its name is not that of a file");
        }
        if name.len() > NAME_MAX_BYTES {
            return Err("its name is too long");
        }
        if name.chars().any(char::is_control) {
            return Err("its name has control characters in it");
        }
        let mut names = folder.map(|folder| folder.names.clone()).unwrap_or_default();
        names.push(name.to_owned());
        Ok(Self { names })
    }

    /// The folders on the way, and the file's own name.
    pub fn split(&self) -> (&[String], &str) {
        match self.names.split_last() {
            Some((name, folders)) => (folders, name),
            None => unreachable!("a path has one name at least"),
        }
    }

    pub fn depth(&self) -> usize {
        self.names.len()
    }
}

impl fmt::Display for ArtifactPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_of_names_only() {
        let folder = ArtifactPath::below(None, b"a b").unwrap();
        let file = ArtifactPath::below(Some(&folder), "-é.txt".as_bytes()).unwrap();
        assert_eq!((file.to_string().as_str(), file.depth()), ("a b/-é.txt", 2));
        assert_eq!(file.split(), (&["a b".to_owned()][..], "-é.txt"));
    }

    #[test]
    fn names_that_lead_elsewhere_or_deceive_are_refused() {
        let long = [b'x'; 256];
        let bad: [&[u8]; 9] = [b"", b".", b"..", b"a/b", b"/", b"a\0b", b"a\nb", b"\x1b[2J", &[0xff, 0xfe]];
        assert!(bad.iter().chain([&&long[..]]).all(|name| ArtifactPath::below(None, name).is_err()));
    }
}
