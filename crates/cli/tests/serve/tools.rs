//! Tests and builds by the tools that have to be installed: Debian's go and cargo, and jest from npm.

use crate::artifacts::run;
use crate::client::Client;
use crate::runners::{cli, file, report, server, sums, write};
use crate::server::{Folder, Server};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

/// Each test that is listed, by its name, with its status and its file.
fn tests(job: &Value) -> Vec<[&str; 3]> {
    let list = report(job)["tests"].as_array().expect("tests");
    let mut tests: Vec<_> = list
        .iter()
        .map(|test| ["name", "status", "file"].map(|field| test[field].as_str().unwrap_or("-")))
        .collect();
    tests.sort_unstable();
    tests
}

fn message<'j>(job: &'j Value, name: &str) -> &'j str {
    let list = report(job)["tests"].as_array().expect("tests");
    let test = list.iter().find(|test| test["name"] == name).unwrap_or_else(|| panic!("{name}: {job}"));
    test["message"].as_str().unwrap_or("-")
}

/// What a compiler said first: the file, the line and the message.
fn said(job: &Value) -> (&str, u64, &str) {
    let first = &report(job)["diagnostics"][0];
    let text = |field: &str| first[field].as_str().unwrap_or("-");
    (text("file"), first["line"].as_u64().unwrap_or(0), text("message"))
}

fn go(files: &[(&str, &str)]) -> Value {
    let mut all = vec![file("go.mod", "module example.com/m\n\ngo 1.19\n")];
    all.extend(files.iter().map(|(path, content)| file(path, content)));
    json!({"kind": "test", "files": all})
}

#[test]
fn go_reports_what_passes_fails_is_skipped_and_does_not_end() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    let double = ("double.go", "package m\n\nfunc Double(n int) int { return 2 * n }\n");
    let passes = "package m\n\nimport \"testing\"\n\nfunc TestDoubles(t *testing.T) {\n\tif Double(21) != 42 {\n\t\tt.Fatal(\"not 42\")\n\t}\n}\n";
    let job = run(&client, &go(&[double, ("double_test.go", passes)]));
    assert_eq!(sums(&job), ["succeeded", "passed", "complete"], "{job}");
    assert_eq!((&report(&job)["tool"], &report(&job)["detected_by"]), (&json!("go"), &json!("go.mod")));
    assert_eq!(tests(&job), [["example.com/m.TestDoubles", "passed", "-"]]);

    let fails = "package m\n\nimport \"testing\"\n\nfunc TestDiffers(t *testing.T) { t.Errorf(\"%d is not 3\", Double(1)) }\nfunc TestLater(t *testing.T)   { t.Skip(\"not today\") }\n";
    // Each ends its process with a success, or without a word.
    let exits = "package dies\n\nimport (\n\t\"syscall\"\n\t\"testing\"\n)\n\nfunc TestExits(t *testing.T) { syscall.Exit(0) }\nfunc TestAfter(t *testing.T) {}\n";
    let killed = "package dies\n\nimport (\n\t\"os\"\n\t\"syscall\"\n\t\"testing\"\n)\n\nfunc TestBefore(t *testing.T) {}\nfunc TestKilled(t *testing.T) { syscall.Kill(os.Getpid(), 9) }\n";
    let panics = "package dies\n\nimport \"testing\"\n\nfunc TestPanics(t *testing.T) { panic(\"why\") }\n";
    let missing = "package unbuilt\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { missing() }\n";
    let lacks = "package lacks\n\nimport (\n\t_ \"example.com/nowhere\"\n\t\"testing\"\n)\n\nfunc TestX(t *testing.T) {}\n";
    let job = run(
        &client,
        &go(&[
            double,
            ("double_test.go", passes),
            ("more_test.go", fails),
            ("exits/e_test.go", exits),
            ("killed/k_test.go", killed),
            ("panics/p_test.go", panics),
            ("unbuilt/u_test.go", missing),
            ("lacks/l_test.go", lacks),
        ]),
    );
    assert_eq!(sums(&job), ["failed", "failed", "complete"], "{job}");
    let expected = [
        ["example.com/m.TestDiffers", "failed", "more_test.go"],
        ["example.com/m.TestDoubles", "passed", "-"],
        ["example.com/m.TestLater", "skipped", "more_test.go"],
        ["example.com/m/exits.TestExits", "errored", "-"],
        ["example.com/m/killed.TestBefore", "passed", "-"],
        ["example.com/m/killed.TestKilled", "errored", "-"],
        ["example.com/m/lacks", "errored", "-"],
        ["example.com/m/panics.TestPanics", "failed", "panics/p_test.go"],
        ["example.com/m/unbuilt", "errored", "-"],
    ];
    assert_eq!(tests(&job), expected, "{job}");
    assert_eq!(message(&job, "example.com/m.TestDiffers"), "more_test.go:5: 2 is not 3");
    assert_eq!(message(&job, "example.com/m/exits.TestExits"), "it did not come to an end");
    let diagnostics = report(&job)["diagnostics"].to_string();
    assert!(
        diagnostics.contains("undefined: missing") && diagnostics.contains("example.com/nowhere"),
        "{job}"
    );

    let mut build = go(&[("main.go", "package main\n\nfunc main() { missing() }\n")]);
    build["kind"] = json!("build");
    let job = run(&client, &build);
    assert_eq!(sums(&job), ["failed", "failed", "complete"], "{job}");
    assert_eq!(said(&job), ("./main.go", 3, "undefined: missing"));
}

