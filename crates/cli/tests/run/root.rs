//! A root that the job may change: for itself, within its limits, and for nobody else.

use crate::support::leftovers::wait_until_no_disk;
use crate::support::{Folder, run};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn row<'r>(result: &'r Value, control: &str) -> (&'r str, &'r str) {
    let rows = result["isolation"]["controls"].as_array().expect("a list");
    let row = rows.iter().find(|row| row["control"] == control).expect("a row");
    (row["state"].as_str().expect("text"), row["note"].as_str().expect("text"))
}

#[test]
fn changes_of_the_root_are_the_jobs_own() {
    let hosts = fs::read("/etc/hosts").expect("the host's file");
    let script =
        "touch /usr/local/cofferdam-test && echo 127.0.0.9 added >> /etc/hosts && tail -n 1 /etc/hosts
        mkdir -p /usr/lib/cofferdam-test /cofferdam-test && rm /usr/bin/env && ls /usr/bin/env || echo gone";
    let answer = run(&["--writable-root", "--", "sh", "-c", script]);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "127.0.0.9 added\ngone\n"), "{answer:?}");
    for path in ["/usr/local/cofferdam-test", "/usr/lib/cofferdam-test", "/cofferdam-test"] {
        assert!(!Path::new(path).exists(), "{path}");
    }
    assert!(Path::new("/usr/bin/env").exists());
    assert_eq!(fs::read("/etc/hosts").expect("the host's file"), hosts);
    for options in [&["--writable-root"][..], &[]] {
        let script = "ls /usr/bin/env /usr/local/cofferdam-test /cofferdam-test; grep -c added /etc/hosts";
        let answer = run(&[options, &["--", "sh", "-c", script]].concat());
        assert_eq!(answer.stdout, "/usr/bin/env\n0\n", "{answer:?}");
    }
}

#[test]
fn what_is_written_to_the_root_is_limited() {
    let script =
        "dd if=/dev/zero of=/usr/local/big bs=4k count=5000; stat -c %s /usr/local/big; /bin/echo next";
    let result = run(&["--json", "--disk", "8m", "--writable-root", "--", "sh", "-c", script]).json();
    let written: u64 =
        result["stdout"].as_str().expect("text").lines().next().expect("a line").parse().expect("bytes");
    assert!(written > 7 << 20 && written <= 8 << 20, "{result}");
    assert!(result["stderr"].as_str().expect("text").contains("No space left on device"), "{result}");
    assert_eq!(result["limits_hit"][0]["limit"], "disk", "{result}");
    assert_eq!(row(&result, "read_only_root"), ("absent", "a writable root was asked for"));
    assert_eq!(row(&result, "private_root").0, "enforced");
}

#[test]
fn a_writable_root_may_lie_on_disk() {
    let root = Folder::on_disk();
    let script = "dd if=/dev/zero of=/usr/local/big bs=1M count=200 && rm /usr/bin/env && stat -f -c %T /usr";
    let options = ["--memory", "64m", "--disk", "512m", "--workspace-root", &root.path("")];
    let answer = run(&[&options[..], &["--writable-root", "--", "sh", "-c", script]].concat());
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "overlayfs\n"), "{answer:?}");
    wait_until_no_disk(&root.0);
}

#[test]
fn files_can_be_put_anywhere_in_a_writable_root() {
    let folder = Folder::new();
    let file = folder.file("in", "given\n");
    let words = ["--file", &format!("{file}:/usr/local/share/in"), "--workdir", "/srv/made"];
    let script = "cat /usr/local/share/in; pwd; touch here";
    let answer = run(&[&["--writable-root"], &words[..], &["--", "sh", "-c", script]].concat());
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "given\n/srv/made\n"), "{answer:?}");
}
