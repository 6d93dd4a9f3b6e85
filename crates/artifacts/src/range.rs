//! Which part of an artifact a `Range` header asks for (RFC 9110, section 14).

/// A part, by its first and its last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub first: u64,
    pub last: u64,
}

/// What is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// No range, one that is not understood, or several: a server may send everything then.
    Whole,
    Part(Part),
    /// It lies behind the end.
    None,
}

/// Reads a `Range` header for something of `size` bytes.
pub fn part_of(header: Option<&str>, size: u64) -> Wanted {
    let Some((unit, spec)) = header.and_then(|text| text.trim().split_once('=')) else {
        return Wanted::Whole;
    };
    if !unit.trim_end().eq_ignore_ascii_case("bytes") || spec.contains(',') {
        return Wanted::Whole;
    }
    let Some((first, last)) = spec.trim().split_once('-') else { return Wanted::Whole };
    let part = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => (first, last.min(size.saturating_sub(1))),
        (Some(first), None) if last.is_empty() => (first, size.saturating_sub(1)),
        (None, Some(0)) if first.is_empty() => return Wanted::None,
        (None, Some(suffix)) if first.is_empty() => (size.saturating_sub(suffix), size.saturating_sub(1)),
        _ => return Wanted::Whole,
    };
    if part.0 >= size { Wanted::None } else { Wanted::Part(Part { first: part.0, last: part.1 }) }
}

/// Digits only; more than there are numbers for is the largest.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        let part = |first, last| Wanted::Part(Part { first, last });
        for (header, expected) in [
            ("bytes=0-0", part(0, 0)),
            ("bytes=0-99", part(0, 9)),
            ("Bytes=3-", part(3, 9)),
            ("bytes=-3", part(7, 9)),
            ("bytes=-99", part(0, 9)),
            ("bytes=9-99999999999999999999999", part(9, 9)),
            ("bytes=10-", Wanted::None),
            ("bytes=10-11", Wanted::None),
            ("bytes=-0", Wanted::None),
            ("bytes=5-4", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("bytes=1-x", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
            ("bytes", Wanted::Whole),
            ("", Wanted::Whole),
        ] {
            assert_eq!(part_of(Some(header), 10), expected, "{header}");
        }
        assert_eq!(part_of(None, 10), Wanted::Whole);
        assert_eq!(part_of(Some("bytes=0-0"), 0), Wanted::None);
        assert_eq!(part_of(Some("bytes=-1"), 0), Wanted::None);
    }

    proptest! {
        #[test]
        fn a_part_lies_inside(header in "(bytes=)?[-0-9, ]{0,24}", size: u64) {
            if let Wanted::Part(part) = part_of(Some(&header), size) {
                prop_assert!(part.first <= part.last && part.last < size);
            }
        }
    }
}
