//! The fields of one block.

use super::BLOCK;

/// A header whose checksum was right.
pub(super) struct Header<'b>(&'b [u8; BLOCK]);

impl<'b> Header<'b> {
    /// The header in a block; `None` if its checksum is wrong.
    pub(super) fn parse(block: &'b [u8; BLOCK]) -> Option<Self> {
        let promised = octal(&block[148..156])?;
        let as_spaces = 8 * u64::from(b' ');
        let sum: u64 = block.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        let own: u64 = block[148..156].iter().map(|&byte| u64::from(byte)).sum();
        (sum - own + as_spaces == promised).then_some(Self(block))
    }

    pub(super) fn kind(&self) -> u8 {
        self.0[156]
    }

    pub(super) fn path(&self) -> Vec<u8> {
        let name = text(&self.0[..100]);
        let prefix = if self.0[257..263] == *b"ustar\0" { text(&self.0[345..500]) } else { b"" };
        if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
    }

    pub(super) fn link(&self) -> Vec<u8> {
        text(&self.0[157..257]).to_vec()
    }

    pub(super) fn mode(&self) -> Option<u32> {
        number(&self.0[100..108]).and_then(|mode| u32::try_from(mode).ok())
    }

    pub(super) fn uid(&self) -> Option<u64> {
        number(&self.0[108..116])
    }

    pub(super) fn size(&self) -> Option<u64> {
        number(&self.0[124..136])
    }

    /// A time before 1970, or none, is 1970.
    pub(super) fn seconds(&self) -> u64 {
        number(&self.0[136..148]).unwrap_or(0)
    }
}

/// Up to the first NUL.
fn text(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Octal digits, or GNU's big-endian form for what does not fit; a negative number is none.
fn number(field: &[u8]) -> Option<u64> {
    match field.split_first() {
        Some((0x80, rest)) => rest.iter().try_fold(0u64, |value, &byte| {
            value.checked_mul(256).and_then(|value| value.checked_add(byte.into()))
        }),
        Some((0x81..=0xff, _)) => None,
        _ => octal(field),
    }
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits = text(field).trim_ascii();
    digits.iter().try_fold(0u64, |value, digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_two_forms() {
        assert_eq!(number(b"0000644\0"), Some(0o644));
        assert_eq!(number(b"   644 \0"), Some(0o644));
        assert_eq!(number(b"\0\0\0"), Some(0));
        assert_eq!(number(&[0x80, 0, 0, 1, 0]), Some(256));
        for wrong in
            [&b"9"[..], b"-1", b"0x1", &[0xff; 12], &[0x80, 255, 255, 255, 255, 255, 255, 255, 255, 255]]
        {
            assert_eq!(number(wrong), None, "{wrong:?}");
        }
    }
}
