//! Text that comes in pieces: a character that is cut by the end of a piece waits for the next one.

/// What was held back of a stream, at most three bytes: the begin of a character whose end has not come yet.
#[derive(Debug, Default)]
pub struct CutCharacter(Vec<u8>);

impl CutCharacter {
    /// Takes a piece, and returns what can be shown now: what was held back and the piece, less a character that is
    /// not whole yet. Bytes that are no text pass as they are.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.0);
        bytes.extend_from_slice(piece);
        self.0 = bytes.split_off(bytes.len() - cut_bytes(&bytes));
        bytes
    }

    /// The end of the stream: what is held back comes as it is.
    pub fn end(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// How many bytes at the end are the begin of a character, and only that.
fn cut_bytes(bytes: &[u8]) -> usize {
    for count in 1..=bytes.len().min(3) {
        let tail = &bytes[bytes.len() - count..];
        if tail[0] & 0xc0 == 0x80 {
            continue;
        }
        let error = std::str::from_utf8(tail).err();
        let is_cut = error.is_some_and(|error| error.valid_up_to() == 0 && error.error_len().is_none());
        return if is_cut { count } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Passes bytes through in pieces that end where `cuts` say.
    fn pieces(bytes: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        places.sort_unstable();
        places.push(bytes.len());
        let (mut held, mut shown, mut from) = (CutCharacter::default(), Vec::new(), 0);
        for to in places {
            shown.push(held.push(&bytes[from..to]));
            assert!(held.0.len() <= 3);
            from = to;
        }
        shown.push(held.end());
        shown
    }

    proptest! {
        #[test]
        fn no_piece_of_text_ends_inside_a_character(text in ".*", cuts: Vec<usize>) {
            let shown = pieces(text.as_bytes(), &cuts);
            for piece in &shown {
                prop_assert!(std::str::from_utf8(piece).is_ok(), "{piece:?}");
            }
            prop_assert_eq!(shown.concat(), text.as_bytes());
        }

        #[test]
        fn no_byte_is_lost_or_added(bytes: Vec<u8>, cuts: Vec<usize>) {
            prop_assert_eq!(pieces(&bytes, &cuts).concat(), bytes);
        }
    }

    #[test]
    fn only_what_can_still_become_a_character_waits() {
        for (bytes, cut) in [
            (&b"a\xe2\x82"[..], 2),
            (b"\xf0\x9f\x98", 3),
            (b"\xc3", 1),
            ("é".as_bytes(), 0),
            (b"\xff", 0),
            (b"\x80\x80", 0),
            (b"\xc0", 0),
            (b"\xed\xa0", 0),
            (b"", 0),
        ] {
            assert_eq!(cut_bytes(bytes), cut, "{bytes:?}");
        }
    }
}
