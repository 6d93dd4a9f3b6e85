//! Sessions, as a client sees them: steps that build on each other, files, deadlines that hold over a crash, and nothing
//! that is left.

use crate::client::{Answer, Client};
use crate::machine::{OwnProgram, group_of, has_group, processes_with, wait_until};
use crate::server::{Folder, Server};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};

fn server() -> (Folder, Server, Client) {
    let folder = Folder::new("sessions");
    let server = Server::start(folder.path(), &["--slots", "32", "--memory", "64g"]);
    let client = Client::of(&server);
    (folder, server, client)
}

pub(crate) fn create(client: &Client, body: &str) -> String {
    let answer = client.post("/v1/sessions", body);
    assert_eq!(answer.status, 201, "{answer:?}");
    let session = answer.json();
    assert_eq!(session["status"]["state"], "ready", "{session}");
    assert!(session["expires_at"].as_str().is_some_and(|time| time.ends_with('Z')), "{session}");
    session["id"].as_str().expect("an id").to_owned()
}

pub(crate) fn step(client: &Client, session: &str, body: &Value) -> Value {
    let answer = client.post(&format!("/v1/sessions/{session}/steps?wait_ms=60000"), &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

pub(crate) fn python(client: &Client, session: &str, code: &str) -> Value {
    step(client, session, &json!({"language": "python", "code": code}))
}

pub(crate) fn shell(client: &Client, session: &str, line: &str) -> Value {
    step(client, session, &json!({"command": line}))
}

pub(crate) fn begin(client: &Client, session: &str, body: &Value) -> String {
    let answer = client.post(&format!("/v1/sessions/{session}/steps"), &body.to_string());
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["id"].as_str().expect("an id").to_owned()
}

pub(crate) fn get(client: &Client, session: &str) -> Value {
    client.get(&format!("/v1/sessions/{session}")).json()
}

pub(crate) fn delete(client: &Client, path: &str) -> Answer {
    client.send("DELETE", path, "", "").expect("an answer")
}

#[test]
fn a_conversation_of_steps() {
    let (_folder, server, client) = server();
    let id = create(&client, r#"{"ttl_seconds":600,"env":{"COLOUR":"green"}}"#);
    assert!(id.starts_with("ses-"));
    let first = python(&client, &id, "x = 41");
    assert!(first["id"].as_str().is_some_and(|id| id.starts_with("stp-")), "{first}");
    assert_eq!((&first["number"], &first["status"]["state"]), (&json!(1), &json!("succeeded")));
    assert_eq!(first["result"]["outcome"], json!({"kind": "exited", "code": 0}));
    assert_eq!(first["result"]["error"], Value::Null);
    let second = python(&client, &id, "print('hello')\nx + 1");
    assert_eq!(second["result"]["stdout"], "hello\n", "{second}");
    assert_eq!(second["result"]["results"][0]["data"]["text/plain"], "42", "{second}");
    assert_eq!(second["result"]["execution_count"], 2);
    let raised = python(&client, &id, "def f():\n    return 1 / 0\nf()");
    assert_eq!(raised["status"]["state"], "failed");
    assert_eq!(raised["result"]["error"]["name"], "ZeroDivisionError", "{raised}");
    // Files, the environment and the number of a step are shared and known.
    let told = python(
        &client,
        &id,
        "import os\nopen('kept', 'w').write(os.environ['COLOUR'])\nos.environ['CYNODE_STEP']",
    );
    assert_eq!(told["result"]["results"].as_array().map(Vec::len), Some(1), "{told}");
    assert_eq!(told["result"]["results"][0]["data"]["text/plain"], "'4'", "{told}");
    let seen = shell(&client, &id, "cat kept; echo \" $CYNODE_JOB_ID $CYNODE_STEP\"; exit 3");
    assert_eq!(seen["result"]["stdout"], format!("green {id} 5\n"), "{seen}");
    assert_eq!((&seen["status"]["state"], &seen["result"]["exit_code"]), (&json!("failed"), &json!(3)));
    // Others of the same language have a space of their own.
    let other =
        step(&client, &id, &json!({"language": "python", "code": "'x' in globals()", "context": "b"}));
    assert_eq!(other["result"]["results"][0]["data"]["text/plain"], "False", "{other}");
    let listed = client.get(&format!("/v1/sessions/{id}/steps?limit=4")).json();
    let numbers: Vec<_> =
        listed["steps"].as_array().expect("steps").iter().map(|step| &step["number"]).collect();
    assert_eq!(numbers, [&json!(1), &json!(2), &json!(3), &json!(4)]);
    let cursor = listed["next_cursor"].as_str().expect("a cursor");
    let rest = client.get(&format!("/v1/sessions/{id}/steps?cursor={cursor}")).json();
    assert_eq!(rest["steps"].as_array().map(Vec::len), Some(2), "{rest}");
    assert_eq!(delete(&client, &format!("/v1/sessions/{id}")).status, 204);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn every_language_keeps_what_it_was_told() {
    let (_folder, _server, client) = server();
    let id = create(&client, "{}");
    for (language, set, get, value) in [
        ("python", "n = 6", "n * 7", "42"),
        ("javascript", "const n = 6", "n * 7", "42"),
        ("bash", "n=6", "echo $((n * 7))", "42"),
    ] {
        let run = |code: &str| step(&client, &id, &json!({"language": language, "code": code}));
        assert_eq!(run(set)["status"]["state"], "succeeded", "{language}");
        let got = run(get);
        let text =
            format!("{}{}", got["result"]["stdout"].as_str().unwrap_or_default(), got["result"]["results"]);
        assert!(text.contains(value), "{language}: {got}");
    }
}

#[test]
fn a_server_runs_on_between_steps() {
    let (_folder, _server, client) = server();
    let id = create(&client, "{}");
    // It writes to the streams of the step that started it, for as long as it lives.
    let started = shell(&client, &id, "python3 -u -m http.server 8123 & echo started");
    assert_eq!(started["result"]["stdout"], "started\n", "{started}");
    let ask = "import time, urllib.request\nfor _ in range(100):\n    try:\n        \
               print(urllib.request.urlopen('http://127.0.0.1:8123/').status)\n        break\n    \
               except OSError: time.sleep(0.05)";
    for _ in 0..3 {
        let asked = python(&client, &id, ask);
        assert_eq!(asked["result"]["stdout"], "200\n", "{asked}");
    }
}

#[test]
fn an_interrupted_step_keeps_its_variables() {
    let (_folder, _server, client) = server();
    let id = create(&client, "{}");
    for endless in ["while True: pass", "import time; time.sleep(600)"] {
        python(&client, &id, "kept = 'still here'");
        let running = begin(
            &client,
            &id,
            &json!({"language": "python", "code": format!("print('begun', flush=True)\n{endless}")}),
        );
        let path = format!("/v1/sessions/{id}/steps/{running}");
        let output = || client.get(&format!("{path}/output?follow=false")).body;
        wait_until("it has begun", || output().contains("begun"));
        assert_eq!(client.post(&format!("{path}/interrupt"), "").status, 202);
        wait_until("it has ended", || client.get(&path).json()["status"]["state"] != "running");
        let ended = client.get(&path).json();
        assert_eq!(ended["status"]["state"], "cancelled", "{ended}");
        assert_eq!(ended["result"]["state_kept"], true, "{ended}");
        let after = python(&client, &id, "kept");
        assert_eq!(after["result"]["results"][0]["data"]["text/plain"], "'still here'", "{endless}: {after}");
        assert_eq!(after["result"]["kernel_restarted"], false);
    }
    // The same for a time-out.
    let timed =
        step(&client, &id, &json!({"language": "python", "code": "while True: pass", "timeout_ms": 300}));
    assert_eq!(
        (&timed["status"]["state"], &timed["result"]["state_kept"]),
        (&json!("timed_out"), &json!(true))
    );
    let timed = step(&client, &id, &json!({"command": ["sleep", "600"], "timeout_ms": 300}));
    assert_eq!(timed["status"]["state"], "timed_out", "{timed}");
}

#[test]
fn contexts_run_side_by_side_and_each_in_order() {
    let (_folder, _server, client) = server();
    let id = create(&client, "{}");
    let code = |name: &str, other: &str| {
        // Each waits for the other: one after the other, neither would end.
        let text = format!(
            "import os, time\nopen('{name}', 'w').close()\nwhile not os.path.exists('{other}'): time.sleep(0.01)\nprint('met')"
        );
        json!({"language": "python", "code": text, "context": name, "timeout_ms": 30000})
    };
    let ids = [begin(&client, &id, &code("one", "two")), begin(&client, &id, &code("two", "one"))];
    let queued =
        begin(&client, &id, &json!({"language": "python", "code": "print('after')", "context": "one"}));
    for step in ids.iter().chain([&queued]) {
        let path = format!("/v1/sessions/{id}/steps/{step}");
        wait_until("it has ended", || client.get(&path).json().get("result").is_some());
        assert_eq!(client.get(&path).json()["status"]["state"], "succeeded");
    }
    let [first, after] =
        [&ids[0], &queued].map(|step| client.get(&format!("/v1/sessions/{id}/steps/{step}")).json());
    assert!(
        after["started_at"].as_str() >= first["status"]["last_transition_at"].as_str(),
        "{first} {after}"
    );
}

#[test]
fn what_dies_is_told_and_the_session_goes_on() {
    let (_folder, _server, client) = server();
    let id = create(&client, r#"{"limits":{"memory_bytes":268435456}}"#);
    python(&client, &id, "kept = 1");
    let killed = python(&client, &id, "import os; os.kill(os.getpid(), 9)");
    assert_eq!(killed["result"]["outcome"], json!({"kind": "signaled", "signal": 9}), "{killed}");
    assert_eq!(killed["result"]["state_kept"], false, "{killed}");
    let anew = python(&client, &id, "'kept' in globals()");
    assert_eq!(anew["result"]["results"][0]["data"]["text/plain"], "False", "{anew}");
    assert_eq!(anew["result"]["kernel_restarted"], true, "{anew}");
    assert_eq!(python(&client, &id, "1")["result"]["kernel_restarted"], false);
    let hungry = shell(&client, &id, "exec python3 -c 'x = bytearray(1 << 30)'");
    assert_eq!(hungry["result"]["outcome"]["kind"], "oom_killed", "{hungry}");
    let hungry = python(&client, &id, "x = bytearray(1 << 30)");
    assert_eq!(hungry["result"]["outcome"]["kind"], "oom_killed", "{hungry}");
    assert_eq!(shell(&client, &id, "echo alive")["result"]["stdout"], "alive\n");
    // A restart is asked for, and told.
    python(&client, &id, "kept = 1");
    let restart =
        client.post(&format!("/v1/sessions/{id}/contexts/default/restart"), r#"{"language":"python"}"#);
    assert_eq!(restart.status, 204, "{restart:?}");
    let anew = python(&client, &id, "'kept' in globals()");
    assert_eq!(anew["result"]["results"][0]["data"]["text/plain"], "False", "{anew}");
    assert_eq!(anew["result"]["kernel_restarted"], true, "{anew}");
}

#[test]
fn output_is_followed_from_any_event() {
    let (_folder, _server, client) = server();
    let id = create(&client, "{}");
    let code = "import sys, time\nfor i in range(3):\n    print(i, flush=True); time.sleep(0.2)\nprint('e', file=sys.stderr)";
    let step = begin(&client, &id, &json!({"language": "python", "code": code}));
    let path = format!("/v1/sessions/{id}/steps/{step}/output");
    let all = events(&client, &path, "");
    let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"init"), Some(&"complete")), "{all:?}");
    assert!(names.contains(&"stdout") && names.contains(&"stderr") && names.contains(&"result"), "{all:?}");
    for at in 0..all.len() {
        let seen = all[at].1.parse::<i64>().expect("an id");
        let rest = events(&client, &path, &format!("Last-Event-ID: {seen}\r\n"));
        // Whoever has seen the end is told of it again; everything else comes once.
        let expected = if at + 1 == all.len() { &all[at..] } else { &all[at + 1..] };
        assert_eq!(rest, expected, "after {seen}");
    }
}

pub(crate) fn events(client: &Client, path: &str, headers: &str) -> Vec<(String, String)> {
    let stream = client.open("GET", path, headers, "").expect("a connection");
    let (mut found, mut name, mut id) = (Vec::new(), String::new(), String::new());
    for line in BufReader::new(stream).lines() {
        let line = line.expect("a line");
        if let Some(text) = line.strip_prefix("event: ") {
            text.clone_into(&mut name);
        } else if let Some(text) = line.strip_prefix("id: ") {
            text.clone_into(&mut id);
        }
        if !name.is_empty() && !id.is_empty() {
            found.push((std::mem::take(&mut name), std::mem::take(&mut id)));
        }
    }
    found
}

#[test]
fn much_output_is_bounded_and_told() {
    let (_folder, _server, client) = server();
    let id = create(&client, r#"{"limits":{"output_bytes":65536}}"#);
    for step in [
        python(&client, &id, "print('x' * 10_000_000)"),
        shell(&client, &id, "head -c 10000000 /dev/zero | tr '\\0' x"),
    ] {
        assert_eq!(step["status"]["state"], "succeeded", "{}", step["status"]);
        assert_eq!(step["result"]["stdout"].as_str().map(str::len), Some(65536));
        assert_eq!(step["result"]["stdout_truncated"], true);
    }
}

#[test]
fn requests_with_a_name_are_done_once() {
    let (folder, server, client) = server();
    let named = |client: &Client, path: &str, body: &str| {
        client.send("POST", path, "Idempotency-Key: one\r\n", body).expect("an answer")
    };
    let first = named(&client, "/v1/sessions", r#"{"ttl_seconds":600}"#);
    let again = named(&client, "/v1/sessions", r#"{"ttl_seconds":600}"#);
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(first.json()["id"], again.json()["id"]);
    let other = named(&client, "/v1/sessions", r#"{"ttl_seconds":601}"#);
    assert_eq!(other.json()["error"]["code"], "idempotency_conflict", "{other:?}");
    let id = first.json()["id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/sessions/{id}/steps?wait_ms=30000");
    let append = r#"{"command":"echo once >> count; wc -l < count"}"#;
    let (first, again) = (named(&client, &path, append), named(&client, &path, append));
    assert_eq!(first.json()["id"], again.json()["id"]);
    assert_eq!(again.json()["result"]["stdout"], "1\n", "{again:?}");
    // A kill between the start and the record: it is lost, and the same request does not run it again.
    let slow = r#"{"command":"echo twice >> count; sleep 600"}"#;
    let name = |client: &Client| {
        let path = format!("/v1/sessions/{id}/steps");
        client.send("POST", &path, "Idempotency-Key: two\r\n", slow).expect("an answer")
    };
    let started = name(&client);
    assert_eq!(started.status, 202, "{started:?}");
    server.kill();
    let server = Server::start(folder.path(), &[]);
    let client = Client::of(&server);
    let after = name(&client);
    assert_eq!(after.json()["id"], started.json()["id"], "{after:?}");
    assert_eq!(after.json()["status"]["state"], "lost", "{after:?}");
}

#[test]
fn sessions_expire_over_a_crash_and_leave_nothing() {
    let program = OwnProgram::new();
    let folder = Folder::new("sessions");
    let start = || Server::start_role(&program.path(), "serve", folder.path(), &["--slots", "32"]);
    let server = start();
    let client = Client::of(&server);
    let short = create(&client, r#"{"ttl_seconds":1}"#);
    let idle = create(&client, r#"{"ttl_seconds":600,"idle_timeout_seconds":1}"#);
    let long = create(&client, r#"{"ttl_seconds":600,"task_id":"a-task"}"#);
    let map = shell(&client, &long, "sleep 604 >/dev/null 2>&1 & cat /proc/self/uid_map");
    let group = group_of(map["result"]["stdout"].as_str().expect("an id map"));
    assert!(has_group(&group), "{group}");
    wait_until("the short one has expired", || get(&client, &short)["status"]["state"] == "ended");
    let ended = get(&client, &short);
    assert_eq!(ended["status"]["cause"], "expired", "{ended}");
    assert!(ended["status"]["last_transition_at"].as_str() >= ended["expires_at"].as_str(), "early: {ended}");
    wait_until("the idle one has ended", || get(&client, &idle)["status"]["cause"] == "idle");
    let refused = client.post(&format!("/v1/sessions/{short}/steps"), r#"{"command":"true"}"#);
    assert_eq!(
        (refused.status, &refused.json()["error"]["code"]),
        (409, &json!("wrong_state")),
        "{refused:?}"
    );
    assert_eq!(refused.json()["error"]["details"]["cause"], "expired");
    let ready = client.get("/v1/sessions?state=ready").json();
    assert_eq!(ready["sessions"].as_array().map(Vec::len), Some(1), "{ready}");
    let of_task = client.get("/v1/sessions?task_id=a-task").json();
    assert_eq!(of_task["sessions"][0]["id"], long.as_str(), "{of_task}");
    server.kill();
    program.wait_until_gone();
    wait_until("its group is gone", || !has_group(&group));
    assert_eq!(processes_with("604"), 0);
    let server = start();
    let client = Client::of(&server);
    let lost = get(&client, &long);
    assert_eq!(
        (&lost["status"]["state"], &lost["status"]["cause"]),
        (&json!("ended"), &json!("lost")),
        "{lost}"
    );
    assert_eq!(get(&client, &short)["status"]["cause"], "expired");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_deleted_session_is_gone_at_once() {
    let (_folder, server, client) = server();
    let id = create(&client, r#"{"metadata":{"for":"me"}}"#);
    assert_eq!(get(&client, &id)["metadata"]["for"], "me");
    shell(&client, &id, "sleep 601 & sleep 602 & true");
    let running = begin(&client, &id, &json!({"command": ["sleep", "603"]}));
    let sleeping = || ["601", "602", "603"].map(processes_with).iter().sum::<usize>();
    wait_until("they sleep", || sleeping() == 3);
    assert_eq!(delete(&client, &format!("/v1/sessions/{id}")).status, 204);
    assert_eq!(sleeping(), 0, "when it is answered, nothing runs any more");
    let ended = get(&client, &id);
    assert_eq!((&ended["status"]["state"], &ended["status"]["cause"]), (&json!("ended"), &json!("deleted")));
    assert_eq!(client.get(&format!("/v1/sessions/{id}/steps/{running}")).status, 404);
    assert_eq!(delete(&client, &format!("/v1/sessions/{id}")).status, 204);
    assert_eq!(client.get(&format!("/v1/sessions/{id}")).status, 404);
    let audit = client.get(&format!("/v1/audit?resource={id}")).json();
    let kinds: Vec<_> =
        audit["entries"].as_array().expect("entries").iter().map(|entry| entry["kind"].clone()).collect();
    // One whose sandbox took its time was noted as ready, too.
    let kinds: Vec<_> = kinds.into_iter().filter(|kind| kind != "session.ready").collect();
    assert_eq!(kinds, ["session.created", "session.deleted"]);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_deadline_is_put_off_and_never_nearer() {
    let (_folder, _server, client) = server();
    let id = create(&client, r#"{"ttl_seconds":600}"#);
    let before = get(&client, &id)["expires_at"].as_str().expect("a time").to_owned();
    let extend = |body: &str| client.post(&format!("/v1/sessions/{id}/extend"), body);
    assert_eq!(extend(r#"{"ttl_seconds":5}"#).json()["expires_at"], before.as_str());
    let later = extend(r#"{"ttl_seconds":3600}"#).json()["expires_at"].as_str().expect("a time").to_owned();
    assert!(later > before);
    let absolute = extend(&format!(r#"{{"expires_at":"{later}"}}"#));
    assert_eq!(absolute.json()["expires_at"], later.as_str(), "{absolute:?}");
    for body in [r#"{}"#, r#"{"ttl_seconds":0}"#, r#"{"ttl_seconds":99999999}"#, r#"{"expires_at":"soon"}"#] {
        assert_eq!(extend(body).status, 422, "{body}");
    }
}

#[test]
fn files_go_in_and_out() {
    let (_folder, _server, client) = server();
    let id = create(&client, "{}");
    let files = format!("/v1/sessions/{id}/files");
    let put = |path: &str, body: &str| {
        client.send("PUT", &format!("{files}?path={path}"), "", body).expect("an answer")
    };
    assert_eq!(put("a/b/c.txt", "0123456789").status, 200);
    assert_eq!(
        shell(&client, &id, "cat a/b/c.txt; stat -c ' %a %u' a/b/c.txt")["result"]["stdout"],
        "0123456789 644 1000\n"
    );
    assert_eq!(put("a/b/c.txt", "other").status, 200);
    let read = client.get(&format!("{files}?path=/workspace/a/b/c.txt"));
    assert_eq!((read.status, read.body.as_str()), (200, "other"));
    let part = client
        .send("GET", &format!("{files}?path=a/b/c.txt"), "Range: bytes=1-3\r\n", "")
        .expect("an answer");
    assert_eq!((part.status, part.body.as_str()), (206, "the"), "{part:?}");
    assert_eq!(part.header("content-range"), Some("bytes 1-3/5"));
    let stat = client.get(&format!("{files}/stat?path=a/b/c.txt")).json();
    assert_eq!(
        (&stat["kind"], &stat["size_bytes"], &stat["mode"]),
        (&json!("file"), &json!(5), &json!("644")),
        "{stat}"
    );
    assert_eq!(client.get(&format!("{files}/stat?path=missing")).status, 404);
    assert_eq!(client.post(&format!("{files}/mkdir"), r#"{"path":"/workspace/new/er"}"#).status, 204);
    let moved = client.post(&format!("{files}/move"), r#"{"from":"a/b/c.txt","to":"new/er/d.txt"}"#);
    assert_eq!(moved.status, 204, "{moved:?}");
    let list = client.get(&format!("{files}/list?path=/workspace&depth=5")).json();
    let paths: Vec<_> =
        list["files"].as_array().expect("files").iter().map(|file| file["path"].clone()).collect();
    assert!(paths.contains(&json!("new/er/d.txt")) && !paths.contains(&json!("a/b/c.txt")), "{list}");
    assert_eq!(delete(&client, &format!("{files}?path=new")).status, 422, "a folder with something in it");
    assert_eq!(delete(&client, &format!("{files}?path=new&recursive=true")).status, 204);
    assert_eq!(client.get(&format!("{files}/stat?path=new")).status, 404);
    // No way leads out, and no link is followed.
    shell(&client, &id, "ln -s /etc/passwd link; ln -s /etc folder; mkfifo pipe");
    for path in ["link", "folder/passwd", "pipe", "/proc/self/environ", "../etc/passwd", "/dev/null"] {
        let read = client.get(&format!("{files}?path={path}"));
        assert!(matches!(read.status, 404 | 422), "{path}: {read:?}");
    }
    assert!(matches!(put("folder/x", "y").status, 404 | 422));
    assert!(matches!(put("/usr/bin/x", "y").status, 404 | 422));
    let replaced = put("link", "mine");
    assert_eq!(replaced.status, 200, "{replaced:?}");
    assert_eq!(
        shell(&client, &id, "cat link; test -L link || echo ' plain'")["result"]["stdout"],
        "mine plain\n"
    );
    // An upload that is cut off leaves the old file.
    put("whole", "old");
    let mut half = client.announce("PUT", &format!("{files}?path=whole"), 1 << 20).expect("a connection");
    half.write_all(&[b'n'; 1000]).expect("a part");
    let drafts = || shell(&client, &id, "ls -A | grep -c part$")["result"]["stdout"].clone();
    wait_until("it has begun", || drafts() == "1\n");
    drop(half);
    wait_until("what came of it is gone", || drafts() == "0\n");
    assert_eq!(client.get(&format!("{files}?path=whole")).body, "old");
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    let (_folder, _server, client) = server();
    for (body, field, code) in [
        (r#"{"snapshot":"base"}"#, "snapshot", "invalid"),
        (r#"{"profile":"x"}"#, "profile", "unsupported"),
        (r#"{"image":"debian"}"#, "image", "unsupported"),
        (r#"{"ttl_seconds":0}"#, "ttl_seconds", "invalid"),
        (r#"{"ttl_seconds":999999999}"#, "ttl_seconds", "invalid"),
        (r#"{"idle_timeout_seconds":0}"#, "idle_timeout_seconds", "invalid"),
        (r#"{"idle_timeout_seconds":9223372036854775808}"#, "idle_timeout_seconds", "invalid"),
        (r#"{"limits":{"memory_bytes":1}}"#, "limits.memory_bytes", "invalid"),
        (r#"{"env":{"":"x"}}"#, "env", "invalid"),
    ] {
        let answer = client.post("/v1/sessions", body);
        assert_eq!(answer.status, 422, "{body}: {answer:?}");
        let error = &answer.json()["error"];
        assert_eq!(
            (&error["code"], &error["details"]["field"]),
            (&json!(code), &json!(field)),
            "{body}: {error}"
        );
    }
    let id = create(&client, "{}");
    for body in [r#"{}"#, r#"{"language":"cobol","code":"1"}"#, r#"{"command":"x","context":"a b"}"#] {
        assert_eq!(client.post(&format!("/v1/sessions/{id}/steps"), body).status, 422, "{body}");
    }
    for path in ["/v1/sessions/ses-aaaaaaaaaaaaaaaa", "/v1/sessions/ses-aaaaaaaaaaaaaaaa/steps"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
}

/// What no sandbox can be made with is refused before anything is kept, by name and with what would be enough.
#[test]
fn limits_that_no_sandbox_can_have_are_refused_by_name() {
    let (_folder, _server, client) = server();
    for (limits, field, value, least) in [
        (json!({"disk_bytes": 0}), "limits.disk_bytes", "0", "4096"),
        (json!({"disk_bytes": 4095}), "limits.disk_bytes", "4095", "4096"),
        (json!({"memory_bytes": 4194303}), "limits.memory_bytes", "4194303", "4194304"),
        (json!({"pids": 0}), "limits.pids", "0", "from 1"),
        (json!({"cpus": 0}), "limits.cpus", "0", "from 0.01"),
        (json!({"cpus": 0.009}), "limits.cpus", "0.009", "from 0.01"),
        (json!({"output_bytes": 0}), "limits.output_bytes", "0", "more than 0"),
    ] {
        let session = json!({"limits": limits}).to_string();
        let job = json!({"command": "true", "limits": limits}).to_string();
        for (path, body) in [("/v1/sessions", session), ("/v1/jobs?wait_ms=1000", job)] {
            let answer = client.post(path, &body);
            let error = answer.json()["error"].clone();
            assert_eq!((answer.status, &error["code"]), (422, &json!("invalid")), "{body}: {error}");
            assert_eq!(
                (&error["details"]["field"], &error["details"]["value"]),
                (&json!(field), &json!(value))
            );
            assert!(error["remediation"].as_str().is_some_and(|fix| fix.contains(least)), "{error}");
        }
    }
    assert_eq!(client.get("/v1/sessions").json()["sessions"], json!([]), "nothing is kept");
    assert_eq!(client.get("/v1/jobs").json()["jobs"], json!([]), "nothing is kept");
    // The least of each is enough, alone and together; so is a disk that is not in memory.
    for limits in [
        json!({"memory_bytes": 4194304, "disk_bytes": 4096, "pids": 1, "cpus": 0.01, "output_bytes": 1}),
        json!({"memory_bytes": 4194304, "disk_bytes": 2097153}),
    ] {
        create(&client, &json!({"limits": limits}).to_string());
        let job =
            client.post("/v1/jobs?wait_ms=20000", &json!({"command": "true", "limits": limits}).to_string());
        assert_eq!(job.json()["status"]["state"], "succeeded", "{limits}: {job:?}");
    }
}

#[test]
fn a_quota_of_sandboxes_is_shared_with_jobs() {
    let (_folder, _server, client) = server();
    let tenant = client.post("/v1/tenants", r#"{"name":"small","quotas":{"max_running":1}}"#).json();
    let key = json!({"name": "k", "scopes": ["*"], "tenant": tenant["id"]}).to_string();
    let secret = client.post("/v1/keys", &key).json()["secret"].as_str().expect("a secret").to_owned();
    let theirs = client.with_key(&secret);
    let id = create(&theirs, "{}");
    let over = theirs.post("/v1/sessions", "{}");
    assert_eq!(
        (over.status, &over.json()["error"]["details"]["quota"]),
        (429, &json!("max_running")),
        "{over:?}"
    );
    let job = theirs.post("/v1/jobs", r#"{"command":["true"]}"#).json();
    assert_eq!(job["status"]["state"], "queued", "{job}");
    // Another tenant's session is nobody's business.
    assert_eq!(client.get(&format!("/v1/sessions/{id}")).status, 404);
    assert_eq!(delete(&theirs, &format!("/v1/sessions/{id}")).status, 204);
    let path = format!("/v1/jobs/{}", job["id"].as_str().expect("an id"));
    wait_until("the job has its turn", || theirs.get(&path).json()["status"]["state"] == "succeeded");
}

#[test]
fn a_terminal_is_typed_into_and_come_back_to() {
    let (_folder, _server, client) = server();
    let id = create(&client, "{}");
    let all = format!("/v1/sessions/{id}/processes");
    let started = client.post(
        &all,
        r#"{"command":["bash","--norc","-i"],"terminal":{"rows":24,"columns":80},"env":{"PS1":"> "}}"#,
    );
    assert_eq!(started.status, 201, "{started:?}");
    let one = format!("{all}/{}", started.json()["number"]);
    let now = || client.get(&format!("{one}/output?follow=false")).body;
    let type_in = |text: &str| assert_eq!(client.post(&format!("{one}/input"), text).status, 204);
    type_in("echo $((6*7)); tty\n");
    wait_until("it answers", || now().contains("42") && now().contains("/dev/pts/"));
    // Not before the shell runs something: it writes back the size that it has read before each prompt.
    type_in("echo looks-$((1+1)); until stty size | grep '^30 101$'; do sleep 0.1; done | tr ' ' x\n");
    wait_until("it looks", || now().contains("looks-2"));
    assert_eq!(client.post(&format!("{one}/resize"), r#"{"rows":30,"columns":101}"#).status, 204);
    wait_until("it has its new size", || now().contains("30x101"));
    // Whoever comes back goes on from where they were.
    let ids = |text: &str| {
        text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse::<u64>().ok()).collect::<Vec<_>>()
    };
    let seen = ids(&now());
    let middle = seen[seen.len() / 2];
    let header = format!("Last-Event-ID: {middle}\r\n");
    let rest =
        client.send("GET", &format!("{one}/output?follow=false"), &header, "").expect("an answer").body;
    assert_eq!(ids(&rest)[..], seen[seen.len() / 2 + 1..], "{rest}");
    // A job in it is interrupted as by hand, and the shell goes on.
    type_in("sleep 605\n");
    wait_until("it sleeps", || processes_with("605") == 1);
    type_in("\u{3}");
    wait_until("it was interrupted", || processes_with("605") == 0);
    type_in("exit 3\n");
    let end = client.get(&format!("{one}/output")).body;
    assert!(end.contains("event: exit") && end.contains(r#""outcome":{"kind":"exited","code":3}"#), "{end}");
    let late = client.post(&format!("{one}/input"), "more");
    assert_eq!(late.status, 409, "{late:?}");
    let listed = client.get(&all).json();
    assert_eq!(listed["processes"][0]["outcome"]["code"], 3, "{listed}");
}

#[test]
fn a_process_with_pipes_is_fed_signaled_and_timed() {
    let (_folder, _server, client) = server();
    let id = create(&client, "{}");
    let all = format!("/v1/sessions/{id}/processes");
    let start = |body: &str| {
        let started = client.post(&all, body);
        assert_eq!(started.status, 201, "{started:?}");
        format!("{all}/{}", started.json()["number"])
    };
    let cat = start(r#"{"command":["tr","a-z","A-Z"]}"#);
    assert_eq!(client.post(&format!("{cat}/input?close=true"), "loud").status, 204);
    let end = client.get(&format!("{cat}/output")).body;
    assert!(end.contains(r#""text":"LOUD""#) && end.contains("event: exit"), "{end}");
    let sleep = start(r#"{"command":["sleep","606"]}"#);
    assert_eq!(client.post(&format!("{sleep}/signal"), r#"{"signal":15}"#).status, 204);
    let end = client.get(&format!("{sleep}/output")).body;
    assert!(end.contains(r#""outcome":{"kind":"signaled","signal":15}"#), "{end}");
    let late = start(r#"{"command":["sleep","607"],"timeout_ms":200}"#);
    assert!(client.get(&format!("{late}/output")).body.contains("timed_out"));
    for (path, body, status) in [
        ("signal", r#"{"signal":0}"#, 422),
        ("signal", r#"{"signal":65}"#, 422),
        ("resize", r#"{"rows":0,"columns":1}"#, 422),
        ("resize", r#"{"rows":1,"columns":1}"#, 409),
    ] {
        assert_eq!(client.post(&format!("{late}/{path}"), body).status, status, "{path} {body}");
    }
    assert_eq!(client.get(&format!("{all}/99/output")).status, 404);
    assert_eq!(client.post(&all, r#"{"command":["no-such-program"]}"#).status, 422);
}
