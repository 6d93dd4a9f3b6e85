//! Times as they are shown: RFC 3339, in UTC, with milliseconds. Written so, their order is that of the text.

use crate::InvalidValue;

const DAY_MS: i64 = 86_400_000;

/// A time, given as milliseconds since 1970.
pub fn timestamp(ms: i64) -> String {
    let (days, rest) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = date(days);
    let (seconds, millis) = (rest / 1000, rest % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Reads a time back, as milliseconds since 1970. The fraction may be left out; the zone is always Z.
pub fn parse_timestamp(field: &str, text: &str) -> Result<i64, InvalidValue> {
    read(text).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        InvalidValue::new(field, shown, "write a time in UTC, such as 2026-01-31T23:59:59Z")
    })
}

fn read(text: &str) -> Option<i64> {
    let bytes = text.strip_suffix('Z')?.as_bytes();
    let (whole, fraction) = (bytes.get(..19)?, bytes.get(19..)?);
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|&(at, mark)| whole[at] != mark) {
        return None;
    }
    let number = |from: usize, to: usize| digits(&whole[from..to]);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let millis = match fraction {
        [] => 0,
        [b'.', rest @ ..] if (1..=3).contains(&rest.len()) => {
            digits(rest)? * 10_i64.pow(3 - rest.len() as u32)
        }
        _ => return None,
    };
    let days = days(year, month, day);
    // A day that its month does not have would come back as another.
    let is_date = date(days) == (year, month, day);
    let is_time = hour < 24 && minute < 60 && second < 60;
    (is_date && is_time).then_some(days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + millis)
}

fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

/// The date of a number of days after 1970-01-01, counted in years that begin in March, whose leap day is last.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// The reverse of [`date`].
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_times_are_shown_as_known() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(951_827_696_789), "2000-02-29T12:34:56.789Z");
        assert_eq!(timestamp(1_763_164_800_001), "2025-11-15T00:00:00.001Z");
        assert_eq!(timestamp(-1), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        assert_eq!(parse_timestamp("from", "2000-02-29T12:34:56Z"), Ok(951_827_696_000));
        assert_eq!(parse_timestamp("from", "2000-02-29T12:34:56.7Z"), Ok(951_827_696_700));
        for text in [
            "",
            "Z",
            "2000-02-29",
            "2001-02-29T00:00:00Z",
            "2000-13-01T00:00:00Z",
            "2000-00-01T00:00:00Z",
            "2000-01-32T00:00:00Z",
            "2000-01-01T24:00:00Z",
            "2000-01-01T00:60:00Z",
            "2000-01-01T00:00:60Z",
            "2000-01-01T00:00:00",
            "2000-01-01T00:00:00+00:00",
            "2000-01-01T00:00:00.Z",
            "2000-01-01 00:00:00Z",
            "2000-01-01T00:00:00.1234Z",
            "+200-01-01T00:00:00Z",
            "2000-01-01T00:00:0éZ",
            "0000-00-00T00:00:00Z",
        ] {
            assert!(parse_timestamp("from", text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn times_come_back_and_sort_as_text(a in 0..253_402_300_799_999_i64, b in 0..253_402_300_799_999_i64) {
            prop_assert_eq!(parse_timestamp("at", &timestamp(a)), Ok(a));
            prop_assert_eq!(timestamp(a).cmp(&timestamp(b)), a.cmp(&b));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC*") {
            let _ = parse_timestamp("at", &text);
        }
    }
}
