//! Sessions that stand still: what they keep, where that survives, and what is left when the server is killed.

use crate::client::{Answer, Client};
use crate::invariants;
use crate::machine::{OwnProgram, group_of, has_group, processes_with, wait_until};
use crate::server::{Folder, Server, program};
use crate::sessions::{begin, create, delete, get, python, shell};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub(crate) const ROOMY: [&str; 4] = ["--slots", "32", "--memory", "64g"];

pub(crate) fn post(client: &Client, session: &str, verb: &str, body: &Value) -> Answer {
    client.post(&format!("/v1/sessions/{session}/{verb}"), &body.to_string())
}

pub(crate) fn pause(client: &Client, session: &str, mode: &str) -> Value {
    let answer = post(client, session, "pause", &json!({"mode": mode}));
    assert_eq!(answer.status, 200, "{answer:?}");
    let session = answer.json();
    assert_eq!(session["status"]["state"], "paused", "{session}");
    assert_eq!(session["pause"]["mode"], mode, "{session}");
    session
}

pub(crate) fn resume(client: &Client, session: &str) -> Value {
    let answer = client.send("POST", &format!("/v1/sessions/{session}/resume"), "", "").expect("an answer");
    assert_eq!(answer.status, 200, "{answer:?}");
    let session = answer.json();
    assert_eq!(session["status"]["state"], "ready", "{session}");
    session
}

pub(crate) fn stdout(step: &Value) -> &str {
    step["result"]["stdout"].as_str().unwrap_or_else(|| panic!("no output: {step}"))
}

/// How many writings of files lie in the place of artifacts.
pub(crate) fn writings(data: &Path) -> Vec<String> {
    let folders = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().is_dir()).map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let tenants = folders(&data.join("artifacts"));
    let owners = tenants.iter().flat_map(|tenant| folders(tenant));
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    owners.flat_map(|owner| folders(&owner).into_iter().map(move |_| name(&owner))).collect()
}

#[test]
fn a_frozen_session_stands_still_and_goes_on() {
    let folder = Folder::new("freeze");
    let server = Server::start(folder.path(), &ROOMY);
    let client = Client::of(&server);
    let id = create(&client, "{}");
    python(&client, &id, "x = 41");
    let counts = "while :; do echo x >> count; sleep 0.01; done & until test -s count; do :; done";
    shell(&client, &id, counts);
    let paused = pause(&client, &id, "freeze");
    assert_eq!(paused["pause"]["not_kept"], json!([]), "{paused}");
    let refused = post(&client, &id, "steps", &json!({"command": "true"}));
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "wrong_state");
    assert!(refused.body.contains("resume"), "the error names what to do: {refused:?}");
    let again = post(&client, &id, "pause", &json!({"mode": "freeze"}));
    assert_eq!(again.status, 409, "{again:?}");
    // Far longer than the loop takes: the file would have grown.
    std::thread::sleep(Duration::from_millis(400));
    resume(&client, &id);
    let lines = |line: &str| stdout(&shell(&client, &id, line)).trim().parse::<u64>().expect("a number");
    let at_once = lines("wc -l < count");
    assert!(at_once < 60, "it went on while it was paused: {at_once}");
    assert!(lines("sleep 0.5; wc -l < count") > at_once, "it goes on");
    let known = python(&client, &id, "x + 1");
    assert_eq!(known["result"]["results"][0]["data"]["text/plain"], "42", "{known}");
    assert_eq!(known["result"]["kernel_restarted"], false, "{known}");
    let none = client.send("POST", &format!("/v1/sessions/{id}/resume"), "", "").expect("an answer");
    assert_eq!(none.status, 409, "it is not paused: {none:?}");
    assert_eq!(server.stop(), Some(0));
}

/// Files of every kind that a workspace may have, and what each should be afterwards.
const MAKE: &str = "mkdir -p a/b empty closed && echo text > a/b/file && chmod 640 a/b/file && \
    printf '#!/bin/sh\\necho ran\\n' > run && chmod 755 run && cp run set && chmod 6755 set && \
    ln -s a/b/file near && ln -s /etc/passwd far && ln -s nowhere dangling && ln a/b/file second && \
    head -c 5000000 /dev/urandom > large && touch -d 2020-02-03T04:05:06Z old && mkfifo pipe && \
    echo kept > closed/in && chmod 555 closed && : > 'odd name' && truncate -s 3M sparse";
const LOOK: &str = "stat -c '%n %F %a %s' a a/b a/b/file empty closed closed/in run set near far dangling second \
    large 'odd name' sparse && stat -c %y old && readlink near far dangling && ./run && \
    cat near closed/in && sha256sum large sparse | cut -c-64";

