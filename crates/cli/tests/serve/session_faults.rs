//! Kills of a server in the middle of what sessions do, and what must hold afterwards: nothing that was acknowledged is
//! lost, no step ran twice, no session is half of anything, and nothing is left on the machine.

use crate::client::Client;
use crate::invariants;
use crate::machine::{OwnProgram, group_of, has_group, wait_until};
use crate::pausing::{ROOMY, pause, post, resume, stdout, writings};
use crate::server::{Folder, Server};
use crate::sessions::{begin, create, events, get, shell};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the server is killed; a soak asks for more.
fn kills() -> usize {
    std::env::var("COFFERDAM_SESSION_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(12)
}

/// What is going on when the server is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Middle {
    Steps,
    Output,
    Upload,
    Freeze,
    Archive,
    Fork,
}

impl Middle {
    const ALL: [Self; 6] = [Self::Steps, Self::Archive, Self::Output, Self::Fork, Self::Upload, Self::Freeze];
}

/// A session whose server is about to be killed, and all that its clients were told.
struct Victim {
    id: String,
    /// Of its sandbox, on the machine.
    group: String,
    /// The names under which steps were asked for, and their ids.
    steps: Vec<(String, String)>,
    /// The step whose output is followed, and the numbers of what was seen of it.
    followed: Option<(String, Vec<i64>)>,
}

/// Requests that the kill cuts off.
enum Pending {
    Steps(JoinHandle<Vec<(String, String)>>),
    Output(String, JoinHandle<Vec<(String, String)>>),
    Asked(#[allow(dead_code)] TcpStream),
}

const OLD: &str = "the old file";
const FILL: &str = "head -c 6000000 /dev/urandom > large; sha256sum large > sum; mkdir d; touch d/in; \
                    cat /proc/self/uid_map";

#[test]
fn kills_in_the_middle_of_sessions_leave_nothing_half() {
    let (folder, program) = (Folder::new("session-kills"), OwnProgram::new());
    let start = || Server::start_role(&program.path(), "serve", folder.path(), &ROOMY);
    let mut server = start();
    let bystander = create(&Client::of(&server), "{}");
    shell(&Client::of(&server), &bystander, "echo kept > file");
    pause(&Client::of(&server), &bystander, "archive");
    let before = names(folder.path());
    let (mut acknowledged, mut kept) = (vec![bystander.clone()], 0);
    for kill in 0..kills() {
        let middle = Middle::ALL[kill % Middle::ALL.len()];
        let client = Client::of(&server);
        let mut victim = make(&client, kill);
        let pending = begin_middle(&client, &victim.id, middle, kill);
        // From at once to after most of it.
        std::thread::sleep(Duration::from_millis((kill as u64 * 37) % 150));
        server.kill();
        end_middle(pending, &mut victim);
        program.wait_until_gone();
        check_machine(folder.path(), &victim, &before);
        server = start();
        let client = Client::of(&server);
        kept += usize::from(check_session(&client, folder.path(), &victim, middle));
        check_steps(&client, &victim);
        check_others(&client, &victim, &bystander, middle);
        acknowledged.push(victim.id);
    }
    let client = Client::of(&server);
    resume(&client, &bystander);
    assert_eq!(stdout(&shell(&client, &bystander, "cat file")), "kept\n");
    assert_eq!(server.stop(), Some(0));
    let counts = invariants::check_sessions(folder.path(), &acknowledged);
    println!("{} kills, {kept} kept, {counts:?}", kills());
    assert!(counts.lost > 0, "the kills hit nothing: {counts:?}");
    program.wait_until_gone();
}

fn make(client: &Client, kill: usize) -> Victim {
    let id = create(client, &json!({"ttl_seconds": 600, "metadata": {"kill": kill.to_string()}}).to_string());
    let map = shell(client, &id, FILL);
    let written = client.send("PUT", &file_path(&id), "", OLD).expect("an answer");
    assert_eq!(written.status, 200, "{written:?}");
    Victim { group: group_of(stdout(&map)), id, steps: Vec::new(), followed: None }
}

fn file_path(id: &str) -> String {
    format!("/v1/sessions/{id}/files?path=/workspace/file")
}

fn begin_middle(client: &Client, id: &str, middle: Middle, kill: usize) -> Pending {
    let ask = |verb: &str, body: Value| {
        let path = format!("/v1/sessions/{id}/{verb}");
        Pending::Asked(client.open("POST", &path, "", &body.to_string()).expect("a request"))
    };
    match middle {
        Middle::Steps => {
            let (client, id) = (client.clone(), id.to_owned());
            Pending::Steps(std::thread::spawn(move || ask_steps(&client, &id, kill)))
        }
        Middle::Output => {
            let line = "i=0; while :; do echo $i; i=$((i+1)); sleep 0.005; done";
            let step = begin(client, id, &json!({"command": line}));
            let path = format!("/v1/sessions/{id}/steps/{step}/output");
            let client = client.clone();
            Pending::Output(step, std::thread::spawn(move || seen(&client, &path)))
        }
        Middle::Upload => {
            cut_upload(client, id);
            let mut stream = client.announce("PUT", &file_path(id), 8 << 20).expect("a connection");
            stream.write_all(&vec![b'n'; 3 << 20]).expect("a part of it");
            Pending::Asked(stream)
        }
        Middle::Freeze => ask("pause", json!({"mode": "freeze"})),
        Middle::Archive => ask("pause", json!({"mode": "archive"})),
        Middle::Fork => ask("fork", json!({"count": 2})),
    }
}

/// A client that goes away in the middle leaves the old file, and nothing of the new one.
fn cut_upload(client: &Client, id: &str) {
    let listed = |line: &str| stdout(&shell(client, id, line)).to_owned();
    let before = listed("ls -A");
    let mut stream = client.announce("PUT", &file_path(id), 8 << 20).expect("a connection");
    stream.write_all(&vec![b'n'; 1 << 20]).expect("a part of it");
    wait_until("some of it has come", || listed("ls -A") != before);
    drop(stream);
    wait_until("what had come is gone", || listed("ls -A") == before);
    assert_eq!(listed("cat file"), OLD);
}

/// Asks for steps, each under a name of its own, until the server is gone; returns what was acknowledged.
fn ask_steps(client: &Client, id: &str, kill: usize) -> Vec<(String, String)> {
    let mut steps = Vec::new();
    for number in 0.. {
        let name = format!("kill-{kill}-{number}");
        let path = format!("/v1/sessions/{id}/steps?wait_ms={}", if number % 2 == 0 { 0 } else { 200 });
        let answer = client.send("POST", &path, &format!("Idempotency-Key: {name}\r\n"), STEP);
        match answer {
            Ok(answer) if matches!(answer.status, 200 | 202) => {
                steps.push((name, answer.json()["id"].as_str().expect("an id").to_owned()));
            }
            Ok(answer) => panic!("{answer:?}"),
            // What was cut off was not acknowledged, but may have been kept.
            Err(_) => return steps,
        }
    }
    steps
}

const STEP: &str = r#"{"command":"echo ran; sleep 0.05"}"#;

/// The events of a stream that is cut off.
fn seen(client: &Client, path: &str) -> Vec<(String, String)> {
    std::panic::catch_unwind(|| events(client, path, "")).unwrap_or_default()
}

fn end_middle(pending: Pending, victim: &mut Victim) {
    match pending {
        Pending::Steps(asking) => victim.steps = asking.join().expect("a client"),
        Pending::Output(step, following) => {
            let seen = following.join().expect("a client");
            let numbers = seen.iter().filter_map(|(_, id)| id.parse().ok()).collect();
            victim.followed = Some((step, numbers));
        }
        Pending::Asked(_) => {}
    }
}

/// The names in a data folder that are not the contents of something.
fn names(data: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(data).expect("the folder").flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.starts_with("cofferdam.db-"));
    names.sort();
    names
}

