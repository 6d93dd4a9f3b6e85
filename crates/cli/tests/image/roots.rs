//! Sandboxes whose root is an image.

use crate::bed::Bed;
use crate::support::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};

/// Three layers, of which the upper two delete and replace.
fn layered(bed: &Bed, process: &Value) -> String {
    let one = bed.busybox(
        "one",
        &[("etc/motd", "old\n"), ("srv/a", ""), ("srv/b", ""), ("opt/gone/x", ""), ("opt/kept", "")],
    );
    let two = bed.tree(
        "two",
        &[("etc/.wh.motd", ""), ("srv/.wh..wh..opq", ""), ("srv/c", "lower\n"), ("opt/.wh.gone", "")],
    );
    let three = bed.tree("three", &[("srv/c", "upper\n"), ("srv/d", "")]);
    bed.docker("image.tar", &[&one, &two, &three], process)
}

#[test]
fn layers_lie_on_each_other_and_what_was_deleted_is_gone() {
    let bed = Bed::new();
    bed.ok(&["image", "import", &layered(&bed, &json!({})), "--name", "app:1"]);
    let script = "ls /srv /opt; cat /srv/c; cat /etc/motd 2>/dev/null || echo no motd";
    for options in [&[][..], &["--writable-root"]] {
        let words = [&["run", "--image", "app:1"], options, &["--", "sh", "-c", script]].concat();
        assert_eq!(bed.ok(&words), "/opt:\nkept\n\n/srv:\nc\nd\nupper\nno motd\n", "{options:?}");
    }
}

#[test]
fn a_root_is_read_only_unless_asked_and_changes_are_the_jobs_own() {
    let bed = Bed::new();
    bed.ok(&["image", "import", &layered(&bed, &json!({})), "--name", "app"]);
    let change = "touch /srv/mine && ls /srv";
    let answer = bed.cofferdam(&["run", "--image", "app", "--", "sh", "-c", change]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("Read-only file system"), "{answer:?}");
    assert_eq!(
        bed.ok(&["run", "--image", "app", "--writable-root", "--", "sh", "-c", change]),
        "c\nd\nmine\n"
    );
    assert_eq!(bed.ok(&["run", "--image", "app", "--", "ls", "/srv"]), "c\nd\n");
}

#[test]
fn environment_and_workdir_are_the_images_unless_the_request_has_its_own() {
    let bed = Bed::new();
    let process = json!({"Env": ["A=image", "B=image", "CYNODE_JOB_ID=fake"], "WorkingDir": "/srv", "User": "0", "Entrypoint": ["/bin/false"]});
    bed.ok(&["image", "import", &layered(&bed, &process), "--name", "app"]);
    let script = "echo $A $B; pwd; echo $UID_; case $CYNODE_JOB_ID in job-*) echo ours;; esac; [ -w / ] || echo not root";
    let run = |options: &[&str]| {
        bed.ok(&[&["run", "--image", "app"], options, &["--", "sh", "-c", script]].concat())
    };
    assert_eq!(run(&[]), "image image\n/srv\n\nours\nnot root\n");
    assert_eq!(run(&["-e", "B=mine", "-w", "/workspace"]), "image mine\n/workspace\n\nours\nnot root\n");
}

#[test]
fn an_image_can_be_pinned_by_its_digest() {
    let bed = Bed::new();
    let root = bed.busybox("root", &[("etc/motd", "first\n")]);
    let first: Value =
        serde_json::from_str(&bed.ok(&["image", "import", &root, "--name", "app", "--json"])).expect("JSON");
    let id = first["id"].as_str().expect("an id").to_owned();
    let pinned = format!("app@{id}");
    assert_eq!(bed.ok(&["run", "--image", &pinned, "--", "cat", "/etc/motd"]), "first\n");
    bed.ok(&["image", "import", &bed.busybox("other", &[("etc/motd", "second\n")]), "--name", "app"]);
    assert_eq!(bed.ok(&["run", "--image", "app", "--", "cat", "/etc/motd"]), "second\n");
    let answer = bed.cofferdam(&["run", "--image", &pinned, "--", "cat", "/etc/motd"]);
    assert_eq!(answer.code, Some(125), "{answer:?}");
    assert!(answer.stderr.contains(&id), "{answer:?}");
}

#[test]
fn layers_of_a_running_sandbox_are_not_removed() {
    let bed = Bed::new();
    bed.ok(&["image", "import", &bed.busybox("root", &[("etc/motd", "there\n")]), "--name", "app"]);
    let script = "echo up; sleep 60 & wait; cat /etc/motd";
    let mut job =
        bed.command(&["run", "--image", "app", "--", "sh", "-c", script]).spawn().expect("it starts");
    let mut output = BufReader::new(job.stdout.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "up\n");
    let removed: Value = serde_json::from_str(&bed.ok(&["image", "rm", "app", "--json"])).expect("JSON");
    assert_eq!((&removed["layers"], &removed["layers_in_use"]), (&json!(0), &json!(1)));
    let layers = || std::fs::read_dir(bed.store().join("layers")).expect("a folder").count();
    assert_eq!(layers(), 1);
    kill_process(Pid::from_child(&job), Signal::TERM).expect("it runs");
    job.wait().expect("it ends");
    bed.ok(&["image", "import", &bed.tree("other", &[("a", "b")]), "--name", "other"]);
    wait_until("the layer is gone", || layers() == 1);
    assert_eq!(bed.ok(&["image", "list", "--json"]).matches("\"names\"").count(), 1);
}

#[test]
fn an_image_of_many_layers_runs() {
    let bed = Bed::new();
    let base = bed.busybox("base", &[("etc/motd", "0\n")]);
    let trees: Vec<String> = (1..127)
        .map(|i| bed.tree(&format!("l{i}"), &[("etc/motd", &format!("{i}\n")), (&format!("srv/f{i}"), "")]))
        .collect();
    let layers: Vec<&str> = std::iter::once(base.as_str()).chain(trees.iter().map(String::as_str)).collect();
    bed.ok(&["image", "import", &bed.docker("many.tar", &layers, &json!({})), "--name", "many"]);
    let listed = bed.ok(&["run", "--image", "many", "--", "sh", "-c", "cat /etc/motd; ls /srv"]);
    assert_eq!((listed.lines().next(), listed.lines().count()), (Some("126"), 127));
}

#[test]
fn what_is_wrong_is_one_line_with_the_fix() {
    let bed = Bed::new();
    let says = |words: &[&str], part: &str| {
        let answer = bed.cofferdam(words);
        assert_eq!((answer.code, answer.stderr.lines().count()), (Some(125), 1), "{answer:?}");
        assert!(answer.stderr.contains(part), "{answer:?}");
    };
    says(&["run", "--image", "absent", "--", "true"], "cofferdam image list");
    says(&["run", "--image", "../x", "--", "true"], "--image: \"../x\" is not valid");
    says(&["image", "import", "/no/such", "--name", "x"], "/no/such cannot be read");
    says(&["image", "import", "/etc", "--name", "host"], "built-in");
    says(&["image", "rm", "absent"], "there is no image");
    says(&["image", "check", "absent"], "there is no image");
    says(&["image", "build-profile", "cobol-tools"], "base-tools, python-tools");
    assert_eq!(bed.ok(&["run", "--image", "host", "--", "/bin/sh", "-c", "echo host"]), "host\n");
}
