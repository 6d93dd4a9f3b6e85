//! Tests and builds with real tools in the sandbox: make and gcc, prove, sh, Python's unittest, pytest and node.

use crate::artifacts::{run, text};
use crate::client::Client;
use crate::server::{Folder, Server, program};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

pub(crate) fn server() -> (Folder, Server) {
    let folder = Folder::new("runners");
    let server = Server::start(folder.path(), &[]);
    (folder, server)
}

pub(crate) fn report(job: &Value) -> &Value {
    let report = &job["result"]["report"];
    assert!(report.is_object(), "no report: {job}");
    report
}

/// What a job and its report come to: the state, the verdict, and how whole the report is.
pub(crate) fn sums(job: &Value) -> [String; 3] {
    [&job["status"]["state"], &report(job)["verdict"], &report(job)["state"]].map(text)
}

pub(crate) fn file(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

/// Makes a project of C with a warning, a Makefile that packs what it built, and tests of that in Perl.
const GENERATE: &str = r##"
import os, tarfile
files = {
    "Makefile": "all:\n\tgcc -Wall -o double double.c\n\t./double 21 > answer.txt\n"
                "\ttar -cf .artifacts/built.tar double answer.txt t\n",
    "double.c": "#include <stdio.h>\n#include <stdlib.h>\n"
                "int main(int n, char **v) { int unused; return printf(\"%d\\n\", 2 * atoi(v[1])) < 0; }\n",
    "t/double.t": "use Test::More tests => 2;\nis(`./double 2`, \"4\\n\", 'doubles');\n"
                  "is(`cat answer.txt`, \"42\\n\", 'the answer');\n",
}
for name, text in files.items():
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    open(name, "w").write(text)
with tarfile.open(".artifacts/project.tar.gz", "w:gz") as archive:
    for name in files: archive.add(name)
"##;

#[test]
fn one_job_generates_the_next_builds_and_the_third_tests() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    let made = run(&client, &json!({"language": "python", "code": GENERATE}));
    assert_eq!(made["status"]["state"], "succeeded", "{made}");
    let project = text(&made["result"]["artifacts"][0]["id"]);

    let golden = json!([file("answer.txt", "42\n")]);
    let build = json!({"kind": "build", "runner": {"project": project}, "expect": golden});
    let built = run(&client, &build);
    assert_eq!(sums(&built), ["succeeded", "passed", "complete"], "{built}");
    let told = report(&built);
    assert_eq!((&told["tool"], &told["detected_by"]), (&json!("make"), &json!("Makefile")));
    let said = &told["diagnostics"][0];
    assert_eq!(
        (&said["severity"], &said["file"], &said["line"]),
        (&json!("warning"), &json!("double.c"), &json!(3))
    );
    assert_eq!(
        told["expected"],
        json!([{"path": "answer.txt", "state": "same", "diff": null, "diff_truncated": false}])
    );

    let built = text(&built["result"]["artifacts"][0]["id"]);
    let tested = run(&client, &json!({"kind": "test", "runner": {"project": built}}));
    assert_eq!(sums(&tested), ["succeeded", "passed", "complete"], "{tested}");
    let told = report(&tested);
    assert_eq!((&told["tool"], &told["detected_by"]), (&json!("tap"), &json!("t/double.t")), "{told}");
    assert_eq!(told["counts"], json!({"total": 2, "passed": 2, "failed": 0, "skipped": 0, "errored": 0}));

    // The same, held against another answer: the tool ends well, and the job has not.
    let other = json!([file("answer.txt", "41\n"), file("nothing.txt", "")]);
    let differs = run(&client, &json!({"kind": "test", "runner": {"project": built}, "expect": other}));
    assert_eq!(sums(&differs), ["failed", "failed", "complete"], "{differs}");
    assert_eq!(
        (&differs["result"]["exit_code"], &differs["status"]["reason"]),
        (&json!(0), &json!("report"))
    );
    let compared = &report(&differs)["expected"];
    let diff = "--- expected/answer.txt\n+++ found/answer.txt\n@@ -1,1 +1,1 @@\n-41\n+42\n";
    assert_eq!(
        (&compared[0]["state"], &compared[0]["diff"]),
        (&json!("differs"), &json!(diff)),
        "{compared}"
    );
    assert_eq!(compared[1]["state"], "missing");
    // A receipt can be had of it.
    let receipt = client.get(&format!("/v1/jobs/{}/receipt", text(&differs["id"])));
    assert_eq!(receipt.status, 200, "{receipt:?}");
}

