//! A share of processors, in thousandths, so that no float reaches a limit file.

use crate::InvalidValue;
use serde::{Serialize, Serializer};
use std::fmt;

/// How many processors' worth of time per second may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cpus {
    millis: u32,
}

/// More processors than any machine that this runs on, and small enough for every kernel's arithmetic.
const MAX_MILLIS: u32 = 4096 * 1000;

/// The kernel refuses quotas below one millisecond in a period of 100 ms.
const MIN_MILLIS: u32 = 10;

impl Cpus {
    pub const ONE: Self = Self { millis: 1000 };

    pub const fn whole(count: u16) -> Self {
        Self { millis: count as u32 * 1000 }
    }

    pub fn millis(self) -> u32 {
        self.millis
    }

    /// Parses `1`, `0.5` or `2.25`: at least 0.01, at most three decimals.
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidValue> {
        let wrong = || {
            InvalidValue::new(field, text, "write a number of CPUs from 0.01 to 4096, such as 1, 0.5 or 2.25")
        };
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(whole) || !is_digits(part) || part.len() > 3 {
            return Err(wrong());
        }
        let whole: u32 = whole.parse().map_err(|_| wrong())?;
        let thousandths: u32 = format!("{part:0<3}").parse().map_err(|_| wrong())?;
        let millis = whole.checked_mul(1000).and_then(|m| m.checked_add(thousandths)).ok_or_else(wrong)?;
        if !(MIN_MILLIS..=MAX_MILLIS).contains(&millis) {
            return Err(wrong());
        }
        Ok(Self { millis })
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.millis) / 1000.0)
    }
}

impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.millis) / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_and_fractional_cpus_parse_exactly() {
        for (text, millis) in [("1", 1000), ("0.5", 500), ("2.25", 2250), ("0.01", 10), ("4096", 4_096_000)] {
            assert_eq!(Cpus::parse("cpus", text).map(Cpus::millis), Ok(millis), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for text in ["", "0", "-1", "0.001", "1.2345", ".5", "1.", "1e3", "NaN", "5000", "99999999999"] {
            let error = Cpus::parse("cpus", text).expect_err(text).to_string();
            assert!(error.starts_with("cpus: "), "{error}");
        }
    }
}
