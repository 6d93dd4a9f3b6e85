//! Paths of an archive: what is taken, and what is refused before the filesystem sees it.

use crate::error::shown;
use crate::limits::{MAX_DEPTH, MAX_NAME_BYTES, MAX_PATH_BYTES};
use crate::{ImageError, Result};

/// The names along a path below the root, without empty ones and `.`; none for the root itself.
pub fn components(path: &[u8]) -> Result<Vec<&[u8]>> {
    let refused = |why: &str| Err(ImageError::refused(format!("the entry {}", shown(path)), why));
    if path.len() > MAX_PATH_BYTES {
        return refused("its path is longer than 4095 bytes");
    }
    if path.starts_with(b"/") {
        return refused("its path is absolute; make the archive without absolute names (tar without -P)");
    }
    let mut names = Vec::new();
    for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".") {
        if name == b".." {
            return refused("its path has .. and could lead out");
        }
        if name.contains(&0) {
            return refused("its path has a NUL");
        }
        if name.len() > MAX_NAME_BYTES {
            return refused("a name in its path is longer than 255 bytes");
        }
        names.push(name);
    }
    if names.len() > MAX_DEPTH {
        return refused("its path is deeper than 128 folders");
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_along_a_path() {
        assert_eq!(components(b"./usr//bin/./sh").unwrap(), [&b"usr"[..], b"bin", b"sh"]);
        assert!(components(b"./").unwrap().is_empty());
        assert_eq!(components(b"...").unwrap(), [b"..."]);
    }

    #[test]
    fn what_leads_out_is_refused() {
        for path in ["..", "../x", "a/../../x", "a/..", "/etc/passwd", "//x", "a\0b", "a/b\0/c"] {
            assert!(components(path.as_bytes()).is_err(), "{path:?}");
        }
        assert!(components(&[b'a'; 256]).is_err());
        assert!(components(&b"a/".repeat(129)).is_err());
        assert!(components(&b"a".repeat(5000)).is_err());
    }

    proptest! {
        #[test]
        fn what_is_taken_stays_below(path in proptest::collection::vec(any::<u8>(), 0..64)) {
            for name in components(&path).unwrap_or_default() {
                prop_assert!(!name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/') && !name.contains(&0));
            }
        }
    }
}
