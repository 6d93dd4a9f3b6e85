//! The images of the profiles, made from Debian's packages: each passes its own check. Takes a mirror, and minutes.

use crate::bed::Bed;
use serde_json::Value;

fn builds(profile: &str, command: &[&str], expected: &str) {
    let bed = Bed::new();
    let output = bed.command(&["image", "build-profile", profile]).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // A compiler and a virtual environment take their time on a busy machine.
    let output = bed
        .command(&["image", "check", profile, "--profile", profile, "--json"])
        .output()
        .expect("it starts");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(output.status.success() && answer["passed"] == true, "{answer}");
    assert_eq!(bed.ok(&[&["run", "--image", profile, "--"], command].concat()), expected);
    // Nothing of the making is left.
    assert_eq!(std::fs::read_dir(bed.store().join("staging")).expect("a folder").count(), 0);
}

#[test]
fn base_tools() {
    builds("base-tools", &["sh", "-c", "ls -d /usr/bin/unzip"], "/usr/bin/unzip\n");
}

#[test]
fn python_tools() {
    builds("python-tools", &["python3", "-c", "print(6 * 7)"], "42\n");
}
