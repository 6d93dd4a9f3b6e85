//! Names of images, as they are typed.

use crate::Digest;
use cofferdam_core::InvalidValue;
use std::fmt;

/// The built-in image: this machine's own programs. No other can have the name.
pub const HOST: &str = "host";

const DEFAULT_TAG: &str = "latest";
const MAX_NAME: usize = 255;
const MAX_TAG: usize = 128;

/// Shorter ones are too easily of two images, or meant as a name.
const MIN_DIGITS: usize = 8;

/// A name in the store: `NAME:TAG`, where a tag that is not given is `latest`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageName {
    name: String,
    tag: String,
}

impl ImageName {
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidValue> {
        let wrong = |fix: &str| InvalidValue::new(field, text, fix);
        // A colon before the last slash belongs to a port.
        let (name, tag) = match text.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, tag),
            _ => (text, DEFAULT_TAG),
        };
        if name == HOST {
            return Err(wrong("host is the built-in image; choose another name"));
        }
        if name == "sha256" {
            return Err(wrong("that is how a digest begins; choose another name"));
        }
        let (mut parts, first) = (name.split('/'), name.split('/').next().unwrap_or_default());
        let has_registry = name.contains('/') && first.contains(['.', ':']);
        if has_registry {
            parts.next();
        }
        let is_registry = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
        let begins = first.starts_with(|c: char| c.is_ascii_alphanumeric());
        if name.len() > MAX_NAME
            || (has_registry && !(begins && first.chars().all(is_registry)))
            || !parts.all(is_name_part)
        {
            return Err(wrong("write it as NAME or NAME:TAG, in small letters, digits, and . _ - / between"));
        }
        let is_tag = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if tag.is_empty() || tag.len() > MAX_TAG || !tag.chars().all(is_tag) || tag.starts_with(['.', '-']) {
            return Err(wrong("a tag has letters, digits and . _ - and begins with a letter or digit"));
        }
        Ok(Self { name: name.to_owned(), tag: tag.to_owned() })
    }
}

fn is_name_part(part: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    !part.is_empty()
        && part.starts_with(is_plain)
        && part.ends_with(is_plain)
        && part.chars().all(|c| is_plain(c) || "._-".contains(c))
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.tag)
    }
}

/// What a request may name an image by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageRef {
    Name(ImageName),
    /// `NAME@sha256:…`: what the name means now does not matter, the digest does.
    Pinned(Digest),
    /// `sha256:` and the first digits of a digest.
    Digits(String),
}

impl ImageRef {
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidValue> {
        if let Some((name, digest)) = text.split_once('@') {
            ImageName::parse(field, name)?;
            return Ok(Self::Pinned(Digest::parse(field, digest)?));
        }
        let Some(digits) = text.strip_prefix("sha256:") else {
            return ImageName::parse(field, text).map(Self::Name);
        };
        let is_hex = digits.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
        if !is_hex || !(MIN_DIGITS..=64).contains(&digits.len()) {
            let fix = format!("write sha256: and {MIN_DIGITS} to 64 digits of 0-9 and a-f");
            return Err(InvalidValue::new(field, text, fix));
        }
        Ok(Self::Digits(digits.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_tag() {
        let name = |text| ImageName::parse("--name", text).unwrap().to_string();
        assert_eq!(name("python"), "python:latest");
        assert_eq!(name("team/app:1.2-rc_3"), "team/app:1.2-rc_3");
        assert_eq!(name("registry.local:5000/a/b"), "registry.local:5000/a/b:latest");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in [
            "",
            ":",
            "a:",
            ":a",
            "host",
            "host:1",
            "../x",
            "a/../b",
            "A",
            "a b",
            "a//b",
            "/a",
            "a/",
            "a:b:c",
            "-a",
            "a-",
            "a:-x",
            "a\n",
            "a@b",
            "sha256:00",
            "x\0",
        ] {
            assert!(ImageName::parse("--name", text).is_err(), "{text:?}");
        }
        assert!(ImageName::parse("--name", &"a".repeat(256)).is_err());
    }

    #[test]
    fn an_image_can_be_named_by_its_digest() {
        let digest = Digest::of(b"");
        let parse = |text: &str| ImageRef::parse("--image", text);
        assert_eq!(parse(&format!("app@{digest}")), Ok(ImageRef::Pinned(digest)));
        assert_eq!(parse("sha256:e3b0c442"), Ok(ImageRef::Digits("e3b0c442".into())));
        for wrong in
            ["sha256:e3b0", "sha256:E3B0C442", "app@sha256:e3b0c442", "@sha256:00", "sha256:../../.."]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
