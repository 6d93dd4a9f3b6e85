//! The quickstart does what it says, from its first line to its last, and so does the agent in it.

use cofferdam_project_tests::markdown::blocks;
use cofferdam_project_tests::{binary, root, sources};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What it is called in the document, for readers; a test takes a port that is free.
const ADDRESS: &str = "127.0.0.1:8080";

/// Readers are promised five minutes.
const SECONDS: &str = "300";

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

#[test]
fn the_quickstart_runs_from_start_to_stop() {
    let text = sources::text(&root().join("docs/quickstart.md")).expect("the quickstart is text");
    let blocks: Vec<_> = blocks(&text).into_iter().filter(|block| block.language == "sh").collect();
    assert!(blocks.len() > 8, "only {} blocks were found", blocks.len());
    let script: String = blocks.iter().map(|block| block.text.as_str()).collect();
    assert!(script.contains(ADDRESS), "the address of the document is another one");
    // One that fails on the way leaves no server behind.
    let tidy = "trap '[ ! -e serve.pid ] || kill -KILL $(cat serve.pid)' EXIT\n";
    let script = tidy.to_owned() + &script.replace(ADDRESS, &free_address());
    let folder = Folder(std::env::temp_dir().join(format!("cofferdam-quickstart-{}", std::process::id())));
    std::fs::create_dir(&folder.0).expect("a folder");
    let path = format!("{}:{}", binary::folder().display(), std::env::var("PATH").unwrap_or_default());
    let mut bash = Command::new("timeout");
    bash.args([SECONDS, "bash", "-euo", "pipefail", "-c", &script]).env("PATH", path);
    bash.env("EXAMPLES", root().join("examples")).current_dir(&folder.0).stdin(Stdio::null());
    let output = bash.output().expect("timeout and bash start");
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{said}\n{complained}", output.status);
    for expected in [
        "hello from the sandbox\n",
        r#""stdout":"42\n""#,
        "it exited with 3\n",
        "1\n2\n3\n",
        "It did not work: NameError: name 'numbers' is not defined\n",
        "The answer is 42\n",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in\n{said}\n{complained}");
    }
    let left: Vec<_> = std::fs::read_dir(&folder.0).expect("the folder").flatten().collect();
    assert!(left.is_empty(), "it leaves {left:?}");
}

/// It is shown as one that is easy to read and needs nothing.
#[test]
fn the_agent_is_short_and_needs_only_the_standard_library() {
    let text = sources::text(&root().join("examples/agent.py")).expect("the agent is text");
    let code = text.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    assert!(code.count() <= 25, "it has grown");
    let imports: Vec<_> =
        text.lines().filter(|line| line.starts_with("import ") || line.starts_with("from ")).collect();
    assert_eq!(imports, ["import json, os, urllib.request"]);
}