/// I4, while no server runs.
fn check_machine(data: &Path, victim: &Victim, before: &[String]) {
    wait_until("I4: its group is gone", || !has_group(&victim.group));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(!mounts.contains(&*data.to_string_lossy()), "I4: something is mounted: {mounts}");
    assert_eq!(names(data), before, "I4: something is left in the folder");
}

/// Whether it was kept, whole. Otherwise it is lost.
fn check_session(client: &Client, data: &Path, victim: &Victim, middle: Middle) -> bool {
    let session = get(client, &victim.id);
    match session["status"]["state"].as_str() {
        Some("paused") => {
            assert_eq!(
                (middle, &session["pause"]["mode"]),
                (Middle::Archive, &json!("archive")),
                "{session}"
            );
            resume(client, &victim.id);
            let whole = shell(client, &victim.id, "sha256sum -c sum && ls d && cat file");
            assert_eq!(stdout(&whole), format!("large: OK\nin\n{OLD}"), "{whole}");
            true
        }
        Some("ended") => {
            assert_eq!(session["status"]["cause"], "lost", "{middle:?}: {session}");
            wait_until("nothing of it is left", || !writings(data).contains(&victim.id));
            let refused = post(client, &victim.id, "steps", &json!({"command": "true"}));
            assert_eq!((refused.status, &refused.json()["error"]["code"]), (409, &json!("wrong_state")));
            false
        }
        _ => panic!("{middle:?}: neither here nor there: {session}"),
    }
}

/// What was acknowledged is there and has ended, once; asked for again under its name, it is the same.
fn check_steps(client: &Client, victim: &Victim) {
    let path = format!("/v1/sessions/{}/steps", victim.id);
    for (name, step) in &victim.steps {
        let kept = client.get(&format!("{path}/{step}")).json();
        match kept["status"]["state"].as_str() {
            Some("succeeded") => assert_eq!(kept["result"]["stdout"], "ran\n", "{kept}"),
            Some("lost") => {}
            _ => panic!("a step of a dead server: {kept}"),
        }
        let again = client.send("POST", &path, &format!("Idempotency-Key: {name}\r\n"), STEP);
        let again = again.expect("an answer").json();
        assert_eq!((&again["id"], &again["status"]), (&kept["id"], &kept["status"]), "{again}");
    }
    if let Some((step, numbers)) = &victim.followed {
        let kept = events(client, &format!("{path}/{step}/output"), "");
        let kept: Vec<i64> = kept.iter().filter_map(|(_, id)| id.parse().ok()).collect();
        let lost = numbers.iter().find(|number| !kept.contains(number));
        assert_eq!(lost, None, "it was seen, and is not kept: {} of {}", kept.len(), numbers.len());
        assert!(kept.is_sorted(), "{kept:?}");
    }
}

/// No session is on its way to anything, and the one that was archived before is as it was.
fn check_others(client: &Client, victim: &Victim, bystander: &str, middle: Middle) {
    let listed = client.get("/v1/sessions?limit=200").json();
    for session in listed["sessions"].as_array().expect("sessions") {
        let id = session["id"].as_str().expect("an id");
        if id == victim.id {
            continue;
        }
        let (state, cause) = (session["status"]["state"].as_str(), session["status"]["cause"].as_str());
        match state {
            Some("ended") => assert!(cause == Some("lost"), "{middle:?}: {session}"),
            Some("paused") => assert_eq!(id, bystander, "{session}"),
            _ => panic!("{middle:?}: it has no sandbox: {session}"),
        }
    }
    assert_eq!(get(client, bystander)["pause"]["mode"], "archive");
}
