//! Sessions on images, and behind other walls: the same as on the machine's own programs, and what differs said by name.

use crate::backends::{Daemon, store};
use crate::client::Client;
use crate::docker_sandbox::{containers, wait_for_none};
use crate::images;
use crate::machine::wait_until;
use crate::pausing::{pause, post, resume, stdout};
use crate::secret_backends::check_secrets;
use crate::server::{Folder, Server};
use crate::sessions::{begin, create, delete, get, python, shell};
use crate::snapshots::{fork, snapshot};
use crate::watches::check_watch;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn start(folder: &Path, images: &str, options: &[&str]) -> Server {
    let options = [&["--slots", "32", "--memory", "64g", "--set", "backends.images=true"], options].concat();
    Server::start_in(&folder.join("data"), &options, &[("COFFERDAM_IMAGES", images)])
}

fn start_docker(folder: &Path, images: &str) -> Server {
    let socket = format!("backends.docker_socket={}", folder.join("socket").display());
    // What is left is counted: nothing may wait.
    let options =
        ["--set", "backends.enabled=native,docker", "--set", "backends.waiting=0", "--set", &socket];
    start(folder, images, &options)
}

pub(crate) fn request(backend: &str) -> Value {
    json!({"backend": backend, "image": "app:1", "ttl_seconds": 900, "env": {"COLOUR": "green"}})
}

fn shown(step: &Value) -> &str {
    step["result"]["results"][0]["data"]["text/plain"].as_str().unwrap_or_else(|| panic!("nothing: {step}"))
}

/// Everything that sessions do, on one backend.
pub(crate) fn check_whole(client: &Client, backend: &str) {
    let id = create(client, &request(backend).to_string());
    check_steps(client, &id);
    check_files(client, &id);
    check_processes(client, &id);
    check_watch(client, &id);
    check_keeping(client, backend, &id);
    check_secrets(client, &request(backend));
    check_refusals(client, backend, &id);
    assert_eq!(delete(client, &format!("/v1/sessions/{id}")).status, 204);
    let refused = post(client, &id, "steps", &json!({"command": "true"}));
    assert_eq!(refused.status, 409, "{refused:?}");
}

