//! A terminal in Chromium: a page types into it over the WebSocket, resizes it, and comes back to it.

use crate::client::Client;
use crate::server::{Folder, Server};
use std::process::Command;

#[test]
fn a_page_has_a_terminal_in_a_session() {
    let folder = Folder::new("browser");
    let server = Server::start(&folder.path().join("data"), &["--slots", "8", "--memory", "16g"]);
    let client = Client::of(&server);
    let made = client.post("/v1/sessions", r#"{"env":{"PS1":"$ "}}"#);
    assert_eq!(made.status, 201, "{made:?}");
    let all = format!("/v1/sessions/{}/processes", made.json()["id"].as_str().expect("an id"));
    let bash = r#"{"command":["bash","--norc","-i"],"terminal":{"rows":24,"columns":80}}"#;
    let started = client.post(&all, bash);
    assert_eq!(started.status, 201, "{started:?}");
    let driven = Command::new("/usr/bin/node")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serve/browser/drive.js"))
        .args([format!("http://{}", server.address), format!("{all}/1")])
        .arg(folder.path())
        .env("COFFERDAM_API_KEY", &server.key)
        .output()
        .expect("node");
    assert!(driven.status.success(), "{}", String::from_utf8_lossy(&driven.stderr));
    let picture = std::fs::read(folder.path().join("terminal.png")).expect("a picture");
    assert!(picture.starts_with(b"\x89PNG"), "it was drawn");
    if let Some(kept) = std::env::var_os("COFFERDAM_KEEP_PICTURE") {
        std::fs::write(kept, picture).expect("a place for the picture");
    }
}
