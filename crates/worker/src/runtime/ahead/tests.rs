use super::*;

fn env(names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect()
}

#[test]
fn a_message_holds_every_word_and_its_own_length() {
    let args = ["a".to_owned(), String::new()];
    let message = message("print(1)", &args, &env(&["K"]), true);
    let (len, words) = message.split_at(4);
    assert_eq!(u32::from_le_bytes(len.try_into().unwrap()) as usize, words.len());
    let words: Vec<_> = words.split(|b| *b == 0).collect();
    assert_eq!(words, [&b"1"[..], b"2", b"print(1)", b"a", b"", b"K=x"]);
}

#[test]
fn what_counts_at_the_start_of_an_interpreter_needs_a_new_one() {
    assert!(PYTHON.takes("print(1)", &env(&["A", "CYNODE", "NODE_ENV"])));
    for name in ["PYTHONHASHSEED", "LD_PRELOAD", "LC_ALL", "LANG", "TZ", "PATH", "HOME"] {
        assert!(!PYTHON.takes("print(1)", &env(&[name])), "{name}");
    }
    assert!(NODE.takes("1", &env(&["PYTHONPATH"])) && !NODE.takes("1", &env(&["NODE_OPTIONS"])));
}

#[test]
fn code_that_cannot_be_an_argument_needs_a_new_one() {
    assert!(!PYTHON.takes("a\0b", &[]));
    assert!(!PYTHON.takes(&"#".repeat(INLINE_CODE_MAX_BYTES + 1), &[]));
}

#[test]
fn compiled_code_is_a_text_of_its_own_kind() {
    let runtime = crate::runtime::by_name("lang", "python").unwrap();
    let (plain, nothing) = PYTHON.start(runtime, None);
    let (compiled, sent) = PYTHON.start(runtime, Some(b"a\0b"));
    assert_eq!((&plain[..2], plain[2].as_str()), (&compiled[..2], PYTHON.boot));
    assert_eq!((nothing, sent), (&b""[..], &b"a\0b"[..]));
    assert!(compiled[2].contains("closefd=False).read(3))"), "{}", compiled[2]);
    // It ends with the same lines, which are what lies below the program.
    let rest = |text: &str| text.lines().rev().take(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rest(&compiled[2]), rest(PYTHON.boot));
    let (node, nothing) = NODE.start(runtime, Some(b"a"));
    assert_eq!((node[2].as_str(), nothing), (NODE.boot, &b""[..]));
}
