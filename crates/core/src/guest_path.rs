//! Paths inside a sandbox.

use crate::InvalidValue;
use std::fmt;

/// An absolute path inside a sandbox: no `..`, no NUL, nothing below `/proc`, `/dev` or `/sys`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GuestPath(String);

/// The kernel's PATH_MAX, less its NUL.
const MAX_BYTES: usize = 4095;

/// The kernel's NAME_MAX.
const MAX_NAME_BYTES: usize = 255;

impl GuestPath {
    /// Accepts an absolute path and brings it to one spelling (no `//`, no `.`, no trailing slash).
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidValue> {
        let wrong = |fix: &str| InvalidValue::new(field, text, fix);
        if !text.starts_with('/') {
            return Err(wrong("it must be an absolute path inside the sandbox, such as /workspace/data"));
        }
        if text.len() > MAX_BYTES || text.contains('\0') {
            return Err(wrong("it must be at most 4095 bytes, without NUL"));
        }
        let mut clean = String::with_capacity(text.len());
        for part in text.split('/').filter(|part| !part.is_empty() && *part != ".") {
            if part == ".." {
                return Err(wrong("it must not contain .."));
            }
            if part.len() > MAX_NAME_BYTES {
                return Err(wrong("a name in it is longer than 255 bytes"));
            }
            clean.push('/');
            clean.push_str(part);
        }
        if clean.is_empty() {
            clean.push('/');
        }
        for special in ["/proc", "/dev", "/sys"] {
            if clean == special || clean.starts_with(&format!("{special}/")) {
                return Err(wrong("it must not lie in /proc, /dev or /sys"));
            }
        }
        Ok(Self(clean))
    }

    /// Like `parse`, with relative paths taken from `/workspace`.
    pub fn parse_in_workspace(field: &str, text: &str) -> Result<Self, InvalidValue> {
        if text.starts_with('/') {
            return Self::parse(field, text);
        }
        Self::parse(field, &format!("/workspace/{text}"))
            .map_err(|error| InvalidValue { value: text.to_owned(), ..error })
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path below `/`, as `openat2` wants it; `.` for the root itself.
    pub fn relative(&self) -> &str {
        match self.0.trim_start_matches('/') {
            "" => ".",
            rest => rest,
        }
    }

    pub fn join(&self, name: &str) -> Result<Self, InvalidValue> {
        Self::parse("path", &format!("{}/{name}", self.0))
    }
}

impl fmt::Display for GuestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_come_out_in_one_spelling() {
        for (text, clean) in
            [("/", "/"), ("//a/./b/", "/a/b"), ("/workspace", "/workspace"), ("/devel", "/devel")]
        {
            assert_eq!(GuestPath::parse("workdir", text).unwrap().as_str(), clean);
        }
        assert_eq!(GuestPath::parse_in_workspace("file", "a/b").unwrap().as_str(), "/workspace/a/b");
    }

    #[test]
    fn escapes_and_special_places_are_refused() {
        for text in
            ["", "a", "/a/../b", "/..", "/proc", "/proc/self/fd/7", "//proc", "/./dev/shm", "/sys/x", "/a\0b"]
        {
            assert!(GuestPath::parse("workdir", text).is_err(), "{text:?}");
        }
        assert!(GuestPath::parse_in_workspace("file", "../x").is_err());
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_stays_inside(text in "[/.a-z\\x00-\\x7f]{0,40}") {
            if let Ok(path) = GuestPath::parse("p", &text) {
                prop_assert!(path.as_str().starts_with('/'));
                prop_assert!(path.as_str().split('/').all(|part| part != ".."));
                prop_assert_eq!(GuestPath::parse("p", path.as_str()).unwrap(), path);
            }
        }
    }
}
