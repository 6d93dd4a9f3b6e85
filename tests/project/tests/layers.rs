//! The layers hold, unsafe code is in one crate, and every other one forbids it.

use cofferdam_project_tests::layers::{Package, packages, violations};
use cofferdam_project_tests::{root, shown, sources};
use std::process::Command;

fn workspace() -> Vec<Package> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]).current_dir(root());
    let output = cargo.output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    packages(&serde_json::from_slice(&output.stdout).expect("cargo prints JSON"))
}

#[test]
fn crates_depend_only_on_layers_below() {
    let packages = workspace();
    assert!(packages.iter().any(|package| package.folder == "crates/core"), "{packages:?}");
    let found = violations(&packages);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_violation_is_seen() {
    let package = |folder: &str, needs: &[&str]| Package {
        name: folder.rsplit('/').next().unwrap_or(folder).to_owned(),
        folder: folder.to_owned(),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
    };
    let made_up = [
        package("crates/core", &["worker"]),
        package("crates/backend", &["core"]),
        package("crates/store", &["backend"]),
        package("crates/backends/native", &["backend", "core"]),
        package("crates/worker", &["native", "project"]),
        package("crates/cli", &["native", "worker"]),
        package("crates/misc", &[]),
        package("tests/project", &["native", "cli"]),
    ];
    let found = violations(&made_up);
    let expected = [
        "core (layer 0) depends on worker (layer 4)",
        "store (layer 1) depends on backend (layer 1)",
        "worker names the backend native; only the CLI may",
        "worker depends on project, which is for tests",
        "misc (crates/misc) has no layer: give it one",
    ];
    assert_eq!(found, expected);
}

/// Whether a line opens unsafe code, rather than speaking of it.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let mut words = code.split("unsafe ").skip(1);
    words.any(|rest| ["{", "fn", "impl", "extern", "trait"].iter().any(|next| rest.starts_with(next)))
}

#[test]
fn unsafe_code_is_in_one_crate() {
    let root = root();
    let ours = root.join("crates/linux");
    let mut inside = 0;
    let mut outside = Vec::new();
    for path in sources::files(&root, &[".rs"]) {
        let text = sources::text(&path).expect("Rust is text");
        for (i, line) in text.lines().enumerate().filter(|(_, line)| is_unsafe(line)) {
            if path.starts_with(&ours) {
                inside += 1;
            } else {
                outside.push(format!("{}:{}: {}", shown(&path), i + 1, line.trim()));
            }
        }
    }
    assert!(inside > 0, "none was found where it is known to be: the search is broken");
    assert!(outside.is_empty(), "unsafe code outside of crates/linux:\n{}", outside.join("\n"));
}

#[test]
fn every_crate_but_one_has_the_workspace_lints() {
    let workspace_manifest = sources::text(&root().join("Cargo.toml")).expect("a manifest is text");
    assert!(workspace_manifest.contains("unsafe_code = \"forbid\""), "the workspace allows unsafe code");
    for package in workspace().iter().filter(|package| !package.folder.starts_with("crates/linux")) {
        let manifest = sources::text(&root().join(&package.folder).join("Cargo.toml")).expect("text");
        let inherits = manifest.split("\n[").any(|section| {
            let mut lines = section.lines();
            lines.next() == Some("lints]") && lines.any(|line| line.trim() == "workspace = true")
        });
        assert!(inherits, "{}: add [lints] with workspace = true", package.folder);
    }
}
