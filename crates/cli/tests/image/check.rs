//! What `image check` says of images that lack something.

use crate::bed::Bed;
use serde_json::{Value, json};

fn rows(bed: &Bed, image: &str) -> (Option<i32>, Value) {
    let answer = bed.cofferdam(&["image", "check", image, "--json"]);
    (answer.code, serde_json::from_str(&answer.stdout).unwrap_or_else(|e| panic!("{e}: {answer:?}")))
}

fn state<'v>(answer: &'v Value, name: &str) -> &'v str {
    let rows = answer["checks"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {answer}"));
    row["state"].as_str().expect("a state")
}

#[test]
fn what_is_missing_is_named() {
    let bed = Bed::new();
    bed.ok(&["image", "import", &bed.busybox("root", &[("etc/motd", "")]), "--name", "small"]);
    let (code, answer) = rows(&bed, "small");
    assert_eq!((code, &answer["passed"]), (Some(1), &json!(false)));
    assert_eq!(state(&answer, "certificates"), "failed");
    for name in ["sh", "cat", "tar", "unzip", "writable /workspace", "exit codes", "stdout and stderr"] {
        assert_eq!(state(&answer, name), "ok", "{name}: {answer}");
    }
    let python = bed.cofferdam(&["image", "check", "small", "--profile", "python-tools"]);
    assert_eq!(python.code, Some(1), "{python:?}");
    let row = python.stdout.lines().find(|line| line.contains("pip")).expect("a row");
    assert!(row.starts_with("missing"), "{python:?}");
    assert!(python.stdout.lines().all(|line| line.chars().count() <= 100), "{python:?}");
}

#[test]
fn an_image_without_a_shell_has_nothing() {
    let bed = Bed::new();
    bed.ok(&["image", "import", &bed.tree("root", &[("data", "x")]), "--name", "data"]);
    let (code, answer) = rows(&bed, "data");
    assert_eq!(code, Some(1));
    assert_eq!((state(&answer, "sh"), state(&answer, "date")), ("missing", "missing"));
}

#[test]
fn credentials_fail_the_check_and_are_not_shown() {
    let bed = Bed::new();
    let root = bed.busybox("root", &[("root/.netrc", "machine a login b password hunter2\n")]);
    let upper = bed.tree("upper", &[("root/.wh..netrc", "")]);
    let process = json!({"Env": ["API_TOKEN=hunter2"]});
    bed.ok(&["image", "import", &bed.docker("image.tar", &[&root, &upper], &process), "--name", "leaky"]);
    let (code, answer) = rows(&bed, "leaky");
    assert_eq!(code, Some(1));
    let places: Vec<_> =
        answer["credentials"].as_array().expect("a list").iter().map(|found| &found["place"]).collect();
    assert_eq!(places, [&json!("environment"), &json!("/root/.netrc")]);
    assert!(!answer.to_string().contains("hunter2"));
}

/// What an image says of itself is its maker's word: it is shown on one line, and moves no cursor.
#[test]
fn an_image_is_shown_with_its_layers() {
    let bed = Bed::new();
    let layers = [bed.tree("lower", &[("a", "x")]), bed.tree("upper", &[("b", "yy")])];
    let process = json!({"Env": ["A=\u{1b}[2Jb"], "Cmd": ["run", "it"], "WorkingDir": "/srv", "User": "7"});
    let archive = bed.docker("image.tar", &[&layers[0], &layers[1]], &process);
    bed.ok(&["image", "import", &archive, "--name", "app:1"]);
    let shown = bed.ok(&["image", "show", "app:1"]);
    for part in ["app:1", "sha256:", "/srv", "run it", "LAYER", "ENTRIES", "DIGEST"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    assert!(!shown.contains('\u{1b}') && shown.contains("user         7"), "{shown:?}");
    assert_eq!(shown.lines().rev().take_while(|line| !line.starts_with("LAYER")).count(), 2, "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
}
