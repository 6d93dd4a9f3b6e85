use super::*;

fn shown(bytes: &[u8]) -> String {
    String::from_utf8(Screen::default().pass(bytes)).expect("what is shown is text")
}

#[test]
fn what_draws_comes_through_as_it_is() {
    for text in [
        "plain\ttext\r\n",
        "grüße 日本 🦀",
        "\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3m\x1b[4:3m",
        "\x1b[2J\x1b[H\x1b[10;20H\x1b[K\x1b[?25l\x1b[?25h",
        "\x1b[?1049h\x1b[?1h\x1b=\x1b[1;24r\x1b[?1049l\x1b>",
        "\x1b(0lqk\x1b(B\x1b7\x1b8\x1bM\x0e\x0f",
        "\x1b[?1000;1006h\x1b[?2004h\x1b[3 q\x1b[!p\x1bc",
        "a\x07b\x08",
    ] {
        assert_eq!(shown(text.as_bytes()), text);
    }
}

/// Each of these does something to the terminal, or has it answer; none may leave a trace of itself.
#[test]
fn nothing_reaches_clipboard_title_printer_or_answers() {
    for hostile in [
        &b"\x1b]52;c;cm0gLXJmIH4=\x07"[..],
        b"\x1b]52;c;cm0gLXJmIH4=\x1b\\",
        b"\x1b]0;title\x07",
        b"\x1b]2;title\x1b\\",
        b"\x1b]1337;File=:AAAA\x07",
        b"\x1b]8;;http://x\x07",
        b"\x1b]10;?\x07",
        b"\x1b]4;1;?\x1b\\",
        b"\x1b]\x07",
        b"\x1bktitle\x1b\\",
        b"\x1bP$q m\x1b\\",
        b"\x1bP+q544e\x1b\\",
        b"\x1bP0;1|17/17\x1b\\",
        b"\x1b_Gi=1;AAAA\x1b\\",
        b"\x1b^private\x1b\\",
        b"\x1bXstring\x1b\\",
        b"\x1b[c",
        b"\x1b[0c",
        b"\x1b[>c",
        b"\x1b[=c",
        b"\x1bZ",
        b"\x1b[5n",
        b"\x1b[6n",
        b"\x1b[?6n",
        b"\x1b[?15n",
        b"\x1b[18t",
        b"\x1b[21t",
        b"\x1b[22;0t",
        b"\x1b[8;1;1t",
        b"\x1b[x",
        b"\x1b[5i",
        b"\x1b[?5i",
        b"\x1b[4i",
        b"\x1b[?25$p",
        b"\x1b[1$y",
        b"\x1b[>0q",
        b"\x1b[?u",
        b"\x1b[>4;2m",
        b"\x1b[?3h",
        b"\x1b[?40h",
        b"\x1b[?1049;40h",
        b"\x1b[?2048h",
        b"\x1b[20h",
        b"\x1b[1*y",
        b"\x1b[&v",
        b"\x1b[\"q",
        b"\x1b[1\"p",
        b"\x1b G",
        b"\x1b%@",
        b"\x05",
        b"\x00",
        b"\x7f",
        // The same in UTF-8, and in single bytes of old.
        b"\xc2\x9b",
        b"\xc2\x9d",
        b"\xc2\x90",
    ] {
        assert_eq!(shown(hostile), "", "{:?}", String::from_utf8_lossy(hostile));
        let around = [b"a", hostile, b"b"].concat();
        assert_eq!(shown(&around), "ab", "{:?}", String::from_utf8_lossy(hostile));
    }
    // What follows a control that was dropped is text, which shows and does nothing.
    assert_eq!(shown(b"\xc2\x9d52;c;AAAA\xc2\x9c"), "52;c;AAAA");
    assert_eq!(shown(b"\x9d52;c;A\x9c"), "\u{fffd}52;c;A\u{fffd}");
}

#[test]
fn a_sequence_that_hides_in_another_is_dropped_too() {
    assert_eq!(shown(b"\x1b[\x1b]0;t\x07x"), "x");
    assert_eq!(shown(b"\x1b]0;t\x1b[31mx"), "\x1b[31mx", "an escape ends a string");
    assert_eq!(shown(b"\x1b]0;a\x1b]52;c;b\x07x"), "x");
    assert_eq!(shown(b"\x1b[3\x07\n1mx"), "\x1b[31mx", "nothing is done inside of one");
    assert_eq!(shown(b"\x1b\x1b]0;t\x07x"), "x");
    assert_eq!(shown(b"\x1b]0;t\x18x"), "x");
    assert_eq!(shown(b"\x1b[31\xe2\x82\xacx"), "\u{20ac}x");
    assert_eq!(shown(b"\xe2\x1b]0;t\x07x"), "\u{fffd}x", "a letter that was cut");
    let long = [b"\x1b[".as_slice(), &b"1;".repeat(1000), b"mx"].concat();
    assert_eq!(shown(&long), "x");
}

/// However it is cut, also between the bytes of a letter or a sequence.
#[test]
fn pieces_make_no_difference() {
    let all = b"a\x1b]52;c;AA\x1b\\b\x1b[1;31mc\xe2\x82\xacd\x1bP+q\x1b\\\x1b[6n\xc2\x9be\x1b[?1049hf\xff";
    let whole = Screen::default().pass(all);
    for cut in 0..all.len() {
        let mut screen = Screen::default();
        let mut parts = screen.pass(&all[..cut]);
        parts.extend(screen.pass(&all[cut..]));
        assert_eq!(parts, whole, "cut at {cut}");
    }
}

/// Whatever comes, the terminal sees only what is whole and allowed: passing it a second time changes nothing.
#[test]
fn what_was_passed_passes_again_unchanged() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let alphabet = b"\x1b\x1b\x1b[]P?;:0123456789hlmHcnt\x07\\ \xc2\x9d\x9b\xe2\x82\xac\xff\x18kX_^(B!pq>$\"";
    for _ in 0..2000 {
        let bytes: Vec<u8> = (0..40)
            .map(|_| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                alphabet[(seed % alphabet.len() as u64) as usize]
            })
            .collect();
        let once = Screen::default().pass(&bytes);
        assert_eq!(Screen::default().pass(&once), once, "{bytes:?}");
        let text = String::from_utf8(once).expect("text");
        for bad in ["\x1b]", "\x1bP", "\x1b_", "\x1b^", "\x1bX", "\x1bk", "\x1bZ", "\u{9d}", "\u{9b}"] {
            assert!(!text.contains(bad), "{bytes:?}");
        }
    }
}

#[test]
fn what_was_changed_is_changed_back() {
    let mut screen = Screen::default();
    assert_eq!(screen.restore(), b"", "nothing to do");
    screen.pass(b"only text\n");
    assert_eq!(screen.restore(), b"");
    screen.pass(b"\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b[?2004h\x1b[?2004l\x1b[31m\x1b]0;unfinished");
    let back = String::from_utf8(screen.restore()).unwrap();
    for wanted in ["\x1b[?1049l", "\x1b[?25h", "\x1b[?1000l", "\x1b[m"] {
        assert!(back.contains(wanted), "{back:?}");
    }
    assert!(!back.contains("2004"), "{back:?}");
    assert_eq!(screen.pass(b"x"), b"x", "what was not finished is forgotten");
}
