//! Sessions on a worker in another process: as in one, and over what happens to either side.

use crate::client::Client;
use crate::machine::{processes_with, wait_until};
use crate::pausing::{pause, post, resume, stdout};
use crate::roles::Apart;
use crate::server::{Folder, Server, program};
use crate::sessions::{begin, create, delete, get, python, shell, step};
use serde_json::json;

/// The roles apart, with the lease short.
fn apart(name: &str) -> (Apart, Server) {
    let apart = Apart::with(name, &[]);
    let worker = apart.worker(&["--slots", "16", "--memory", "64g"]);
    (apart, worker)
}

#[test]
fn a_conversation_of_steps_with_a_worker_elsewhere() {
    let (apart, worker) = apart("apart-steps");
    let client = &apart.client;
    let id = create(client, r#"{"ttl_seconds":600,"env":{"COLOUR":"green"}}"#);
    let first = python(client, &id, "x = 41");
    assert_eq!((&first["number"], &first["status"]["state"]), (&json!(1), &json!("succeeded")), "{first}");
    let second = python(client, &id, "import sys\nprint('hello')\nprint('err', file=sys.stderr)\nx + 1");
    assert_eq!(
        (&second["result"]["stdout"], &second["result"]["stderr"]),
        (&json!("hello\n"), &json!("err\n"))
    );
    assert_eq!(second["result"]["results"][0]["data"]["text/plain"], "42", "{second}");
    let raised = python(client, &id, "1 / 0");
    assert_eq!(raised["result"]["error"]["name"], "ZeroDivisionError", "{raised}");
    let told = shell(client, &id, "echo $COLOUR $CYNODE_STEP; exit 3");
    assert_eq!((stdout(&told), &told["result"]["exit_code"]), ("green 4\n", &json!(3)), "{told}");
    // Ten mebibytes come whole up to what is kept, and it is said that there was more.
    let much = shell(client, &id, "head -c 10000000 /dev/zero | tr '\\0' x");
    assert_eq!((stdout(&much).len(), &much["result"]["stdout_truncated"]), (8 << 20, &json!(true)));
    // An interrupt keeps the state.
    let endless = begin(client, &id, &json!({"language": "python", "code": "while True: pass"}));
    let path = format!("/v1/sessions/{id}/steps/{endless}");
    wait_until("it runs", || client.get(&path).json()["status"]["state"] == "running");
    assert_eq!(client.post(&format!("{path}/interrupt"), "").status, 202);
    wait_until("it is cancelled", || client.get(&path).json()["status"]["state"] == "cancelled");
    assert_eq!(python(client, &id, "x")["result"]["results"][0]["data"]["text/plain"], "41");
    let restarted =
        client.post(&format!("/v1/sessions/{id}/contexts/default/restart"), r#"{"language":"python"}"#);
    assert_eq!(restarted.status, 204, "{restarted:?}");
    assert_eq!(python(client, &id, "x")["result"]["error"]["name"], "NameError");
    // An artifact that a step leaves is kept, and given to another.
    let left = shell(client, &id, "echo kept > $CYNODE_ARTIFACTS_DIR/a.txt");
    let artifact = left["result"]["artifacts"][0]["id"].as_str().unwrap_or_else(|| panic!("{left}"));
    let given = json!({"command": "cat b.txt", "files": [{"path": "b.txt", "artifact": artifact}]});
    assert_eq!(stdout(&step(client, &id, &given)), "kept\n");
    shell(client, &id, "sleep 314.261 & sleep 0");
    wait_until("a process is left", || processes_with("314.261") == 1);
    assert_eq!(delete(client, &format!("/v1/sessions/{id}")).status, 204);
    wait_until("nothing of it runs", || processes_with("314.261") == 0);
    let gone = client.post(&format!("/v1/sessions/{id}/steps"), r#"{"command":"true"}"#);
    assert_eq!(gone.status, 409, "{gone:?}");
    assert_eq!(worker.stop(), Some(0));
}

#[test]
fn files_and_processes_of_a_session_on_a_worker_elsewhere() {
    let (apart, _worker) = apart("apart-files");
    let client = &apart.client;
    let id = create(client, "{}");
    let file = |path: &str| format!("/v1/sessions/{id}/files?path={path}");
    let large: String = (0..400_000).map(|i| format!("{i:07}\n")).collect();
    let put = client.send("PUT", &file("deep/large.txt"), "", &large).expect("an answer");
    assert!((200..300).contains(&put.status), "{put:?}");
    assert_eq!(client.get(&file("deep/large.txt")).body, large);
    let part = client.send("GET", &file("deep/large.txt"), "Range: bytes=8-14\r\n", "").expect("an answer");
    assert_eq!((part.status, part.body.as_str()), (206, "0000001"));
    assert_eq!(stdout(&shell(client, &id, "wc -c < deep/large.txt")).trim(), large.len().to_string());
    let listed = client.get(&format!("/v1/sessions/{id}/files/list?path=deep")).body;
    assert!(listed.contains("large.txt"), "{listed}");
    assert_eq!(client.get(&file("none")).status, 404);
    assert_eq!(client.get(&file("/proc/1/environ")).status, client.get(&file("/proc/self/maps")).status);
    let refused = client.send("PUT", &file("/etc/passwd"), "", &large).expect("an answer");
    assert!((400..500).contains(&refused.status), "{refused:?}");
    let tar = client.get(&format!("/v1/sessions/{id}/archive?path=deep&format=tar"));
    assert!(tar.status == 200 && tar.body.contains("large.txt"), "{}", tar.status);
    let found = client.get(&format!("/v1/sessions/{id}/files/search?path=.&content=0399999"));
    assert!(found.body.contains("large.txt"), "{found:?}");
    // A terminal: what is typed comes back, and its end says how it ended.
    let started = post(client, &id, "processes", &json!({"command": ["cat"]}));
    assert_eq!(started.status, 201, "{started:?}");
    let process = format!("/v1/sessions/{id}/processes/1");
    let typed =
        client.send("POST", &format!("{process}/input?close=true"), "", "typed\n").expect("an answer");
    assert!((200..300).contains(&typed.status), "{typed:?}");
    wait_until("it has ended", || !client.get(&process).json()["outcome"].is_null());
    let output = client.get(&format!("{process}/output")).body;
    assert!(output.contains("typed") || output.contains("dHlwZWQK"), "{output}");
    let none = client.get(&format!("/v1/sessions/{id}/processes/9"));
    assert_eq!(none.status, 404, "{none:?}");
}

#[test]
fn a_session_elsewhere_is_frozen_archived_forked_and_begun_from_a_snapshot() {
    let (apart, first) = apart("apart-keeping");
    let client = &apart.client;
    let secret = client.send("PUT", "/v1/secrets/token", "", r#"{"value":"s3cret"}"#).expect("an answer");
    assert!((200..300).contains(&secret.status), "{secret:?}");
    let id = create(client, r#"{"secrets":[{"name":"token"}]}"#);
    assert_eq!(stdout(&shell(client, &id, "cat /run/secrets/token")), "s3cret");
    python(client, &id, "x = 41\nopen('kept', 'w').write('files')");
    pause(client, &id, "freeze");
    assert_eq!(client.post(&format!("/v1/sessions/{id}/steps"), r#"{"command":"true"}"#).status, 409);
    resume(client, &id);
    assert_eq!(python(client, &id, "x")["result"]["results"][0]["data"]["text/plain"], "41");
    let forked = post(client, &id, "fork", &json!({"count": 2}));
    assert_eq!(forked.status, 201, "{forked:?}");
    let forked = forked.json();
    for child in forked["sessions"].as_array().expect("children") {
        let child = child["id"].as_str().expect("an id");
        assert_eq!(stdout(&shell(client, child, "cat kept /run/secrets/token")), "filess3cret");
        assert_eq!(delete(client, &format!("/v1/sessions/{child}")).status, 204);
    }
    let made = post(client, &id, "snapshots", &json!({"name": "base"}));
    assert_eq!(made.status, 201, "{made:?}");
    let from = create(client, r#"{"snapshot":"base"}"#);
    assert_eq!(stdout(&shell(client, &from, "cat kept")), "files");
    pause(client, &id, "archive");
    // Another worker, the first one stopped.
    let second = apart.worker(&["--slots", "16", "--memory", "64g"]);
    assert_eq!(first.stop(), Some(0));
    wait_until("the first is gone", || {
        let list = client.get("/v1/workers").json();
        list["workers"]
            .as_array()
            .is_some_and(|all| all.iter().filter(|one| one["state"] == "ready").count() == 1)
    });
    resume(client, &id);
    assert_eq!(stdout(&shell(client, &id, "cat kept /run/secrets/token")), "filess3cret");
    // What had no archive went with its worker.
    wait_until("the other is lost", || get(client, &from)["status"]["cause"] == "lost");
    assert_eq!(second.stop(), Some(0));
}

/// Control is killed in the middle of a step: the session and what its interpreter has stay, the step is lost.
#[test]
fn a_session_elsewhere_survives_its_control_plane() {
    let folder = Folder::new("apart-control");
    let options = ["--lease", "1s", "--listen", "127.0.0.1:0"];
    let mut control = Server::start_role(program(), "control", folder.path(), &options);
    let address = control.address.to_string();
    let token = folder.path().join("service.token");
    let worker = Server::start_worker(program(), &[&control], &token, &["--slots", "16", "--memory", "64g"]);
    let mut client = Client::of(&control);
    wait_until("it is registered", || client.get("/v1/workers").body.contains("ready"));
    let id = create(&client, "{}");
    python(&client, &id, "x = 41");
    shell(&client, &id, "sleep 314.262 & sleep 0");
    let running = begin(&client, &id, &json!({"command": "sleep 314.263"}));
    wait_until("it runs", || processes_with("314.263") == 1);
    control.kill();
    control =
        Server::start_role(program(), "control", folder.path(), &["--lease", "1s", "--listen", &address]);
    client = Client::of(&control);
    wait_until("it is registered again", || client.get("/v1/workers").body.contains("ready"));
    assert_eq!(get(&client, &id)["status"]["state"], "ready");
    let step = client.get(&format!("/v1/sessions/{id}/steps/{running}")).json();
    assert_eq!(step["status"]["state"], "lost", "{step}");
    assert_eq!(python(&client, &id, "x + 1")["result"]["results"][0]["data"]["text/plain"], "42");
    assert_eq!(processes_with("314.262"), 1, "what it left runs on");
    wait_until("nobody answers for the step, so it is interrupted", || processes_with("314.263") == 0);
    assert_eq!(get(&client, &id)["status"]["state"], "ready");
    assert_eq!(delete(&client, &format!("/v1/sessions/{id}")).status, 204);
    wait_until("nothing is left", || processes_with("314.262") == 0);
    assert_eq!((worker.stop(), control.stop()), (Some(0), Some(0)));
}

/// The same placement is made once, the same step is run once, and whoever shows an older generation changes nothing.
#[test]
fn a_placement_is_made_once_and_an_older_one_is_refused() {
    let (apart, worker) = apart("apart-places");
    let secret = std::fs::read_to_string(apart.folder.path().join("service.token")).expect("a token");
    let header = format!("Authorization: Bearer {secret}\r\n");
    let at_worker = Client::of(&worker);
    let send = |method: &str, path: &str, body: &str| {
        at_worker.send(method, path, &header, body).expect("an answer")
    };
    let session = "/sessions/ses-aaaaaaaaaaaaaaaa";
    for (method, path) in [
        ("POST", "/sessions".to_owned()),
        ("DELETE", format!("{session}?generation=1")),
        ("POST", format!("{session}/steps")),
        ("POST", format!("{session}/calls")),
    ] {
        assert_eq!(
            at_worker.send(method, &path, "", "{}").expect("an answer").status,
            401,
            "{method} {path}"
        );
    }
    let worker_id = apart.client.get("/v1/workers").json()["workers"][0]["id"].clone();
    let start_at = |worker: &serde_json::Value, generation: i64| {
        let order = json!({"worker_id": worker, "session_id": "ses-aaaaaaaaaaaaaaaa", "task_id": "t",
            "generation": generation, "request": {}});
        send("POST", "/sessions", &order.to_string())
    };
    let start = |generation: i64| start_at(&worker_id, generation);
    assert_eq!(start_at(&json!("wrk-other"), 2).status, 503);
    let (first, again) = (start(2), start(2));
    assert_eq!((first.status, again.status, start(1).status), (201, 200, 409), "{first:?}");
    assert_eq!(first.json(), again.json());
    let step = |generation: i64| {
        let request = json!({"command": "echo x >> ran; sleep 314.264"});
        let order = json!({"generation": generation, "number": 1, "lease_ms": 60000, "request": request});
        send("POST", &format!("{session}/steps"), &order.to_string()).status
    };
    assert_eq!((step(2), step(2), step(1), step(3)), (201, 200, 409, 409));
    wait_until("it runs once", || processes_with("314.264") == 1);
    // Frames that are none, that are too long, that ask for nothing that there is.
    let call = |word: &str| format!("\u{1}\0\0\0{}{word}\u{3}\0\0\0\0", char::from(word.len() as u8));
    let calls = |body: &str| send("POST", &format!("{session}/calls"), body);
    for wrong in ["", "{}", "\u{9}\0\0\0\0", "\u{1}\u{7f}\0\0\0", "\u{3}\0\0\0\0", &call("{}"), &call("[")] {
        assert_eq!(calls(wrong).status, 400, "{wrong:?}");
    }
    let read =
        calls(&call(r#"{"generation":2,"call":{"verb":"read_file","path":"/workspace/ran","first":0}}"#));
    assert!(
        read.status == 200 && read.body.contains("x\n") && read.body.contains("\u{3}\0\0\0\0"),
        "{read:?}"
    );
    let cut = calls("\u{1}\0\0\0\u{7f}{");
    assert_eq!(cut.status, 400, "{cut:?}");
    assert_eq!(calls(&call(r#"{"generation":1,"call":{"verb":"freeze"}}"#)).status, 409);
    let unknown =
        calls(&call(r#"{"generation":2,"call":{"verb":"read_archive","path":"/workspace","kind":"rar"}}"#));
    assert!(unknown.body.contains("failed") && unknown.body.contains("invalid"), "{unknown:?}");
    // An older generation ends nothing; this one does, and is not begun again.
    assert_eq!(send("DELETE", &format!("{session}?generation=1"), "").status, 204);
    assert_eq!((start(2).status, processes_with("314.264")), (200, 1));
    assert_eq!(send("DELETE", &format!("{session}?generation=2"), "").status, 204);
    assert_eq!(processes_with("314.264"), 0);
    assert_eq!((start(2).status, step(2), start(3).status), (409, 404, 201));
    assert_eq!(send("DELETE", &format!("{session}?generation=3"), "").status, 204);
    assert_eq!(send("DELETE", session, "").status, 422);
}

/// An upload that is cut off leaves the old file, and a process that holds a session and dies lets it go on.
#[test]
fn what_is_cut_off_on_its_way_to_a_worker_changes_nothing() {
    let (apart, _worker) = apart("apart-cut");
    let client = &apart.client;
    let id = create(client, "{}");
    shell(client, &id, "echo old > file");
    let path = format!("/v1/sessions/{id}/files?path=file");
    let mut upload = client.announce("PUT", &path, 1 << 20).expect("a connection");
    std::io::Write::write_all(&mut upload, &[b'n'; 100_000]).expect("some of it");
    drop(upload);
    assert_eq!(stdout(&shell(client, &id, "cat file; ls")), "old\nfile\n");
    wait_until("nothing is left of it", || {
        stdout(&shell(client, &id, "ls -A | grep -v artifacts")) == "file\n"
    });
}
