//! For how long.

use cofferdam_core::InvalidValue;
use std::fmt;
use std::time::Duration;

/// For how long something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    For(Duration),
    /// It is never removed.
    Forever,
}

const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];

impl Keep {
    /// `30d`, `12h`, `45m`, `90s`, or `never` for what is never removed. 0 is refused: some would mean the one by it,
    /// and some the other.
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidValue> {
        if text == "never" {
            return Ok(Self::Forever);
        }
        let fix = "write a time such as 30d, 12h or 45m, or never for what is never removed";
        let refused = || InvalidValue::new(field, text, fix);
        let split = UNITS.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
        let (number, seconds) = split.ok_or_else(refused)?;
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(refused());
        }
        let total = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*seconds));
        match total {
            // So far back no clock goes; and a sum with now must not overflow.
            Some(total) if total > 0 && total <= 1000 * 366 * 86_400 => {
                Ok(Self::For(Duration::from_secs(total)))
            }
            _ => Err(refused()),
        }
    }

    /// What happened before this time may go.
    pub(crate) fn before(self, now_ms: i64) -> Option<i64> {
        match self {
            Self::Forever => None,
            Self::For(time) => {
                Some(now_ms.saturating_sub(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
            }
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::For(time) = self else { return f.write_str("never") };
        let seconds = time.as_secs();
        let unit = UNITS.iter().find(|(_, unit)| seconds.is_multiple_of(*unit));
        let (name, unit) = unit.unwrap_or(&("s", 1));
        write!(f, "{}{name}", seconds / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_shown() {
        for text in ["30d", "12h", "45m", "90s", "never", "1d"] {
            assert_eq!(Keep::parse("jobs", text).unwrap().to_string(), text);
        }
        assert_eq!(Keep::parse("jobs", "86400s").unwrap().to_string(), "1d");
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        for text in
            ["0", "0d", "", "d", "-1d", "+1d", "1.5d", "30", "99999999999999999999d", "366001d", "Never"]
        {
            let error = Keep::parse("jobs", text).unwrap_err();
            assert_eq!((error.field.as_str(), error.value.as_str()), ("jobs", text));
            assert!(error.fix.contains("never"));
        }
    }

    #[test]
    fn nothing_is_before_never() {
        assert_eq!(Keep::Forever.before(5), None);
        assert_eq!(Keep::For(Duration::from_secs(2)).before(5_000), Some(3_000));
    }
}
