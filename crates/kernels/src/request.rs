//! What an interpreter is told: words that each end with a NUL, so that a shell can read them, too.

use crate::cell::Cell;
use crate::language::KernelLanguage;
use cofferdam_core::InvalidValue;

/// The code of one cell. It is held in memory several times on its way.
const CODE_MAX_BYTES: usize = 4 << 20;

/// Refuses what could not be told.
pub(crate) fn check(cell: &Cell) -> Result<(), InvalidValue> {
    let size = cell.code.len();
    if size > CODE_MAX_BYTES {
        let fix = "the code of a cell is at most 4 MiB; write more to a file";
        return Err(InvalidValue::new("code", format!("{size} bytes"), fix));
    }
    if cell.code.contains('\0') {
        return Err(InvalidValue::new("code", "…\\0…", "code must not contain NUL"));
    }
    for (name, value) in &cell.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            let fix = "a variable's name must not be empty or contain = or NUL";
            return Err(InvalidValue::new("env", name, fix));
        }
        if value.contains('\0') {
            return Err(InvalidValue::new("env", name, "a variable's value must not contain NUL"));
        }
    }
    Ok(())
}

/// The length of what follows, and then: the marker, the count, the language, the variables and the code.
pub(crate) fn run(cell: &Cell, language: KernelLanguage, marker: &str, count: u64) -> Vec<u8> {
    let (count, variables) = (count.to_string(), cell.env.len().to_string());
    let mut words = vec!["run", marker, &count, language.as_str(), &variables];
    for (name, value) in &cell.env {
        words.extend([name.as_str(), value]);
    }
    words.push(&cell.code);
    message(&words)
}

pub(crate) fn interrupt() -> Vec<u8> {
    message(&["interrupt"])
}

pub(crate) fn message<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let length: usize = words.iter().map(|word| word.as_ref().len() + 1).sum();
    let mut bytes = Vec::with_capacity(length + 8);
    bytes.extend(length.to_string().as_bytes());
    bytes.push(0);
    for word in words {
        bytes.extend(word.as_ref());
        bytes.push(0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_holds_every_word_and_its_length() {
        let cell = Cell { code: "a\nb".into(), env: vec![("K".into(), "=v".into())], timeout: None };
        let bytes = run(&cell, KernelLanguage::Python, "m", 7);
        let (length, words) = bytes.split_at(bytes.iter().position(|byte| *byte == 0).unwrap() + 1);
        assert_eq!(length, format!("{}\0", words.len()).as_bytes());
        assert_eq!(words, b"run\0m\x007\0python\x001\0K\0=v\0a\nb\0");
    }

    #[test]
    fn what_cannot_be_told_is_refused() {
        let with = |code: &str, env: &[(&str, &str)]| Cell {
            code: code.into(),
            env: env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            timeout: None,
        };
        assert!(check(&with("1", &[("A", "x=y")])).is_ok());
        for (code, env) in [
            ("a\0b", &[][..]),
            ("1", &[("A=B", "")]),
            ("1", &[("", "")]),
            ("1", &[("A", "\0")]),
            (&"x".repeat(CODE_MAX_BYTES + 1), &[]),
        ] {
            assert!(check(&with(code, env)).is_err(), "{env:?}");
        }
    }
}
