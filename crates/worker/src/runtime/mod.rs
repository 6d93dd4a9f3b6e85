//! The languages that a job can be written in, as data.
//!
//! An adapter says how code and files of one language are run: which program, with which words around them.
//! Whether that program exists is the image's business: it is looked up inside, when it is started.

pub(crate) mod ahead;
mod command;
mod present;
mod table;

pub use command::{CodePlace, INLINE_CODE_MAX_BYTES, file_argv};
pub(crate) use present::present_in;
pub use table::{Arguments, Inline, PYTHON_KERNEL, RUNTIMES, Runtime};

use cofferdam_core::InvalidValue;

/// The adapter of a language, by its name or another that people use for it.
pub fn by_name(field: &str, name: &str) -> Result<&'static Runtime, InvalidValue> {
    let wanted = name.to_ascii_lowercase();
    let found = RUNTIMES.iter().find(|r| r.name == wanted || r.aliases.contains(&wanted.as_str()));
    found.ok_or_else(|| InvalidValue::new(field, name, format!("it must be one of {}", names())))
}

/// The adapter for a file, by its ending.
pub fn by_file_name(field: &str, name: &str) -> Result<&'static Runtime, InvalidValue> {
    let ending = name.rsplit('/').next().and_then(|base| base.rsplit_once('.')).map(|(_, ending)| ending);
    let ending = ending.unwrap_or_default().to_ascii_lowercase();
    let found = RUNTIMES.iter().find(|r| r.endings.contains(&ending.as_str()));
    found.ok_or_else(|| {
        let fix = format!("its ending does not tell its language; name one of {}", names());
        InvalidValue::new(field, name, fix)
    })
}

/// Every language, as a list for people.
fn names() -> String {
    RUNTIMES.map(|r| r.name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_found_by_name_alias_and_ending() {
        for (name, runtime) in
            [("python", "python"), ("py", "python"), ("JS", "node"), ("typescript", "deno")]
        {
            assert_eq!(by_name("lang", name).unwrap().name, runtime, "{name}");
        }
        for (file, runtime) in
            [("a/b.py", "python"), ("x.tar.MJS", "node"), ("Main.java", "java"), ("s.sh", "sh")]
        {
            assert_eq!(by_file_name("file", file).unwrap().name, runtime, "{file}");
        }
    }

    #[test]
    fn unknown_ones_are_refused_with_the_list() {
        let error = by_name("lang", "cobol").unwrap_err().to_string();
        assert!(error.starts_with("lang: \"cobol\"") && error.contains("python, node, bash"), "{error}");
        for file in ["script", "a.b/script", "x.cob", ""] {
            assert!(by_file_name("file", file).is_err(), "{file}");
        }
    }

    #[test]
    fn no_name_or_ending_means_two_languages() {
        let mut seen = std::collections::HashSet::new();
        for runtime in RUNTIMES {
            assert!(seen.insert(format!("name {}", runtime.name)));
            assert!(runtime.aliases.iter().all(|alias| seen.insert(format!("name {alias}"))));
            assert!(runtime.endings.iter().all(|ending| seen.insert(format!("ending {ending}"))));
            assert!(runtime.source.contains('.'));
        }
    }
}
