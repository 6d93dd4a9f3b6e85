//! What an operator sets, and how a server says so.

use crate::client::Client;
use crate::server::{Folder, Server};
use serde_json::json;

#[test]
fn a_file_sets_defaults_and_maxima_and_flags_go_over_it() {
    let folder = Folder::new("limits");
    let file = folder.path().join("cofferdam.toml");
    let text =
        "[limits]\npids = 20\npids_max = 30\ntimeout_max = \"2s\"\ntimeout = \"2s\"\noutput = \"4k\"\n";
    std::fs::write(&file, text).expect("a file");
    let file = file.to_string_lossy().into_owned();
    let server = Server::start(folder.path(), &["--config", &file, "--set", "limits.pids_max=25"]);
    let client = Client::of(&server);
    let above = client.post("/v1/jobs", r#"{"command":["ls"],"limits":{"pids":26}}"#);
    let error = above.json()["error"].clone();
    assert_eq!((above.status, error["code"].as_str()), (422, Some("invalid")), "{error}");
    let details = ["field", "value", "maximum"].map(|name| error["details"][name].as_str());
    assert_eq!(details, [Some("limits.pids"), Some("26"), Some("25")]);
    let late = client.post("/v1/jobs", r#"{"command":["ls"],"timeout_ms":2001}"#);
    assert_eq!(late.json()["error"]["details"]["maximum"], "2000");
    assert_eq!(client.get("/v1/jobs").json()["jobs"], json!([]), "nothing is kept");
    // The defaults hold for what was not asked for.
    let job = client
        .post("/v1/jobs?wait_ms=20000", r#"{"command":"head -c 10000 /dev/zero | tr '\\0' x; sleep 10"}"#);
    let job = job.json();
    assert_eq!(job["status"]["state"], "timed_out", "{job}");
    assert_eq!(job["result"]["stdout"].as_str().map(str::len), Some(4096));
}

#[test]
fn a_wrong_setting_stops_the_start_with_its_line() {
    let folder = Folder::new("wrong");
    let file = folder.path().join("cofferdam.toml");
    std::fs::write(&file, "[limits]\n\npids = \"many\"\n").expect("a file");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_cofferdam"));
    command.arg("serve").arg("--data").arg(folder.path()).arg("--config").arg(&file);
    let output = command.output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{said}");
    let expected = format!("{}:3: limits.pids: \"many\" is text: write a whole number", file.display());
    assert!(said.contains(&expected), "{said}");
    assert!(!folder.path().join("admin.key").exists());
}