#[test]
fn an_archived_session_comes_back_with_its_files() {
    let folder = Folder::new("archive");
    let server = Server::start(folder.path(), &["--slots", "1", "--memory", "64g"]);
    let client = Client::of(&server);
    let id = create(&client, r#"{"env":{"COLOUR":"green"},"metadata":{"a":"b"}}"#);
    let made = shell(&client, &id, MAKE);
    assert_eq!(made["status"]["state"], "succeeded", "{made}");
    python(&client, &id, "x = 41");
    shell(&client, &id, "echo elsewhere > /tmp/there; sleep 918273 & true");
    let before = shell(&client, &id, LOOK);
    assert_eq!(before["status"]["state"], "succeeded", "{before}");
    assert_eq!(client.post("/v1/sessions", "{}").status, 503, "there is one place, and it is taken");
    let paused = pause(&client, &id, "archive");
    assert!(paused["pause"]["kept"].to_string().contains("files"), "{paused}");
    assert!(paused["pause"]["not_kept"].to_string().contains("processes"), "{paused}");
    assert_eq!(paused["sandbox_id"], Value::Null, "{paused}");
    assert_eq!(processes_with("918273"), 0, "nothing of it runs");
    assert_eq!(writings(folder.path()), std::slice::from_ref(&id));
    // Its place is free for another.
    let other = create(&client, "{}");
    let full = client.send("POST", &format!("/v1/sessions/{id}/resume"), "", "").expect("an answer");
    assert_eq!(full.status, 503, "{full:?}");
    assert_eq!(get(&client, &id)["status"]["state"], "paused", "it is as it was");
    assert_eq!(delete(&client, &format!("/v1/sessions/{other}")).status, 204);
    let resumed = resume(&client, &id);
    assert!(resumed["pause"]["not_kept"].to_string().contains("interpreters"), "{resumed}");
    assert_eq!((&resumed["metadata"]["a"], &resumed["steps"]), (&json!("b"), &json!(4)), "{resumed}");
    let after = shell(&client, &id, LOOK);
    // Set-id bits are not put back, and everything else is.
    let expected = stdout(&before).replace("set regular file 6755", "set regular file 755");
    assert_eq!(stdout(&after), expected, "{after}");
    let rest =
        shell(&client, &id, "ls /tmp/there pipe; echo $COLOUR $CYNODE_STEP; stat -c %U . a/b/file large");
    assert_eq!(stdout(&rest).lines().next(), Some("green 6"), "{rest}");
    let mut owners: Vec<_> = stdout(&rest).lines().skip(1).collect();
    owners.dedup();
    assert_eq!(owners.len(), 1, "all of it is the session's user's: {rest}");
    let known = python(&client, &id, "'x' in globals()");
    assert_eq!(known["result"]["results"][0]["data"]["text/plain"], "False", "{known}");
    // What was kept of it is not kept any longer than it is needed.
    wait_until("the archive goes", || writings(folder.path()).is_empty());
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn what_runs_is_not_paused_under_it_and_what_cannot_be_kept_stays() {
    let folder = Folder::new("unkept");
    let server = Server::start(folder.path(), &ROOMY);
    let client = Client::of(&server);
    let id = create(&client, "{}");
    let running = begin(&client, &id, &json!({"command": "sleep 600"}));
    for mode in ["freeze", "archive"] {
        let refused = post(&client, &id, "pause", &json!({"mode": mode}));
        assert_eq!(refused.status, 409, "{refused:?}");
        assert!(refused.body.contains("1 steps that run or wait"), "{refused:?}");
    }
    assert_eq!(get(&client, &id)["status"]["state"], "ready");
    let interrupt = format!("/v1/sessions/{id}/steps/{running}/interrupt");
    assert_eq!(client.send("POST", &interrupt, "", "").expect("an answer").status, 202);
    wait_until("the step has ended", || {
        let step = client.get(&format!("/v1/sessions/{id}/steps/{running}")).json();
        step["status"]["state"] == "cancelled"
    });
    // A name that is no text, a folder that its own user cannot read, and a file that is larger than any disk.
    for (make, undo) in [
        ("printf x > \"$(printf 'a\\377')\"", "rm -f a*"),
        ("mkdir dark && touch dark/in && chmod 000 dark", "chmod 700 dark; rm -r dark"),
        ("truncate -s 900T huge", "rm huge"),
    ] {
        let made = shell(&client, &id, make);
        assert_eq!(made["status"]["state"], "succeeded", "{made}");
        let refused = post(&client, &id, "pause", &json!({"mode": "archive"}));
        assert_eq!(refused.status, 422, "{make}: {refused:?}");
        let undone = shell(&client, &id, undo);
        assert_eq!(undone["status"]["state"], "succeeded", "it is as it was: {undone}");
    }
    pause(&client, &id, "archive");
    assert_eq!(post(&client, &id, "pause", &json!({"mode": "other"})).status, 422);
    assert_eq!(post(&client, "ses-aaaaaaaaaaaaaaaa", "pause", &json!({"mode": "freeze"})).status, 404);
    assert_eq!(server.stop(), Some(0));
    assert_eq!(writings(folder.path()), [id], "nothing is left of what was refused");
}

#[test]
fn an_archived_session_outlives_the_server_and_a_frozen_one_does_not() {
    let folder = Folder::new("outlives");
    let start = || Server::start(folder.path(), &ROOMY);
    let server = start();
    let client = Client::of(&server);
    let make = |body: &str| {
        let id = create(&client, body);
        shell(&client, &id, "echo mine > file");
        id
    };
    let (archived, frozen, ready) = (make("{}"), make("{}"), make("{}"));
    let drained = make(r#"{"on_drain":"archive"}"#);
    pause(&client, &archived, "archive");
    pause(&client, &frozen, "freeze");
    server.kill();
    let server = start();
    let client = Client::of(&server);
    for id in [&frozen, &ready, &drained] {
        let session = get(&client, id);
        assert_eq!(session["status"]["cause"], "lost", "a kill is no drain: {session}");
    }
    resume(&client, &archived);
    assert_eq!(stdout(&shell(&client, &archived, "cat file")), "mine\n");
    // A drain keeps what asked for it.
    let drained = create(&client, r#"{"on_drain":"archive"}"#);
    shell(&client, &drained, "echo drained > file");
    assert_eq!(server.stop(), Some(0));
    let server = start();
    let client = Client::of(&server);
    assert_eq!(get(&client, &archived)["status"]["cause"], "lost");
    assert_eq!(get(&client, &drained)["pause"]["mode"], "archive");
    resume(&client, &drained);
    assert_eq!(stdout(&shell(&client, &drained, "cat file")), "drained\n");
    assert_eq!(client.post("/v1/sessions", r#"{"on_drain":"keep"}"#).status, 422);
    assert_eq!(server.stop(), Some(0));
}

/// On version 1 of cgroups what is frozen does not die of a kill, and its group cannot be removed.
#[test]
fn nothing_is_left_of_a_frozen_session_whose_server_was_killed() {
    for is_launcher_killed in [false, true] {
        let (folder, program) = (Folder::new("frozen-kill"), OwnProgram::new());
        let start = || Server::start_role(&program.path(), "serve", folder.path(), &ROOMY);
        let server = start();
        let client = Client::of(&server);
        let id = create(&client, "{}");
        let map = shell(&client, &id, "sleep 817263 >/dev/null 2>&1 & cat /proc/self/uid_map");
        let group = group_of(stdout(&map));
        pause(&client, &id, "freeze");
        assert!(has_group(&group), "{group}");
        if is_launcher_killed {
            // With nobody there to clean up, the next server does.
            program.kill_all();
        }
        server.kill();
        program.wait_until_gone();
        let next = is_launcher_killed.then(start);
        if let Some(next) = &next {
            create(&Client::of(next), "{}");
        }
        wait_until("its group is gone", || !has_group(&group));
        assert_eq!(processes_with("817263"), 0);
        assert!(next.is_none_or(|next| next.stop() == Some(0)));
    }
}

#[test]
fn a_session_may_be_paused_at_its_deadline() {
    let folder = Folder::new("expiry");
    let server = Server::start(folder.path(), &ROOMY);
    let client = Client::of(&server);
    let id = create(&client, r#"{"ttl_seconds":2,"on_expiry":"pause"}"#);
    let idle = create(&client, r#"{"idle_timeout_seconds":1,"on_expiry":"pause"}"#);
    let other = create(&client, r#"{"ttl_seconds":2}"#);
    shell(&client, &id, "echo mine > file");
    let running = begin(&client, &id, &json!({"command": "sleep 600"}));
    // On its way there it still has its sandbox, and cannot be resumed.
    let is_archived = |id: &str| {
        let session = get(&client, id);
        session["pause"]["mode"] == "archive" && session["sandbox_id"].is_null()
    };
    wait_until("its time is over", || is_archived(&id));
    let step = client.get(&format!("/v1/sessions/{id}/steps/{running}")).json();
    assert_eq!(step["status"]["state"], "expired", "{step}");
    wait_until("nobody used it", || is_archived(&idle));
    wait_until("the other ends", || get(&client, &other)["status"]["cause"] == "expired");
    let resumed = resume(&client, &id);
    assert_eq!(stdout(&shell(&client, &id, "cat file")), "mine\n");
    assert!(resumed["expires_at"].as_str() < get(&client, &idle)["expires_at"].as_str(), "{resumed}");
    // It has the time again that it was made with.
    wait_until("its time is over again", || is_archived(&id));
    let wrong = client.post("/v1/sessions", r#"{"on_expiry":"keep"}"#);
    assert_eq!(wrong.status, 422, "{wrong:?}");
    assert_eq!(server.stop(), Some(0));
}

/// How often something is killed; a soak asks for more.
fn kills() -> usize {
    std::env::var("COFFERDAM_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// After a kill in the middle of a pause or a resume, a session is paused with all of its files, or lost with nothing
/// left of it.
#[test]
fn a_kill_in_the_middle_of_a_pause_leaves_nothing_half() {
    let (folder, program) = (Folder::new("pause-kills"), OwnProgram::new());
    let start = || Server::start_role(&program.path(), "serve", folder.path(), &ROOMY);
    let mut kept = 0;
    for kill in 0..kills() {
        let server = start();
        let client = Client::of(&server);
        let id = create(&client, "{}");
        shell(
            &client,
            &id,
            "head -c 8000000 /dev/urandom > large; sha256sum large > sum; mkdir d; touch d/in",
        );
        let is_resume = kill % 3 == 2;
        if is_resume {
            pause(&client, &id, "archive");
        }
        let verb = if is_resume { "resume" } else { "pause" };
        let path = format!("/v1/sessions/{id}/{verb}");
        let body = if is_resume { String::new() } else { json!({"mode": "archive"}).to_string() };
        // The answer is not waited for.
        let asked = client.open("POST", &path, "", &body).expect("a request");
        std::thread::sleep(Duration::from_millis(3 + (kill as u64 * 29) % 120));
        server.kill();
        drop(asked);
        let server = start();
        let client = Client::of(&server);
        let session = get(&client, &id);
        match session["status"]["state"].as_str() {
            Some("paused") => {
                assert_eq!(session["pause"]["mode"], "archive", "{session}");
                resume(&client, &id);
                let whole = shell(&client, &id, "sha256sum -c sum && ls d");
                assert_eq!(stdout(&whole), "large: OK\nin\n", "{whole}");
                kept += 1;
            }
            Some("ended") => {
                assert_eq!(session["status"]["cause"], "lost", "{session}");
                wait_until("nothing of it is left", || !writings(folder.path()).contains(&id));
            }
            _ => panic!("neither here nor there: {session}"),
        }
        assert_eq!(delete(&client, &format!("/v1/sessions/{id}")).status, 204);
        wait_until("nothing is left", || writings(folder.path()).is_empty());
        assert_eq!(server.stop(), Some(0));
    }
    println!("{} kills, {kept} kept", kills());
    invariants::check(folder.path(), &[]);
    program.wait_until_gone();
}

fn shred_check(data: &Path, id: &str) -> (Option<i32>, String) {
    let output = Command::new(program()).args(["session", "shred-check", id, "--data"]).arg(data).output();
    let output = output.expect("a check");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn deleting_destroys_the_key_everywhere() {
    let folder = Folder::new("shred");
    let server = Server::start(folder.path(), &ROOMY);
    let client = Client::of(&server);
    let (id, other) = (create(&client, "{}"), create(&client, "{}"));
    for id in [&id, &other] {
        shell(&client, id, "echo mine > file");
        pause(&client, id, "archive");
    }
    let (code, said) = shred_check(folder.path(), &id);
    assert_eq!(code, Some(1), "it is there: {said}");
    assert!(said.contains("cofferdam.db") && said.contains("artifacts"), "{said}");
    assert_eq!(delete(&client, &format!("/v1/sessions/{id}")).status, 204);
    // While the server runs, and its log of changes is in use.
    let (code, said) = shred_check(folder.path(), &id);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(shred_check(folder.path(), &other).0, Some(1), "the other is there");
    // A backup that somebody made before would be found where it lies.
    resume(&client, &other);
    let left = || shred_check(folder.path(), &other).1;
    wait_until("what was kept of its files is gone", || !left().contains("key of its files"));
    assert!(!left().contains("artifacts:") && left().contains("key of its steps"), "{}", left());
    let noted = client.get("/v1/audit?limit=500").json();
    let of = |kind: &str| {
        let entries = noted["entries"].as_array().expect("entries");
        entries.iter().filter(|entry| entry["kind"] == kind).collect::<Vec<_>>()
    };
    assert_eq!((of("session.paused").len(), of("session.resumed").len()), (2, 1), "{noted}");
    assert!(of("session.deleted")[0]["details"].to_string().contains("key_destroyed"), "{noted}");
    assert_eq!(server.stop(), Some(0));
    assert_eq!(shred_check(folder.path(), &id).0, Some(0));
}
