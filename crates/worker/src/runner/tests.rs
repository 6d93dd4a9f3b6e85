//! Which tool a project is given to, and with which words, on the fake backend.

use crate::output::Discard;
use crate::testing::FakeBackend;
use crate::{Cancellation, FileIn, JobError, JobSpec, Runner, Work, run};
use cofferdam_core::{GuestPath, JobId, JobKind};
use std::io::Cursor;

/// Runs the own command of whatever the files speak for, and returns its words.
async fn words(kind: JobKind, files: &[(&str, &str)], args: &[&str]) -> Result<String, JobError> {
    let backend = ["cargo", "go", "node", "python3", "prove", "make"]
        .into_iter()
        .fold(FakeBackend::new(), |backend, name| {
            backend.with_program(name, |_| async { cofferdam_backend::ExitStatus::Exited(0) })
        });
    let mut spec = JobSpec::new(JobId::from_random([0; 10]), Work::Tool);
    spec.args = args.iter().map(|arg| (*arg).to_owned()).collect();
    spec.files = files
        .iter()
        .map(|(path, content)| FileIn {
            path: GuestPath::parse_in_workspace("path", path).unwrap(),
            mode: 0o644,
            content: Box::new(Cursor::new(content.as_bytes().to_vec())),
        })
        .collect();
    spec.runner = Some(Box::new(Runner {
        kind,
        tool: None,
        project: None,
        report: None,
        expect: vec![],
        args: vec![],
    }));
    run(&backend, spec, &mut Discard, Cancellation::never()).await?;
    Ok(backend.started()[0].argv.join(" "))
}

#[tokio::test]
async fn a_project_is_given_to_the_tool_that_its_files_speak_for() {
    for (kind, files, expected) in [
        (
            JobKind::Test,
            &[("Cargo.toml", ""), ("package.json", "")][..],
            "cargo test --offline --color=never --no-fail-fast",
        ),
        (JobKind::Test, &[("go.mod", "")], "go test -json ./..."),
        (JobKind::Test, &[("package.json", "{\"jest\": {}}")], "node node_modules/jest/bin/jest.js --json"),
        (JobKind::Test, &[("package.json", "{}")], "node --test --test-reporter=tap"),
        (JobKind::Test, &[("t/a.t", "")], "prove -v"),
        (JobKind::Test, &[("test_a.py", ""), ("b.test.js", "")], "python3 -m unittest discover -v"),
        (JobKind::Test, &[("tests/test_a.py", "")], "python3 -m unittest discover -v -s tests"),
        (JobKind::Build, &[("Cargo.toml", "")], "cargo build --offline --message-format=json"),
        (
            JobKind::Build,
            &[("tsconfig.json", ""), ("a.c", "")],
            "node node_modules/typescript/bin/tsc -p . --pretty false",
        ),
        (JobKind::Build, &[("GNUmakefile", ""), ("a.c", "")], "make"),
    ] {
        assert_eq!(words(kind, files, &[]).await.unwrap(), expected);
        assert_eq!(words(kind, files, &["-x"]).await.unwrap(), format!("{expected} -x"));
    }
}

#[tokio::test]
async fn a_project_that_speaks_for_nothing_is_refused() {
    for (kind, files) in [
        (JobKind::Test, &[("main.c", "")][..]),
        (JobKind::Build, &[("test_a.py", "")]),
        (JobKind::Test, &[("deep/Cargo.toml", "")]),
        (JobKind::Test, &[("Cargo.toml/x", "")]),
    ] {
        let error = words(kind, files, &[]).await.unwrap_err();
        assert!(matches!(&error, JobError::Invalid(error) if error.field == "runner.tool"), "{error}");
    }
}