/// A workspace of two crates.
fn cargo(kind: &str, a: &str, b: &str) -> Value {
    let manifest = |name: &str| {
        let text = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
        file(&format!("{name}/Cargo.toml"), &text)
    };
    let workspace = file("Cargo.toml", "[workspace]\nmembers = [\"a\", \"b\"]\n");
    json!({"kind": kind,
           "files": [workspace, manifest("a"), manifest("b"), file("a/src/lib.rs", a), file("b/src/lib.rs", b)]})
}

#[test]
fn cargo_reports_what_passes_fails_is_ignored_and_does_not_end() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    let documented =
        "/// ```\n/// assert_eq!(a::double(2), 4);\n/// ```\npub fn double(n: u32) -> u32 { 2 * n }\n";
    let passes = "#[test]\nfn passes() {}\n";
    let job = run(&client, &cargo("test", documented, passes));
    assert_eq!(sums(&job), ["succeeded", "passed", "complete"], "{job}");
    assert_eq!(
        (&report(&job)["tool"], &report(&job)["detected_by"]),
        (&json!("cargo"), &json!("Cargo.toml"))
    );
    let example = ["src/lib.rs - double (line 1)", "passed", "src/lib.rs"];
    assert_eq!(tests(&job), [["passes", "passed", "-"], example], "{job}");

    let mixed = format!(
        "{documented}\n#[test]\nfn differs() {{ assert_eq!(double(1), 3, \"they differ\") }}\n\
         #[test]\n#[ignore = \"not today\"]\nfn later() {{}}\n"
    );
    let job = run(&client, &cargo("test", &mixed, passes));
    assert_eq!(sums(&job), ["failed", "failed", "complete"], "{job}");
    // What comes after the binary that failed has run, too.
    let expected = [
        ["differs", "failed", "a/src/lib.rs"],
        ["later", "skipped", "-"],
        ["passes", "passed", "-"],
        example,
    ];
    assert_eq!(tests(&job), expected, "{job}");
    assert!(message(&job, "differs").contains("they differ"), "{job}");
    assert_eq!(message(&job, "later"), "not today");

    // A binary ends with a success in the middle of its tests, and so does cargo. Which of them it was is known only
    // where they run one after the other.
    let dies = "#[test]\nfn dies() { std::process::exit(0) }\n#[test]\nfn ends() {}\n";
    let mut dying = cargo("test", passes, dies);
    let job = run(&client, &dying);
    assert_eq!(
        (&sums(&job)[0], &report(&job)["state"]),
        (&"failed".to_owned(), &json!("truncated")),
        "{job}"
    );
    assert_eq!(
        (&job["result"]["exit_code"], &job["status"]["reason"]),
        (&json!(0), &json!("report")),
        "{job}"
    );
    dying["args"] = json!(["--", "--test-threads=1"]);
    let job = run(&client, &dying);
    assert_eq!(sums(&job), ["failed", "failed", "truncated"], "{job}");
    assert_eq!(tests(&job), [["dies", "errored", "-"], ["passes", "passed", "-"]], "{job}");

    let broken = "pub fn one() -> u32 { missing() }\n";
    let message = "cannot find function `missing` in this scope";
    for kind in ["test", "build"] {
        let job = run(&client, &cargo(kind, broken, passes));
        assert_eq!(sums(&job)[..2], ["failed", "failed"], "{job}");
        assert_eq!(said(&job), ("a/src/lib.rs", 1, message), "{job}");
    }
}

