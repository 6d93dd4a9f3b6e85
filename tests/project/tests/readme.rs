//! Every `sh` block of README.md and of the guide runs, with the built program on PATH.

use cofferdam_project_tests::markdown::{Block, blocks};
use cofferdam_project_tests::{binary, root, sources};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The most that one block may take; those who read it will not wait for longer either.
const BLOCK_SECONDS: &str = "60";

fn is_root() -> bool {
    // The owner of this process's own folder in /proc is its effective user.
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cofferdam-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(block: &Block, folder: &Path, programs: &Path) -> Output {
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut bash = Command::new("timeout");
    bash.args([BLOCK_SECONDS, "bash", "-euo", "pipefail", "-c", &block.text]).env("PATH", path);
    bash.current_dir(folder).stdin(Stdio::null()).output().expect("timeout and bash start")
}

/// A block that fails, with its line and what it said.
fn failure(document: &str, block: &Block, output: &Output) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (line, said) = (block.line, text(&output.stdout) + &text(&output.stderr));
    (!output.status.success()).then(|| format!("{document}:{line}: {}\n{said}", output.status))
}

fn run_all(document: &str) {
    assert!(is_root(), "this test runs sandboxes, which takes root so far; run it as root");
    let text = sources::text(&root().join(document)).expect("a document is text");
    let blocks: Vec<Block> = blocks(&text).into_iter().filter(|block| block.language == "sh").collect();
    assert!(!blocks.is_empty(), "{document} has no sh block: what a reader tries is not tested");
    let programs = binary::folder();
    let folder = Folder::new(&document.replace('/', "-"));
    // In one folder and in order, as a reader would; twice, as readers do.
    for block in blocks.iter().chain(&blocks) {
        if let Some(what) = failure(document, block, &run(block, &folder.0, &programs)) {
            panic!("{what}");
        }
    }
}

#[test]
fn every_shell_block_of_the_readme_runs() {
    run_all("README.md");
}

#[test]
fn every_shell_block_of_the_guide_runs() {
    run_all("docs/guide.md");
}

#[test]
fn every_shell_block_about_proofs_runs() {
    run_all("docs/proofs.md");
}

#[test]
fn a_failing_block_names_its_line() {
    let folder = Folder::new("failing");
    let [block] = &blocks("\n```sh\ntrue\nfalse | true\necho not reached\n```\n")[..] else { panic!() };
    let output = run(block, &folder.0, Path::new("/nowhere"));
    let what = failure("README.md", block, &output).expect("it fails");
    assert!(what.starts_with("README.md:2: ") && !what.contains("not reached"), "{what}");
}
