//! Durations as people write them on a command line.

use crate::InvalidValue;
use std::time::Duration;

/// The longest time that may be asked for: a week.
const MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Parses `500ms`, `30s`, `5m`, `2h` or plain seconds.
pub fn parse_duration(field: &str, text: &str) -> Result<Duration, InvalidValue> {
    let wrong = |fix: &str| InvalidValue::new(field, text, fix);
    let usage = "write a whole number with ms, s, m or h, such as 500ms, 30s or 5m";
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let count: u64 = digits.parse().map_err(|_| wrong(usage))?;
    let unit_ms = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong(usage)),
    };
    let total = Duration::from_millis(count.saturating_mul(unit_ms));
    if total.is_zero() {
        return Err(wrong("it must be more than 0"));
    }
    if total > MAX {
        return Err(wrong("it must be at most 168h"));
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_understood_and_the_rest_refused() {
        for (text, ms) in
            [("500ms", 500), ("30s", 30_000), ("30", 30_000), ("5m", 300_000), ("2h", 7_200_000)]
        {
            assert_eq!(parse_duration("timeout", text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "0", "-5s", "1.5s", "5 m", "5d", "169h", "99999999999999999999s"] {
            assert!(parse_duration("timeout", text).is_err(), "{text}");
        }
    }
}
