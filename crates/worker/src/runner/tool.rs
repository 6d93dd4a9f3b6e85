//! The tools that test and build, as data: how each is started, and where and in which form it reports.

use cofferdam_core::{InvalidValue, JobKind};
use cofferdam_reports::Format;

/// Where a tool reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    Stdout,
    Stderr,
    /// Both, one after the other.
    Output,
    /// In the file that its own command names.
    File,
}

/// What a tool does for one kind of job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Action {
    /// None where the request has to give the command.
    pub(crate) argv: Option<&'static [&'static str]>,
    pub(crate) format: Format,
    pub(crate) place: Where,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Tool {
    pub name: &'static str,
    pub(crate) test: Option<Action>,
    pub(crate) build: Option<Action>,
    /// The form of what it prints, where a command is given that does not write the file.
    pub(crate) printed: Option<(Format, Where)>,
}

/// Where a tool leaves its report that prints none. Nothing is there before the tool starts.
pub(crate) const REPORT_FILE: &str = "/tmp/cofferdam-report.xml";

const fn action(argv: &'static [&'static str], format: Format, place: Where) -> Option<Action> {
    Some(Action { argv: Some(argv), format, place })
}

const fn tester(name: &'static str, test: Option<Action>) -> Tool {
    Tool { name, test, build: None, printed: None }
}

const fn builder(name: &'static str, argv: &'static [&'static str]) -> Tool {
    let build = action(argv, Format::Compiler, Where::Output);
    Tool { name, test: None, build, printed: None }
}

/// In the order of the wire's list.
pub(crate) static TOOLS: [Tool; 12] = [
    Tool {
        name: "cargo",
        // By itself it leaves out what comes after the first binary with a failure.
        test: action(
            &["cargo", "test", "--offline", "--color=never", "--no-fail-fast"],
            Format::CargoTest,
            Where::Stdout,
        ),
        build: action(
            &["cargo", "build", "--offline", "--message-format=json"],
            Format::CargoBuild,
            Where::Stdout,
        ),
        printed: None,
    },
    Tool {
        name: "go",
        test: action(&["go", "test", "-json", "./..."], Format::GoTest, Where::Stdout),
        build: action(&["go", "build", "./..."], Format::Compiler, Where::Output),
        printed: None,
    },
    tester("jest", action(&["node", "node_modules/jest/bin/jest.js", "--json"], Format::Jest, Where::Stdout)),
    tester("node", action(&["node", "--test", "--test-reporter=tap"], Format::Tap, Where::Stdout)),
    Tool {
        name: "pytest",
        test: action(
            &["python3", "-m", "pytest", "-p", "no:cacheprovider", "--junitxml=/tmp/cofferdam-report.xml"],
            Format::JunitXml,
            Where::File,
        ),
        build: None,
        printed: Some((Format::Pytest, Where::Stdout)),
    },
    tester("tap", action(&["prove", "-v"], Format::Tap, Where::Stdout)),
    tester(
        "unittest",
        action(&["python3", "-m", "unittest", "discover", "-v"], Format::Unittest, Where::Stderr),
    ),
    tester("junit", Some(Action { argv: None, format: Format::JunitXml, place: Where::Stdout })),
    builder("tsc", &["node", "node_modules/typescript/bin/tsc", "-p", ".", "--pretty", "false"]),
    builder("make", &["make"]),
    builder("cc", &["/bin/sh", "-c", "exec cc -Wall \"$@\" *.c", "sh"]),
    builder(
        "javac",
        &[
            "/bin/sh",
            "-c",
            "find . -name '*.java' > /tmp/sources && exec javac -d classes \"$@\" @/tmp/sources",
            "sh",
        ],
    ),
];

impl Tool {
    pub(crate) fn action(&self, kind: JobKind) -> Option<&Action> {
        match kind {
            JobKind::Run => None,
            JobKind::Test => self.test.as_ref(),
            JobKind::Build => self.build.as_ref(),
        }
    }
}

/// The tool of a name that does what is asked for.
pub(crate) fn by_name(name: &str, kind: JobKind) -> Result<&'static Tool, InvalidValue> {
    let fit = TOOLS.iter().filter(|tool| tool.action(kind).is_some());
    fit.clone().find(|tool| tool.name == name).ok_or_else(|| {
        let names: Vec<&str> = fit.map(|tool| tool.name).collect();
        let what = if kind == JobKind::Build { "build" } else { "test" };
        InvalidValue::new("runner.tool", name, format!("to {what}, it must be one of {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_lists_every_tool() {
        assert_eq!(TOOLS.each_ref().map(|tool| tool.name), cofferdam_api::TOOLS);
    }

    #[test]
    fn a_tool_that_cannot_do_what_is_asked_is_refused_with_those_that_can() {
        assert!(by_name("cargo", JobKind::Build).is_ok());
        let error = by_name("pytest", JobKind::Build).unwrap_err();
        assert_eq!(error.field, "runner.tool");
        assert!(error.fix.contains("cargo, go, tsc, make, cc, javac"), "{error}");
    }

    #[test]
    fn the_file_of_a_report_is_the_one_that_is_read() {
        for tool in &TOOLS {
            for action in [&tool.test, &tool.build].into_iter().flatten() {
                let words = action.argv.unwrap_or_default();
                let names_it = words.iter().any(|word| word.contains(REPORT_FILE));
                assert_eq!(names_it, action.place == Where::File, "{}", tool.name);
            }
        }
    }
}
