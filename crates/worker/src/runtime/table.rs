//! The table of languages. To add one, add a row.

use super::ahead::{self, Ahead, NODE, PYTHON};

/// How code that came as text is handed to a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inline {
    /// As an argument, after these words.
    After(&'static [&'static str]),
    /// Only as a file.
    File,
}

/// What stands between inline code and the program's own arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arguments {
    /// Nothing: whatever follows the code is the program's.
    Plain,
    /// `--`, as the runtime would otherwise take words such as `-v` for its own.
    AfterDashes,
    /// The program's name: a shell takes the first word for `$0`.
    AfterName,
}

/// One language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runtime {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// Of file names, in lower case and without the dot.
    pub endings: &'static [&'static str],
    /// Looked up in the job's PATH, inside.
    pub program: &'static str,
    pub inline: Inline,
    pub arguments: Arguments,
    /// The words between the program and a file.
    pub file: &'static [&'static str],
    /// The name that code gets in the workspace when it has to be a file.
    pub source: &'static str,
    /// How to start it before there is a program for it, where that saves time.
    pub ahead: Option<&'static Ahead>,
}

const PYTHON_ROW: Runtime = Runtime {
    name: "python",
    aliases: &["py", "python3"],
    endings: &["py"],
    program: "python3",
    inline: Inline::After(&["-c"]),
    arguments: Arguments::Plain,
    file: &[],
    source: "main.py",
    ahead: Some(&PYTHON),
};

/// For sessions: it waits to become a kernel.
pub static PYTHON_KERNEL: Runtime = Runtime { ahead: Some(&ahead::PYTHON_KERNEL), ..PYTHON_ROW };

pub static RUNTIMES: [Runtime; 10] = [
    PYTHON_ROW,
    Runtime {
        name: "node",
        aliases: &["js", "javascript", "nodejs"],
        endings: &["js", "mjs", "cjs"],
        program: "node",
        inline: Inline::After(&["-e"]),
        arguments: Arguments::AfterDashes,
        file: &[],
        source: "main.js",
        ahead: Some(&NODE),
    },
    Runtime {
        name: "bash",
        aliases: &[],
        endings: &["bash"],
        program: "bash",
        inline: Inline::After(&["-c"]),
        arguments: Arguments::AfterName,
        file: &[],
        source: "main.bash",
        ahead: None,
    },
    Runtime {
        name: "sh",
        aliases: &["shell"],
        endings: &["sh"],
        program: "sh",
        inline: Inline::After(&["-c"]),
        arguments: Arguments::AfterName,
        file: &[],
        source: "main.sh",
        ahead: None,
    },
    Runtime {
        name: "ruby",
        aliases: &["rb"],
        endings: &["rb"],
        program: "ruby",
        inline: Inline::After(&["-e"]),
        arguments: Arguments::AfterDashes,
        file: &[],
        source: "main.rb",
        ahead: None,
    },
    Runtime {
        name: "perl",
        aliases: &["pl"],
        endings: &["pl"],
        program: "perl",
        inline: Inline::After(&["-e"]),
        arguments: Arguments::AfterDashes,
        file: &[],
        source: "main.pl",
        ahead: None,
    },
    Runtime {
        name: "go",
        aliases: &["golang"],
        endings: &["go"],
        program: "go",
        inline: Inline::File,
        arguments: Arguments::Plain,
        file: &["run"],
        source: "main.go",
        ahead: None,
    },
    Runtime {
        name: "java",
        aliases: &[],
        endings: &["java"],
        program: "java",
        inline: Inline::File,
        arguments: Arguments::Plain,
        file: &[],
        source: "Main.java",
        ahead: None,
    },
    Runtime {
        name: "deno",
        aliases: &["ts", "typescript"],
        endings: &["ts", "mts", "tsx"],
        program: "deno",
        // TypeScript holds JavaScript; the sandbox is what keeps it from the machine, so deno's own
        // questions for permission only stand in the way of a job that nobody can answer for.
        inline: Inline::After(&["eval", "--ext=ts"]),
        arguments: Arguments::Plain,
        file: &["run", "--allow-all"],
        source: "main.ts",
        ahead: None,
    },
    Runtime {
        name: "php",
        aliases: &[],
        endings: &["php"],
        program: "php",
        inline: Inline::After(&["-r"]),
        arguments: Arguments::AfterDashes,
        file: &[],
        source: "main.php",
        ahead: None,
    },
];