/// A project that has brought its jest along, as one has to where there is no network.
fn with_jest(name: &str, tests: &[(&str, &str)]) -> Folder {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = Command::new(root.join("scripts/jest.sh")).stderr(Stdio::inherit()).output();
    let found = found.expect("scripts/jest.sh starts");
    assert!(found.status.success(), "there is no jest to test with: scripts/jest.sh failed");
    let from = Path::new(String::from_utf8_lossy(&found.stdout).trim()).join("node_modules");
    let project = Folder::new(name);
    let copied = Command::new("cp").arg("-a").arg(from).arg(project.path()).status().expect("cp");
    assert!(copied.success());
    write(project.path(), "package.json", r#"{"devDependencies": {"jest": "*"}}"#);
    tests.iter().for_each(|(name, content)| write(project.path(), name, content));
    project
}

fn job_test(server: &Server, project: &Folder) -> (Option<i32>, Value) {
    let output = cli(server, &["job", "test", &project.path().to_string_lossy(), "--json"]);
    let job = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code(), job)
}

#[test]
fn jest_reports_what_passes_fails_is_skipped_and_does_not_end() {
    let (_folder, server) = server();
    let mixed = "test('adds', () => expect(1 + 1).toBe(2));\ndescribe('group', () => {\n  \
                 test('differs', () => expect(1).toBe(2));\n  test.skip('later', () => {});\n  test.todo('someday');\n});\n";
    let project =
        with_jest("jest", &[("sums.test.js", mixed), ("broken.test.js", "this is not javascript\n")]);
    let (code, job) = job_test(&server, &project);
    assert_eq!((code, sums(&job)), (Some(1), ["failed", "failed", "complete"].map(str::to_owned)), "{job}");
    assert_eq!(
        (&report(&job)["tool"], &report(&job)["detected_by"]),
        (&json!("jest"), &json!("package.json"))
    );
    let expected = [
        ["/workspace/broken.test.js", "errored", "broken.test.js"],
        ["adds", "passed", "sums.test.js"],
        ["group differs", "failed", "sums.test.js"],
        ["group later", "skipped", "sums.test.js"],
        ["group someday", "skipped", "sums.test.js"],
    ];
    assert_eq!(tests(&job), expected, "{job}");
    assert!(message(&job, "group differs").contains("Expected: 2"), "{job}");

    // It prints its report at its end, which does not come.
    write(
        project.path(),
        "sums.test.js",
        "test('before', () => {});\ntest('dies', () => process.exit(0));\n",
    );
    std::fs::remove_file(project.path().join("broken.test.js")).expect("it is removed");
    let (code, job) = job_test(&server, &project);
    assert_eq!((code, sums(&job)), (Some(1), ["failed", "unknown", "missing"].map(str::to_owned)), "{job}");
    assert_eq!(job["result"]["exit_code"], 0, "{job}");

    write(project.path(), "sums.test.js", "test('adds', () => {});\n");
    let (code, job) = job_test(&server, &project);
    assert_eq!(
        (code, sums(&job)),
        (Some(0), ["succeeded", "passed", "complete"].map(str::to_owned)),
        "{job}"
    );
}
