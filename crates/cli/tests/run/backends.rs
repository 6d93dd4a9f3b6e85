//! The same job on another wall.

use crate::support::{Answer, Folder, command, finish, program, run};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// A root folder of this machine's own programs, with the libraries of the program under test.
fn root() -> Folder {
    let folder = Folder::on_disk();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/container-root.sh");
    let made = Command::new(script).arg(&folder.0).arg(program()).status().expect("container-root.sh");
    assert!(made.success(), "{made}");
    folder
}

/// What is mounted for sandboxes of the oci backend by this test's runs.
fn left(root: &Folder) -> Vec<String> {
    let places = Path::new("/run/cofferdam/oci/places");
    let entries = std::fs::read_dir(places).into_iter().flatten().flatten();
    let of_root =
        entries.filter(|entry| std::fs::read_link(entry.path().join("image")).is_ok_and(|to| to == root.0));
    of_root.map(|entry| entry.path().display().to_string()).collect()
}

#[test]
fn a_job_in_a_container_of_a_runtime_is_the_same_job() {
    let root = root();
    let rootfs = root.0.to_str().expect("text");
    for runtime in ["runc", "runsc"] {
        let oci = |words: &[&str]| -> Answer {
            let all = ["--backend", "oci", "--runtime", runtime, "--rootfs", rootfs];
            run(&[&all[..], words].concat())
        };
        let answer = oci(&["--", "sh", "-c", "echo out; echo err >&2; id -u; pwd; exit 7"]);
        assert_eq!(
            (answer.code, answer.stdout.as_str()),
            (Some(7), "out\n1000\n/workspace\n"),
            "{runtime}: {answer:?}"
        );
        assert!(answer.stderr.contains("err\n"), "{runtime}: {answer:?}");
        assert_eq!(oci(&["-c", "print(6 * 7)"]).stdout, "42\n", "{runtime}");
        let answer = oci(&["--json", "--", "sh", "-c", "kill -TERM $$"]);
        assert_eq!(answer.json()["outcome"]["signal"], 15, "{runtime}: {answer:?}");
        assert_eq!(answer.json()["isolation"]["backend"], "oci", "{runtime}: {answer:?}");
        assert_eq!(oci(&["--timeout", "1s", "--", "sleep", "1000"]).code, Some(124), "{runtime}");
        assert_eq!(left(&root), [""; 0], "{runtime}");
    }
}

#[test]
fn input_files_and_artifacts_pass_through_a_container() {
    let (root, out) = (root(), Folder::new());
    let file = out.file("data", "one\n");
    let artifacts = out.path("artifacts");
    let mut command = command(&[
        "--backend",
        "oci",
        "--rootfs",
        root.0.to_str().expect("text"),
        "-i",
        "--file",
        &file,
        "--artifacts-out",
        &artifacts,
        "--",
        "sh",
        "-c",
        "cat data - > .artifacts/both",
    ]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("stdin").write_all(b"two\n").expect("a line");
    let answer = finish(child);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(std::fs::read_to_string(out.0.join("artifacts/both")).expect("an artifact"), "one\ntwo\n");
}

#[test]
fn what_is_missing_is_named_and_nothing_else_is_used() {
    let root = Folder::new();
    let rootfs = root.0.to_str().expect("text");
    let answer = run(&["--backend", "oci", "--runtime", "no-such-runtime", "--rootfs", rootfs, "--", "true"]);
    assert_eq!(answer.code, Some(125), "{answer:?}");
    assert!(answer.stderr.contains("no-such-runtime") && answer.stderr.contains("--runtime"), "{answer:?}");
    let answer = run(&["--backend", "docker", "--image", "a", "--socket", "/no/such/socket", "--", "true"]);
    assert_eq!(answer.code, Some(125), "{answer:?}");
    assert!(answer.stderr.contains("there is no socket at /no/such/socket"), "{answer:?}");
    assert!(answer.stderr.contains("--backend native"), "{answer:?}");
    let mut command = command(&["--backend", "docker", "--image", "a", "--", "true"]);
    let answer =
        finish(command.env("DOCKER_HOST", "unix:///from/the/environment").spawn().expect("it starts"));
    assert!(answer.stderr.contains("/from/the/environment"), "{answer:?}");
}