#[test]
fn real_tools_report_what_passes_fails_and_does_not_end() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    let unit = "import unittest\nclass T(unittest.TestCase):\n    def test_ok(self): pass\n    \
                def test_bad(self): self.assertEqual(1, 2)\n";
    let job = run(&client, &json!({"kind": "test", "files": [file("test_x.py", unit)]}));
    assert_eq!(sums(&job), ["failed", "failed", "complete"], "{job}");
    assert_eq!(report(&job)["tool"], "unittest");
    assert_eq!(
        (&report(&job)["counts"]["passed"], &report(&job)["counts"]["failed"]),
        (&json!(1), &json!(1))
    );

    let node = "const test = require('node:test');\ntest('adds', () => {});\ntest('throws', () => { throw new Error('why'); });\n";
    let job = run(&client, &json!({"kind": "test", "files": [file("a.test.js", node)]}));
    assert_eq!(sums(&job), ["failed", "failed", "complete"], "{job}");
    assert_eq!(report(&job)["tool"], "node");
    let failed =
        report(&job)["tests"].as_array().expect("tests").iter().find(|test| test["status"] == "failed");
    assert_eq!(failed.expect("a failure")["message"], "why", "{job}");

    // gcc's errors, by its own command.
    let c = "int main(void) { return missing; }\n";
    let job = run(&client, &json!({"kind": "build", "command": "gcc *.c", "files": [file("a.c", c)]}));
    assert_eq!(sums(&job), ["failed", "failed", "complete"], "{job}");
    let said = &report(&job)["diagnostics"][0];
    assert_eq!(
        (&said["file"], &said["line"], &said["column"]),
        (&json!("a.c"), &json!(1), &json!(25)),
        "{job}"
    );

    // Dies in the middle; no end of the report, and no success.
    let dies = "import os, unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): os._exit(0)\n";
    let job = run(&client, &json!({"kind": "test", "files": [file("test_x.py", dies)]}));
    assert_eq!(sums(&job), ["failed", "unknown", "truncated"], "{job}");
    assert_eq!(job["result"]["exit_code"], 0);
}

/// With a folder that is told from one of unittest by its `conftest.py`.
#[test]
fn pytest_reports_what_passes_fails_is_skipped_and_does_not_end() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    let run_it = |code: &str| {
        run(&client, &json!({"kind": "test", "files": [file("conftest.py", ""), file("test_x.py", code)]}))
    };
    let passes = run_it("def test_ok(): assert True\n");
    assert_eq!(sums(&passes), ["succeeded", "passed", "complete"], "{passes}");
    let told = report(&passes);
    assert_eq!((&told["tool"], &told["detected_by"]), (&json!("pytest"), &json!("conftest.py")));

    let mixed = "import pytest\ndef test_ok(): pass\ndef test_bad(): assert 1 == 2, 'they <differ> & more'\n\
                 @pytest.mark.skip(reason='not today')\ndef test_later(): pass\n\
                 @pytest.fixture\ndef broken(): raise RuntimeError('no fixture')\ndef test_errored(broken): pass\n";
    let job = run_it(mixed);
    assert_eq!(sums(&job), ["failed", "failed", "complete"], "{job}");
    let counts = json!({"total": 4, "passed": 1, "failed": 1, "skipped": 1, "errored": 1});
    assert_eq!(report(&job)["counts"], counts, "{job}");
    let bad = report(&job)["tests"].as_array().expect("tests").iter().find(|test| test["status"] == "failed");
    assert!(bad.expect("a failure")["message"].to_string().contains("they <differ> & more"), "{job}");

    // It writes its report at its end, which does not come; that it exits with 0 is no success.
    let dies = run_it("import os\ndef test_before(): pass\ndef test_dies(): os._exit(0)\n");
    assert_eq!(sums(&dies), ["failed", "unknown", "missing"], "{dies}");
    // One that the tests themselves have written is not believed beside an exit code that says otherwise.
    let forged = run_it(
        "import os\ndef test_forges():\n    \
         open('/tmp/cofferdam-report.xml', 'w').write('<testsuite><testcase name=\"a\"/></testsuite>')\n    os._exit(3)\n",
    );
    assert_eq!(sums(&forged)[..2], ["failed", "failed"], "{forged}");
    let empty = run_it("x = 1\n");
    assert_eq!(sums(&empty)[..2], ["failed", "failed"], "{empty}");
}

