//! Sizes in bytes, as people write them. Every unit is a power of two, whatever its spelling.

use crate::InvalidValue;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteSize(pub u64);

const UNITS: [(&str, u32); 17] = [
    ("", 0),
    ("b", 0),
    ("k", 10),
    ("kb", 10),
    ("kib", 10),
    ("m", 20),
    ("mb", 20),
    ("mib", 20),
    ("g", 30),
    ("gb", 30),
    ("gib", 30),
    ("t", 40),
    ("tb", 40),
    ("tib", 40),
    ("p", 50),
    ("pb", 50),
    ("pib", 50),
];

impl ByteSize {
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }

    /// Parses `512m`, `256mb`, `1g`, `512MiB` or plain bytes; zero is refused, as no limit means it.
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidValue> {
        let wrong = |fix: &str| InvalidValue::new(field, text, fix);
        let usage = "write whole bytes or a unit, such as 512m, 2g, 1t or 512MiB";
        let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(digits_end);
        let count: u64 = digits.parse().map_err(|_| wrong(usage))?;
        let unit = unit.to_ascii_lowercase();
        let (_, shift) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(|| wrong(usage))?;
        if count == 0 {
            return Err(wrong("it must be more than 0"));
        }
        let bytes = count.checked_mul(1u64 << shift).filter(|b| *b <= i64::MAX as u64);
        bytes.map(Self).ok_or_else(|| wrong("it is larger than any machine"))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{} {unit}", self.0 >> shift);
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_documented_spelling_is_a_power_of_two() {
        for (text, bytes) in [
            ("512m", 512 << 20),
            ("256mb", 256 << 20),
            ("1g", 1 << 30),
            ("2gb", 2 << 30),
            ("1t", 1 << 40),
            ("2tb", 2 << 40),
            ("512MiB", 512 << 20),
            ("65536", 65536),
            ("64K", 64 << 10),
        ] {
            assert_eq!(ByteSize::parse("memory", text), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn anything_else_names_the_field_and_the_value() {
        for text in ["", "m", "-1", "0", "0g", "1.5g", "1 g", "1x", "99999999999999999999", "16384p"] {
            let error = ByteSize::parse("memory", text).expect_err(text).to_string();
            assert!(error.starts_with("memory: ") && error.contains(&format!("{text:?}")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in ".*") {
            let _ = ByteSize::parse("memory", &text);
        }

        #[test]
        fn plain_bytes_come_back_unchanged(n in 1u64..=i64::MAX as u64) {
            prop_assert_eq!(ByteSize::parse("disk", &n.to_string()), Ok(ByteSize(n)));
        }
    }
}
