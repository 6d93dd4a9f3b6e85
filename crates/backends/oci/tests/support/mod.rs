//! A root folder and a place of the tests' own.

// Each test takes what it needs.
#![allow(dead_code)]

use cofferdam_oci::{OciBackend, OciOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The helper of the tests; another one, such as a static build, may be named.
pub(crate) fn helper() -> PathBuf {
    std::env::var_os("COFFERDAM_GUEST")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_cofferdam-guest-for-oci-tests").into())
        .into()
}

/// A root folder of this machine's own programs. It is kept between runs, until there is another helper.
pub(crate) fn root() -> PathBuf {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let metadata = std::fs::metadata(helper()).expect("a helper");
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let done = place.join(format!("oci-root-{}-{}", metadata.len(), metadata.mtime()));
        if done.exists() {
            return done;
        }
        let older = std::fs::read_dir(place).expect("the folder of tests").flatten();
        for entry in older.filter(|entry| entry.file_name().to_string_lossy().starts_with("oci-root-")) {
            std::fs::remove_dir_all(entry.path()).expect("an older root to be removed");
        }
        let making = place.join(format!("oci-root-making-{}", std::process::id()));
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/container-root.sh");
        let made = Command::new(script).arg(&making).arg(helper()).status().expect("container-root.sh");
        assert!(made.success(), "{made}");
        std::fs::rename(&making, &done).expect("a name for the root");
        done
    };
    ROOT.get_or_init(make).clone()
}

pub(crate) fn options(runtime: &str) -> OciOptions {
    OciOptions {
        runtime: runtime.to_owned(),
        rootfs: Some(root()),
        helper: helper(),
        runtime_folder: PathBuf::from("/run/cofferdam-oci-tests"),
    }
}

pub(crate) fn backend(runtime: &str) -> OciBackend {
    OciBackend::new(options(runtime)).expect("a backend")
}

/// That the table of `docs/backends.md` under a heading is this one.
pub(crate) fn assert_documented(heading: &str, differs: &[(&str, &str)]) {
    let page = include_str!("../../../../../docs/backends.md");
    let section = page.split(&format!("\n### {heading}\n")).nth(1).expect("a section of the page");
    let section = section.split("\n#").next().unwrap_or_default();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = differs.iter().map(|(case, why)| format!("| `{case}` | {why} |")).collect();
    assert_eq!(rows, expected, "docs/backends.md, {heading}");
}