/// Exit code and report that do not agree, reports that are missing, old, or no reports at all.
#[test]
fn no_report_is_taken_for_a_better_one() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    let old = r#"<testsuite tests="1"><testcase name="old"/></testsuite>"#;
    let tap = |command: &str| json!({"kind": "test", "runner": {"tool": "tap"}, "command": command});
    let junit = |command: &str| {
        json!({"kind": "test", "runner": {"tool": "junit", "report": "out.xml"}, "command": command,
               "files": [file("out.xml", old)]})
    };
    for (body, expected, note) in [
        (
            tap("echo 1..1; echo not ok 1; exit 0"),
            ["failed", "failed", "complete"],
            "although its report has 1 failures",
        ),
        (
            tap("echo 1..1; echo ok 1; exit 3"),
            ["failed", "failed", "complete"],
            "although its report has no failure",
        ),
        (tap("echo 1..2; echo ok 1"), ["failed", "unknown", "truncated"], "is not known"),
        (tap("true"), ["failed", "unknown", "missing"], "is not known"),
        (tap("echo 1..0"), ["failed", "unknown", "complete"], "no test has run"),
        (tap("echo 1..1; echo ok 1"), ["succeeded", "passed", "complete"], ""),
        // What was there before the run says nothing of it.
        (junit("true"), ["failed", "unknown", "missing"], "is not known"),
        (junit("ln -s /etc/passwd out.xml"), ["failed", "unknown", "missing"], "is not known"),
        (junit("mkfifo out.xml"), ["failed", "unknown", "missing"], "is not known"),
        (junit("echo '<a/>' > out.xml"), ["failed", "unknown", "broken"], "is not known"),
        (
            junit("echo '<testsuite><testcase name=\"new\"/></testsuite>' > out.xml"),
            ["succeeded", "passed", "complete"],
            "",
        ),
    ] {
        let job = run(&client, &body);
        assert_eq!(sums(&job), expected, "{body}: {job}");
        let notes = report(&job)["notes"].to_string();
        assert!(notes.contains(note) && (note.is_empty() == (notes == "[]")), "{body}: {notes}");
    }
    let late = json!({"kind": "test", "runner": {"tool": "tap"}, "timeout_ms": 500, "command": "echo 1..1; echo ok 1; sleep 60"});
    let job = run(&client, &late);
    assert_eq!(sums(&job), ["timed_out", "unknown", "complete"], "{job}");
    // Files alone can be expected of any job.
    let plain = run(&client, &json!({"command": "printf a > x", "expect": [file("x", "b")]}));
    assert_eq!(
        (&plain["status"]["state"], &report(&plain)["verdict"]),
        (&json!("failed"), &json!("failed")),
        "{plain}"
    );
}

