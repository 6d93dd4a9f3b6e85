//! Which of the three forms a command line has, and what it runs. Pure.

use crate::args::RunArgs;
use crate::exit::Failure;
use crate::host::files::FileSource;
use cofferdam_core::{GuestPath, InvalidValue};
use cofferdam_worker::Work;
use cofferdam_worker::runtime;
use std::path::PathBuf;

/// Code without a language is taken for this.
const DEFAULT_LANGUAGE: &str = "python";

/// What to run, its arguments, and the file that has to be there for it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) struct Words {
    pub(in crate::commands) work: Work,
    pub(in crate::commands) args: Vec<String>,
    pub(in crate::commands) script: Option<FileSource>,
}

/// `-c CODE [ARGS]`, `FILE [ARGS]` or `-- COMMAND [ARGS]`.
pub(in crate::commands) fn parse(args: &RunArgs) -> Result<Words, Failure> {
    let lang = args.lang.as_deref();
    if let Some(word) = args.words.first().filter(|word| word.starts_with('-')) {
        let what = format!("there is no option {word:?}; put -- before a command or arguments; see --help");
        return Err(Failure::new(what));
    }
    if let Some(code) = &args.code {
        let runtime = runtime::by_name("--lang", lang.unwrap_or(DEFAULT_LANGUAGE))?;
        let words = args.words.iter().chain(&args.command).cloned().collect();
        return Ok(Words { work: Work::Code { runtime, code: code.clone() }, args: words, script: None });
    }
    if let [file, rest @ ..] = &args.words[..] {
        return Ok(script(file, rest.iter().chain(&args.command).cloned().collect(), lang)?);
    }
    if args.command.is_empty() {
        return Err(Failure::new("nothing to run: give -c CODE, a FILE, or -- and a command; see --help"));
    }
    if let Some(lang) = lang {
        let fix = "a command has none; it is for -c CODE or a FILE";
        return Err(InvalidValue::new("--lang", lang, fix).into());
    }
    Ok(Words { work: Work::Command { argv: args.command.clone() }, args: Vec::new(), script: None })
}

/// A file of the host is run from the workspace, under its own name.
fn script(file: &str, args: Vec<String>, lang: Option<&str>) -> Result<Words, InvalidValue> {
    let runtime = match lang {
        Some(lang) => runtime::by_name("--lang", lang)?,
        None => runtime::by_file_name("file", file).map_err(|error| InvalidValue {
            fix: format!("{} with --lang, or put -- before a command", error.fix),
            ..error
        })?,
    };
    let guest = GuestPath::parse_in_workspace("file", base_name("file", file)?)?;
    let script = FileSource { host: PathBuf::from(file), guest: guest.clone() };
    Ok(Words { work: Work::File { runtime, path: guest }, args, script: Some(script) })
}

/// The last name of a host path.
pub(super) fn base_name<'a>(field: &str, path: &'a str) -> Result<&'a str, InvalidValue> {
    match path.rsplit('/').next() {
        Some(name) if !name.is_empty() && name != "." && name != ".." => Ok(name),
        _ => Err(InvalidValue::new(field, path, "it must name a file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn parsed(args: RunArgs) -> Words {
        parse(&args).unwrap()
    }

    #[test]
    fn code_is_python_unless_told_otherwise() {
        let code = Some("1".to_owned());
        let got = parsed(RunArgs { code: code.clone(), words: words(&["a"]), ..RunArgs::default() });
        assert!(matches!(&got.work, Work::Code { runtime, .. } if runtime.name == "python"));
        assert_eq!(got.args, ["a"]);
        let got =
            parsed(RunArgs { code, lang: Some("js".into()), command: words(&["-b"]), ..RunArgs::default() });
        assert!(matches!(&got.work, Work::Code { runtime, .. } if runtime.name == "node"));
        assert_eq!(got.args, ["-b"]);
    }

    #[test]
    fn a_file_is_put_into_the_workspace_and_run_there() {
        let got = parsed(RunArgs { words: words(&["dir/-x.rb", "--flag"]), ..RunArgs::default() });
        let Work::File { runtime, path } = got.work else { panic!("{got:?}") };
        assert_eq!((runtime.name, path.as_str()), ("ruby", "/workspace/-x.rb"));
        assert_eq!(got.script.unwrap().host, PathBuf::from("dir/-x.rb"));
        assert_eq!(got.args, ["--flag"]);
    }

    #[test]
    fn a_command_is_taken_as_it_is() {
        let got = parsed(RunArgs { command: words(&["ls", "-l"]), ..RunArgs::default() });
        assert_eq!(got.work, Work::Command { argv: words(&["ls", "-l"]) });
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        let wrong = [
            RunArgs::default(),
            RunArgs { words: words(&["script"]), ..RunArgs::default() },
            RunArgs { words: words(&["--memry", "1g"]), ..RunArgs::default() },
            RunArgs { words: words(&["--jsn"]), code: Some("1".into()), ..RunArgs::default() },
            RunArgs { words: words(&["dir/"]), lang: Some("sh".into()), ..RunArgs::default() },
            RunArgs { words: words(&["x.py"]), lang: Some("cobol".into()), ..RunArgs::default() },
            RunArgs { command: words(&["ls"]), lang: Some("sh".into()), ..RunArgs::default() },
        ];
        for args in wrong {
            assert!(parse(&args).is_err(), "{args:?}");
        }
    }
}
