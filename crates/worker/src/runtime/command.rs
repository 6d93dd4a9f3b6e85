//! From code or a file to the words of a command.

use super::table::{Arguments, Inline, Runtime};
use cofferdam_core::GuestPath;

/// The kernel takes at most 128 KiB in one argument; longer code becomes a file, well before that.
pub const INLINE_CODE_MAX_BYTES: usize = 100 << 10;

/// Where code that came as text has to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodePlace {
    /// Into the command itself.
    Inline { argv: Vec<String> },
    /// Into a file of this name in the workspace, to be run with [`file_argv`].
    File { name: &'static str },
}

impl Runtime {
    /// How to run `code`, with `args` for the program.
    pub fn place_code(&self, code: &str, args: &[String]) -> CodePlace {
        match self.inline {
            // A NUL cannot be in an argument; in a file the runtime itself says what it makes of it.
            Inline::After(words) if code.len() <= INLINE_CODE_MAX_BYTES && !code.contains('\0') => {
                CodePlace::Inline { argv: self.inline_argv(words, code, args) }
            }
            Inline::After(_) | Inline::File => CodePlace::File { name: self.source },
        }
    }

    fn inline_argv(&self, words: &[&str], code: &str, args: &[String]) -> Vec<String> {
        let mut argv = Vec::with_capacity(args.len() + words.len() + 3);
        argv.push(self.program.to_owned());
        argv.extend(words.iter().map(|word| (*word).to_owned()));
        argv.push(code.to_owned());
        match self.arguments {
            Arguments::AfterDashes if !args.is_empty() => argv.push("--".to_owned()),
            Arguments::AfterName => argv.push(self.program.to_owned()),
            Arguments::AfterDashes | Arguments::Plain => {}
        }
        argv.extend_from_slice(args);
        argv
    }
}

/// How to run a file that is in the sandbox, with `args` for the program.
pub fn file_argv(runtime: &Runtime, path: &GuestPath, args: &[String]) -> Vec<String> {
    let mut argv = Vec::with_capacity(args.len() + runtime.file.len() + 2);
    argv.push(runtime.program.to_owned());
    argv.extend(runtime.file.iter().map(|word| (*word).to_owned()));
    argv.push(path.as_str().to_owned());
    argv.extend_from_slice(args);
    argv
}

#[cfg(test)]
mod tests {
    use super::super::by_name;
    use super::*;

    fn inline(language: &str, code: &str, args: &[&str]) -> Vec<String> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        match by_name("lang", language).unwrap().place_code(code, &args) {
            CodePlace::Inline { argv } => argv,
            CodePlace::File { name } => vec![format!("file {name}")],
        }
    }

    #[test]
    fn code_is_given_as_each_runtime_wants_it() {
        assert_eq!(inline("python", "c", &["-v"]), ["python3", "-c", "c", "-v"]);
        assert_eq!(inline("node", "c", &["-v"]), ["node", "-e", "c", "--", "-v"]);
        assert_eq!(inline("bash", "c", &["a"]), ["bash", "-c", "c", "bash", "a"]);
        assert_eq!(inline("sh", "c", &[]), ["sh", "-c", "c", "sh"]);
        assert_eq!(inline("ruby", "c", &[]), ["ruby", "-e", "c"]);
        assert_eq!(inline("php", "c", &["a"]), ["php", "-r", "c", "--", "a"]);
        assert_eq!(inline("deno", "c", &["a"]), ["deno", "eval", "--ext=ts", "c", "a"]);
    }

    #[test]
    fn code_that_cannot_be_an_argument_becomes_a_file() {
        assert_eq!(inline("go", "package main", &[]), ["file main.go"]);
        assert_eq!(inline("java", "class Main {}", &[]), ["file Main.java"]);
        assert_eq!(inline("python", "a\0b", &[]), ["file main.py"]);
        assert_eq!(inline("python", &"#".repeat(INLINE_CODE_MAX_BYTES + 1), &[]), ["file main.py"]);
        assert_eq!(inline("python", &"#".repeat(INLINE_CODE_MAX_BYTES), &[]).len(), 3);
    }

    #[test]
    fn files_are_run_by_their_path() {
        let path = GuestPath::parse("file", "/workspace/main.go").unwrap();
        let argv = file_argv(by_name("lang", "go").unwrap(), &path, &["x".to_owned()]);
        assert_eq!(argv, ["go", "run", "/workspace/main.go", "x"]);
    }
}
