//! Which sequences only draw. What is not named here is not let through.

/// Modes that are on in a terminal that nobody has touched: wrapping, and the cursor.
pub(super) const IS_USUALLY_SET: [u16; 2] = [7, 25];

/// Cursor and function keys, columns, colours, wrapping, blinking, the cursor; the other screen; the mouse, focus and
/// pastes, which change what a key or a click sends; updates at once.
const MODES: [u16; 22] = [
    1, 5, 6, 7, 12, 25, 45, 47, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1047, 1048, 1049, 2004,
    2026,
];

/// ESC and one letter: the cursor (7, 8, D, E, M), a tab stop, the keypad, a reset. Not Z, which is answered.
pub(super) fn is_plain_escape(last: u8) -> bool {
    b"78DEMH=>c".contains(&last)
}

/// A character set, among them that of lines; and the pattern for tests.
pub(super) fn is_designation(held: &[u8], last: u8) -> bool {
    match held {
        b"(" | b")" | b"*" | b"+" => b"0AB".contains(&last),
        b"#" => b"8".contains(&last),
        _ => false,
    }
}

/// What stands between ESC [ and the last letter, and that.
pub(super) fn is_drawing(held: &[u8], last: u8) -> bool {
    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b';';
    match held {
        // Cursor, erasing, inserting, deleting, scrolling, tabs, colours, the region. Not c and n, which are answered,
        // i, which prints, t, which moves windows and reads titles, x, nor q, which has lights.
        _ if held.iter().all(is_number) => match last {
            b'h' | b'l' => held == b"4",
            b'g' => held == b"" || held == b"0" || held == b"3",
            _ => b"@ABCDEFGHIJKLMPSTXZ`abdefmrsu".contains(&last),
        },
        // Colours may have parts.
        _ if held.iter().all(|byte| is_number(byte) || *byte == b':') => last == b'm',
        [b'?', rest @ ..] if rest.iter().all(is_number) => match last {
            b'h' | b'l' => {
                let wanted: Vec<_> = modes(held).collect();
                !wanted.is_empty() && wanted.iter().all(|mode| MODES.contains(mode))
            }
            b'J' | b'K' => true,
            _ => false,
        },
        // The form of the cursor; a soft reset.
        [rest @ .., b' '] if rest.iter().all(u8::is_ascii_digit) => last == b'q',
        b"!" => last == b'p',
        _ => false,
    }
}

/// The modes of a sequence that sets or resets some; one that is no number is none.
pub(super) fn modes(held: &[u8]) -> impl Iterator<Item = u16> {
    let numbers = held.strip_prefix(b"?").unwrap_or_default();
    numbers.split(|byte| *byte == b';').map(|number| {
        // More than any mode, and so none that is let through.
        std::str::from_utf8(number).ok().and_then(|text| text.parse().ok()).unwrap_or(u16::MAX)
    })
}
