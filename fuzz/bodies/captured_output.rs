//! Output of hostile programs, read in pieces of any size. The first byte is the limit, the second the size of
//! the pieces.

use cofferdam_core::CapturedOutput;

pub(crate) fn run(data: &[u8]) {
    let [limit, piece, bytes @ ..] = data else { return };
    let (limit, piece) = (usize::from(*limit) * 16, usize::from(*piece).max(1));
    let mut output = CapturedOutput::default();
    bytes.chunks(piece).for_each(|chunk| output.push(chunk, limit));
    let mut whole = CapturedOutput::default();
    whole.push(bytes, limit);
    assert_eq!(output, whole, "pieces make no difference");

    let kept = bytes.len().min(limit);
    assert_eq!(output.bytes, &bytes[..kept]);
    assert_eq!(output.dropped_bytes, (bytes.len() - kept) as u64);
    assert_eq!(output.truncated(), kept < bytes.len());
    let text = output.text();
    match output.base64() {
        Some(base64) => {
            assert!(std::str::from_utf8(&output.bytes).is_err());
            assert_eq!(decode(&base64), output.bytes);
        }
        None if text.as_bytes() == output.bytes => {}
        None => {
            // Only a code point that the limit has cut in two is lost.
            assert!(output.truncated());
            let start = text.strip_suffix('\u{fffd}').expect("the cut one is shown as replaced");
            let rest = output.bytes.strip_prefix(start.as_bytes()).expect("nothing else differs");
            assert!((1..4).contains(&rest.len()));
        }
    }
}

/// Standard Base64 with padding.
fn decode(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    assert!(text.len().is_multiple_of(4));
    let mut bytes = Vec::new();
    for group in text.as_bytes().chunks(4) {
        let letters = group.iter().take_while(|letter| **letter != b'=').count();
        let mut bits = 0u32;
        for letter in &group[..letters] {
            let value = ALPHABET.iter().position(|known| known == letter).expect("a letter of Base64");
            bits = bits << 6 | value as u32;
        }
        bits <<= 6 * (4 - letters);
        bytes.extend_from_slice(&bits.to_be_bytes()[1..letters]);
    }
    bytes
}
