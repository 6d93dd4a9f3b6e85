//! `Content-Disposition` for names that anybody may have chosen (RFC 6266, RFC 8187).

use axum::http::HeaderValue;
use std::fmt::Write;

/// Characters that change how a name is shown: `evil\u{202e}txt.exe` looks like a text.
const REORDERING: [char; 12] = [
    '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}',
    '\u{2067}', '\u{2068}', '\u{2069}', '\u{feff}',
];

/// Says that a browser should save this, under the last part of its name.
pub(crate) fn attachment(name: &str) -> HeaderValue {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let shown = |c: char| if c.is_control() || REORDERING.contains(&c) { '_' } else { c };
    let clean: String = last.chars().map(shown).collect();
    // What begins with a dot is hidden from whoever saves it.
    let clean = match clean.trim_start_matches('.') {
        "" => "artifact",
        rest => rest,
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._- ".contains(c);
    let ascii: String = clean.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let mut encoded = String::new();
    for byte in clean.bytes() {
        match byte {
            b'.' | b'_' | b'-' => encoded.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => encoded.push(byte.into()),
            // Writing to a text does not fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    let text = format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{encoded}");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_gets_out_of_its_quotes() {
        for (name, ascii, encoded) in [
            ("a.txt", "a.txt", "a.txt"),
            ("dir/b c.csv", "b c.csv", "b%20c.csv"),
            ("..\\..\\x", "x", "x"),
            ("..", "artifact", "artifact"),
            (".bashrc", "bashrc", "bashrc"),
            ("a\"; x=\"b", "a__ x__b", "a%22%3B%20x%3D%22b"),
            ("ü.txt", "_.txt", "%C3%BC.txt"),
            ("a\r\nSet-Cookie: b", "a__Set-Cookie_ b", "a__Set-Cookie%3A%20b"),
            ("txt.\u{202e}exe", "txt._exe", "txt._exe"),
            ("", "artifact", "artifact"),
        ] {
            let expected = format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{encoded}");
            assert_eq!(attachment(name).to_str().ok(), Some(expected.as_str()), "{name:?}");
        }
    }
}