#[test]
fn what_is_wrong_with_a_request_is_named() {
    let (_folder, server) = server();
    let client = Client::of(&server);
    for (body, field) in [
        (json!({"kind": "test"}), "runner.project"),
        (json!({"kind": "test", "language": "python", "code": "1"}), "code"),
        (json!({"command": "true", "runner": {"tool": "tap"}}), "runner"),
        (json!({"kind": "build", "command": "true", "runner": {"tool": "pytest"}}), "runner.tool"),
        (json!({"kind": "test", "files": [file("a", "")], "runner": {"tool": "junit"}}), "command"),
        (json!({"kind": "test", "command": "true", "runner": {"report": "/etc/passwd"}}), "runner.report"),
        (json!({"kind": "test", "runner": {"project": "art-aaaaaaaaaaaaaaaa"}}), "runner.project"),
        (json!({"command": "true", "expect": [{"path": "/etc/x", "content": ""}]}), "expect[0].path"),
        (
            json!({"command": "true", "expect": [{"path": "x", "artifact": "art-aaaaaaaaaaaaaaaa"}]}),
            "expect[0].artifact",
        ),
    ] {
        let answer = client.post("/v1/jobs", &body.to_string());
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status, error["details"]["field"].as_str()),
            (422, Some(field)),
            "{body}: {error}"
        );
    }
    // What only the project itself tells is found out later.
    let job = run(&client, &json!({"kind": "test", "files": [file("readme", "")]}));
    assert_eq!(
        (&job["status"]["state"], &job["status"]["reason"]),
        (&json!("errored"), &json!("invalid")),
        "{job}"
    );
    let message = text(&job["status"]["message"]);
    assert!(message.contains("which tool it is for"), "{message}");
}

pub(crate) fn cli(server: &Server, words: &[&str]) -> Output {
    let url = format!("http://{}", server.address);
    let mut command = Command::new(program());
    command
        .args(words)
        .args(["--url", &url])
        .env("COFFERDAM_API_KEY", &server.key)
        .env_remove("COFFERDAM_URL");
    command.output().expect("the program")
}

pub(crate) fn write(folder: &Path, name: &str, content: &str) {
    std::fs::write(folder.join(name), content).expect("a file");
}

#[test]
fn a_folder_is_tested_and_built_by_the_command_line() {
    let (_folder, server) = server();
    let project = Folder::new("project");
    let dir = project.path().to_string_lossy().into_owned();
    let test = "const test = require('node:test');\ntest('adds', () => {});\n";
    write(project.path(), "a.test.js", test);
    let passed = cli(&server, &["job", "test", &dir]);
    let shown = String::from_utf8_lossy(&passed.stdout).into_owned();
    assert_eq!(passed.status.code(), Some(0), "{passed:?}");
    assert!(shown.contains("passed  node, by a.test.js\n1 passed, 0 failed"), "{shown}");

    write(project.path(), "b.test.js", &test.replace("() => {}", "() => { throw new Error('why not'); }"));
    let failed = cli(&server, &["job", "test", &dir]);
    let shown = String::from_utf8_lossy(&failed.stdout).into_owned();
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let row = shown.lines().find(|line| line.starts_with("failed")).unwrap_or_else(|| panic!("{shown}"));
    assert!(row.contains("adds") && row.contains("why not"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");

    let json = cli(&server, &["job", "test", &dir, "--json"]);
    let job: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((json.status.code(), &report(&job)["counts"]["failed"]), (Some(1), &json!(1)));

    write(project.path(), "a.c", "int main(void) { return 0; }\n");
    write(project.path(), "golden", "x\n");
    let expect = format!("out={dir}/golden");
    let words = [
        "job",
        "build",
        &dir,
        "--expect",
        &expect,
        "--tool",
        "cc",
        "--json",
        "--",
        "sh",
        "-c",
        "gcc a.c; echo x > out",
    ];
    // Options of the service come before the command.
    let url = format!("http://{}", server.address);
    let built = Command::new(program())
        .args(&words[..7])
        .args(["--url", &url])
        .args(&words[7..])
        .env("COFFERDAM_API_KEY", &server.key)
        .output()
        .expect("the program");
    assert_eq!(built.status.code(), Some(0), "{built:?}");
    let job: Value = serde_json::from_slice(&built.stdout).expect("JSON");
    assert_eq!(report(&job)["expected"][0]["state"], "same", "{job}");

    // What was uploaded for them is gone again.
    let left = Client::of(&server).get("/v1/artifacts").json();
    assert_eq!(left["artifacts"].as_array().map(Vec::len), Some(0), "{left}");
    let nothing = cli(&server, &["job", "test", "/nowhere"]);
    assert_eq!(nothing.status.code(), Some(125), "{nothing:?}");
    let empty = Folder::new("empty");
    let unknown = cli(&server, &["job", "test", &empty.path().to_string_lossy()]);
    assert_eq!(unknown.status.code(), Some(125), "{unknown:?}");
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("which tool it is for"), "{unknown:?}");
}