fn check_steps(client: &Client, id: &str) {
    python(client, id, "x = 41");
    assert_eq!(shown(&python(client, id, "x + 1")), "42");
    python(client, id, "import os\nopen('note', 'w').write(os.environ['COLOUR'])");
    let seen = shell(client, id, "cat note /etc/motd; id -u; pwd");
    assert_eq!(stdout(&seen), "greenfrom the store\n1000\n/workspace\n", "{seen}");
    let failed = shell(client, id, "echo out; echo err >&2; exit 3");
    assert_eq!((&failed["result"]["exit_code"], &failed["result"]["stderr"]), (&json!(3), &json!("err\n")));
    let receipt =
        client.get(&format!("/v1/sessions/{id}/steps/{}/receipt", seen["id"].as_str().expect("an id")));
    assert_eq!(receipt.status, 200, "{receipt:?}");
    assert!(payload(&receipt.json()).contains(r#""name":"app:1""#), "{}", payload(&receipt.json()));
}

/// What was signed.
fn payload(envelope: &Value) -> String {
    use base64::Engine;
    let text = envelope["payload"].as_str().unwrap_or_else(|| panic!("{envelope}"));
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
    String::from_utf8(bytes).expect("text")
}

fn check_files(client: &Client, id: &str) {
    let at = |path: &str| format!("/v1/sessions/{id}/files?path={path}");
    let written = client.send("PUT", &at("folder/put"), "", "from outside").expect("an answer");
    assert_eq!(written.status, 200, "{written:?}");
    assert_eq!(stdout(&shell(client, id, "cat folder/put; echo made > folder/made")), "from outside");
    assert_eq!(client.get(&at("folder/made")).body, "made\n");
    let listed = client.get(&format!("/v1/sessions/{id}/files/list?path=folder")).json();
    let mut names: Vec<_> = listed["files"]
        .as_array()
        .unwrap_or_else(|| panic!("{listed}"))
        .iter()
        .map(|file| &file["path"])
        .collect();
    names.sort_by_key(|name| name.to_string());
    assert_eq!(names, ["made", "put"], "{listed}");
    assert_eq!(delete(client, &at("folder/put")).status, 204);
    assert_eq!(client.get(&at("folder/put")).status, 404);
}

fn check_processes(client: &Client, id: &str) {
    let started = post(client, id, "processes", &json!({"command": "echo up > up; exec sleep 1000"}));
    assert_eq!(started.status, 201, "{started:?}");
    let number = started.json()["number"].clone();
    let path = format!("/v1/sessions/{id}/processes/{number}");
    assert_eq!(stdout(&shell(client, id, "until test -s up; do :; done; echo there")), "there\n");
    let signal = client.post(&format!("{path}/signal"), r#"{"signal":9}"#);
    assert!(signal.status < 300, "{signal:?}");
    wait_until("it is killed", || !client.get(&path).json()["outcome"].is_null());
    let terminal = json!({"command": "tty; stty size", "terminal": {"rows": 7, "columns": 70}});
    let started = post(client, id, "processes", &terminal);
    assert_eq!(started.status, 201, "{started:?}");
}

/// Frozen, archived, forked and kept: by its files alone, where sandboxes hand none over.
fn check_keeping(client: &Client, backend: &str, id: &str) {
    shell(
        client,
        id,
        "mkdir -p kept/deep && echo one > kept/deep/file && chmod 500 kept/deep && ln -s kept link",
    );
    shell(client, id, "touch -d @1234567890 kept/deep/file");
    shell(client, id, "while :; do echo x >> count; sleep 0.01; done & until test -s count; do :; done");
    pause(client, id, "freeze");
    resume(client, id);
    assert_eq!(shown(&python(client, id, "x + 2")), "43");
    let look = "cat link/deep/file; stat -c '%a %Y' kept/deep kept/deep/file | cut -d ' ' -f 1; \
                stat -c %Y kept/deep/file";
    let children = fork(client, id, 2);
    for child in &children {
        assert_eq!(stdout(&shell(client, child, look)), "one\n500\n644\n1234567890\n", "{backend}");
        assert_eq!(delete(client, &format!("/v1/sessions/{child}")).status, 204);
    }
    let name = format!("of-{backend}");
    snapshot(client, id, &name);
    // Its files are for any session, wherever that is.
    for other in [request(backend), json!({})] {
        let mut other = other;
        other["snapshot"] = json!(name);
        let other = create(client, &other.to_string());
        assert_eq!(stdout(&shell(client, &other, "cat link/deep/file")), "one\n", "{backend}");
        assert_eq!(delete(client, &format!("/v1/sessions/{other}")).status, 204);
    }
    pause(client, id, "archive");
    resume(client, id);
    assert_eq!(stdout(&shell(client, id, "cat link/deep/file /etc/motd")), "one\nfrom the store\n");
    let gone = python(client, id, "x");
    assert_eq!(gone["result"]["error"]["name"], "NameError", "{gone}");
}

/// What a backend cannot is refused by its name, and changes nothing.
fn check_refusals(client: &Client, backend: &str, id: &str) {
    if backend == "native" {
        return;
    }
    let refused = |answer: crate::client::Answer, word: &str| {
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, &error["code"]), (422, &json!("unsupported")), "{error}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains(word), "{word}: {message}");
    };
    let mut disk = request(backend);
    disk["limits"] = json!({"disk_bytes": 8_u64 << 30});
    refused(
        client.post("/v1/sessions", &disk.to_string()),
        &format!("the {backend} backend cannot keep files on disk"),
    );
    assert_eq!(get(client, id)["status"]["state"], "ready");
}

#[test]
fn sessions_are_whole_on_images_of_native_and_runc() {
    let folder = Folder::new("session-runc");
    let images = store(folder.path());
    let server = start(folder.path(), &images, &["--set", "backends.enabled=native,oci"]);
    let client = Client::of(&server);
    check_whole(&client, "native");
    check_whole(&client, "oci");
    for (body, code, field) in [
        (json!({"backend": "docker", "image": "app:1"}), "unsupported", "backend"),
        (json!({"backend": "lxc", "image": "app:1"}), "unsupported", "backend"),
        (json!({"backend": "oci"}), "unsupported", "image"),
        (json!({"image": "app:1", "profile": "base-tools"}), "unsupported", "profile"),
        (json!({"image": "../app"}), "invalid", "image"),
        (json!({"image": "nowhere:1"}), "invalid", "image"),
        (json!({"backend": "oci", "image": "nowhere:1"}), "invalid", "image"),
        (json!({"profile": "cobol-tools"}), "invalid", "profile"),
    ] {
        let answer = client.post("/v1/sessions", &body.to_string());
        let error = answer.json()["error"].clone();
        assert_eq!(
            (&error["code"], &error["details"]["field"]),
            (&json!(code), &json!(field)),
            "{body}: {error}"
        );
        assert_eq!(answer.status, 422, "{body}");
    }
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn sessions_are_whole_behind_gvisor() {
    let folder = Folder::new("session-runsc");
    let images = store(folder.path());
    let options = ["--set", "backends.enabled=native,oci", "--set", "backends.oci_runtime=runsc"];
    let server = start(folder.path(), &images, &options);
    check_whole(&Client::of(&server), "oci");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_profile_is_the_image_that_it_was_when_the_session_was_made() {
    let folder = Folder::new("session-profile");
    images::good(folder.path(), "app:1", "one\n");
    images::good(folder.path(), "app:2", "two\n");
    let server = images::start(folder.path());
    let client = Client::of(&server);
    let register =
        |name: &str| images::registered(&client, &json!({"name": name, "profiles": ["base-tools"]}));
    let first = register("app:1");
    let id = create(&client, &json!({"profile": "base-tools"}).to_string());
    register("app:2");
    assert_eq!(stdout(&shell(&client, &id, "cat /etc/motd")), "one\n");
    let later = create(&client, &json!({"profile": "base-tools"}).to_string());
    assert_eq!(stdout(&shell(&client, &later, "cat /etc/motd")), "two\n");
    // It comes back on what it was, whatever is registered by then; and so does a fork.
    pause(&client, &id, "archive");
    assert_eq!(images::delete(&client, &first), 204);
    resume(&client, &id);
    assert_eq!(stdout(&shell(&client, &id, "cat /etc/motd")), "one\n");
    let child = fork(&client, &id, 1).remove(0);
    assert_eq!(stdout(&shell(&client, &child, "cat /etc/motd")), "one\n");
    let audit = client.get("/v1/audit?limit=500").json();
    let mut entries = audit["entries"].as_array().expect("entries").iter();
    let made = entries.find(|entry| entry["kind"] == "session.created" && entry["resource"] == json!(id));
    let details = &made.unwrap_or_else(|| panic!("{audit}"))["details"];
    assert_eq!(details["profile"], "base-tools", "{details}");
    assert!(details["image"].as_str().is_some_and(|image| image.starts_with("app:1@sha256:")), "{details}");
}

#[test]
fn sessions_are_whole_on_docker_and_lost_with_their_containers() {
    let folder = Folder::new("session-docker");
    let images = store(folder.path());
    let mut daemon = Daemon::start(folder.path());
    let server = start_docker(folder.path(), &images);
    let client = Client::of(&server);
    warm(&client);
    check_whole(&client, "docker");
    wait_for_none(folder.path());
    a_container_is_removed_by_somebody(&client, folder.path());
    // The containers of a server that was killed are removed, at the latest by the next.
    let left = create(&client, &request("docker").to_string());
    server.kill();
    let server = start_docker(folder.path(), &images);
    let client = Client::of(&server);
    assert_eq!(get(&client, &left)["status"]["cause"], "lost");
    let id = create(&client, &request("docker").to_string());
    wait_until("the other one is gone", || {
        containers(folder.path()).matches("\"/cofferdam-sbx-").count() == 1
    });
    // A daemon that is killed takes its sessions with it, and nobody else's.
    let other = create(&client, "{}");
    daemon.kill();
    wait_until_lost(&client, &id);
    assert_eq!(stdout(&shell(&client, &other, "echo on")), "on\n");
    let none = client.post("/v1/sessions", &request("docker").to_string());
    assert_eq!((none.status, &none.json()["error"]["code"]), (503, &json!("unavailable")), "{none:?}");
}

/// The first sandbox waits for the daemon to take the image and the helper.
pub(crate) fn warm(client: &Client) {
    let job = json!({"command": "true", "backend": "docker", "image": "app:1"}).to_string();
    let path = format!("/v1/jobs/{}", client.post("/v1/jobs", &job).json()["id"].as_str().expect("an id"));
    let has_ended = || client.get(&path).json()["status"]["state"] == "succeeded";
    let deadline = Instant::now() + Duration::from_secs(240);
    while !has_ended() {
        assert!(Instant::now() < deadline, "{:?}", client.get(&path));
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn wait_until_lost(client: &Client, id: &str) {
    wait_until("it has ended", || get(client, id)["status"]["state"] == "ended");
    let ended = get(client, id);
    assert_eq!(ended["status"]["cause"], "lost", "{ended}");
    let message = ended["status"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("its sandbox is gone: "), "{ended}");
}

pub(crate) fn a_container_is_removed_by_somebody(client: &Client, folder: &Path) {
    let id = create(client, &request("docker").to_string());
    let step = begin(client, &id, &json!({"command": "echo begun; sleep 1000"}));
    let running = format!("/v1/sessions/{id}/steps/{step}");
    wait_until("it runs", || client.get(&running).json()["status"]["state"] == "running");
    let name = format!("cofferdam-{}", get(client, &id)["sandbox_id"].as_str().expect("a sandbox"));
    let host = format!("unix://{}", folder.join("socket").display());
    let removed = Command::new("docker").args(["-H", &host, "rm", "-f", &name]).output().expect("docker");
    assert!(removed.status.success(), "{removed:?}");
    wait_until_lost(client, &id);
    wait_until("its step has ended", || client.get(&running).json()["status"]["state"] == "lost");
    let refused = post(client, &id, "steps", &json!({"command": "true"}));
    assert_eq!(
        (refused.status, &refused.json()["error"]["code"]),
        (409, &json!("wrong_state")),
        "{refused:?}"
    );
    let file = client.get(&format!("/v1/sessions/{id}/files?path=x"));
    assert_eq!(file.status, 409, "{file:?}");
}
