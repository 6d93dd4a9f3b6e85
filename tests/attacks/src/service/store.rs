//! The store: killed, fed what is hard to keep, locked, and written to by one who slept.

use super::client::Client;
use super::server::{Folder, Ground};
use super::{Outcome, Stop, broke, broke_if, cannot, needs};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[allow(clippy::unwrap_used, dead_code)]
#[path = "../../../../crates/store/tests/store/postgres.rs"]
mod postgres;

/// How often each job was said to have ended, by the audit.
fn ends(client: &Client) -> Result<HashMap<String, usize>, Stop> {
    let mut counts = HashMap::new();
    for line in client.get("/v1/audit/export")?.text().lines() {
        let entry: Value = serde_json::from_str(line).unwrap_or_default();
        let entry = if entry["kind"].is_string() { entry } else { entry["entry"].clone() };
        if entry["kind"] == "job.finished" {
            *counts.entry(entry["resource"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    Ok(counts)
}

fn state(client: &Client, id: &str) -> Result<Option<String>, Stop> {
    Ok(client.get(&format!("/v1/jobs/{id}"))?.json()["status"]["state"].as_str().map(str::to_owned))
}

fn is_over(state: Option<&str>) -> bool {
    !matches!(state, None | Some("queued" | "running"))
}

/// Waits for a job's end.
fn end_of(client: &Client, id: &str, within: Duration) -> Result<String, Stop> {
    let began = Instant::now();
    loop {
        let state = state(client, id)?;
        if is_over(state.as_deref()) {
            return Ok(state.unwrap_or_default());
        }
        if began.elapsed() > within {
            return cannot(format!("{id} is {state:?}"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Killed at another moment each time, under load: what was acknowledged is there, and ended once.
pub(crate) fn kills(ground: &Ground) -> Outcome {
    let rounds = if ground.is_quick { 6 } else { 30 };
    let acknowledged = Mutex::new(Vec::new());
    let mut folder = ground.folder()?;
    for round in 0..rounds {
        let target = ground.start_in(folder, &[])?;
        let (client, stop) = (target.operator(), AtomicBool::new(false));
        folder = std::thread::scope(|scope| {
            for thread in 0..4 {
                let (client, stop, ids) = (&client, &stop, &acknowledged);
                scope.spawn(move || {
                    let path = if thread % 2 == 0 { "/v1/jobs" } else { "/v1/jobs?wait_ms=5000" };
                    while !stop.load(Ordering::Relaxed) {
                        let sent = client.send("POST", path, "", br#"{"command":"sleep 0.05; echo x"}"#);
                        if let Ok(answer) = sent
                            && answer.is_good()
                            && let Ok(id) = answer.word("id")
                        {
                            ids.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(id);
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(40 + (round as u64 * 67) % 400));
            let folder = target.kill();
            stop.store(true, Ordering::Relaxed);
            folder
        })?;
    }
    let target = ground.start_in(folder, &[])?;
    let client = target.operator();
    let ids = acknowledged.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    needs(ids.len() > rounds, || format!("only {} were acknowledged", ids.len()))?;
    for id in &ids {
        broke_if(state(&client, id)?.is_none(), || format!("{id} was acknowledged and is gone"))?;
    }
    for id in &ids {
        end_of(&client, id, Duration::from_secs(60))?;
    }
    let ends = ends(&client)?;
    let wrong = ids.iter().find(|id| ends.get(*id).copied() != Some(1));
    broke_if(wrong.is_some(), || format!("{wrong:?} ended {:?} times", wrong.and_then(|id| ends.get(id))))?;
    Ok(format!("{rounds} kills, {} jobs, none lost, each ended once", ids.len()))
}

/// What a job wrote, byte for byte, as it is followed.
fn written(client: &Client, id: &str) -> Result<(Vec<u8>, bool), Stop> {
    let (mut bytes, mut is_truncated) = (Vec::new(), false);
    for event in client.events(&format!("/v1/jobs/{id}/output?follow=false"))? {
        let (name, data) = event?;
        is_truncated |= name == "truncated";
        if name == "stdout" {
            match data["base64"].as_str() {
                Some(text) => {
                    bytes.extend(STANDARD.decode(text).map_err(|error| Stop::Error(error.to_string()))?)
                }
                None => bytes.extend(data["text"].as_str().unwrap_or_default().as_bytes()),
            }
        }
    }
    Ok((bytes, is_truncated))
}

/// NUL, bytes that are no text, and more than anybody keeps.
pub(crate) fn output(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let odd: Vec<u8> = (0..=255).chain([0, 0, 0xff, 0xfe, 0xed, 0xa0, 0x80]).collect();
    let code = format!("import sys; sys.stdout.buffer.write(bytes({odd:?}))");
    let job = client.run(&json!({"language": "python", "code": code}))?;
    let id = job["id"].as_str().unwrap_or_default().to_owned();
    let (bytes, _) = written(&client, &id)?;
    broke_if(bytes != odd, || {
        format!("{} bytes of {} came back as they were written", bytes.len(), odd.len())
    })?;
    let code =
        "import sys\nfor _ in range(64): sys.stdout.buffer.write(b'\\xff\\x00' * (1 << 19))\nprint('end')";
    let job = client.run(&json!({"language": "python", "code": code}))?;
    let id = job["id"].as_str().unwrap_or_default().to_owned();
    broke_if(job["status"]["state"] != "succeeded", || format!("64 MiB: {}", job["status"]))?;
    let (bytes, is_truncated) = written(&client, &id)?;
    broke_if(!is_truncated || bytes.len() > 9 << 20, || {
        format!("{} MiB are kept, and nothing says so", bytes.len() >> 20)
    })?;
    broke_if(!bytes.chunks(2).all(|pair| pair == b"\xff\x00"), || {
        "what is kept is not what was written".to_owned()
    })?;
    Ok(format!("exact to the byte; {} MiB of 64 are kept, and that is said", bytes.len() >> 20))
}

/// A file that nobody can write to, whoever has it open.
struct Immutable(PathBuf);

impl Immutable {
    fn make(path: PathBuf) -> Result<Self, Stop> {
        if !path.exists() {
            std::fs::write(&path, "")?;
        }
        let done = Command::new("chattr").arg("+i").arg(&path).output()?;
        needs(done.status.success(), || String::from_utf8_lossy(&done.stderr).into_owned())?;
        Ok(Self(path))
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        let _ = Command::new("chattr").arg("-i").arg(&self.0).status();
    }
}

/// A store that takes no writes while a job runs: nothing new is taken, and the job's end is not lost.
pub(crate) fn read_only(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let job = client.job(&json!({"command": "sleep 2; echo survived"}))?;
    let began = Instant::now();
    while state(&client, &job)?.as_deref() == Some("queued") && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let fault = Immutable::make(target.data().join("cofferdam.db-wal"))?;
    for _ in 0..3 {
        let answer = client.post("/v1/jobs", &json!({"command": ["true"]}))?;
        broke_if(answer.is_good(), || "a job is taken that cannot be kept".to_owned())?;
        let is_told = answer.status == 503 && answer.header("retry-after").is_some();
        broke_if(!is_told, || format!("it is answered with {}", answer.status))?;
    }
    // Until the job has ended, and its end cannot be written.
    std::thread::sleep(Duration::from_secs(4).saturating_sub(began.elapsed()));
    drop(fault);
    let ended = end_of(&client, &job, Duration::from_secs(60))?;
    let shown = client.get(&format!("/v1/jobs/{job}"))?.json();
    let is_whole = ended == "succeeded" && shown["result"]["stdout"] == "survived\n";
    broke_if(!is_whole, || format!("the job's end was lost: {ended}"))?;
    broke_if(client.jobs()?.len() != 1, || "something was kept that was refused".to_owned())?;
    Ok("new work refused, the end of the old kept until it could be written".to_owned())
}

/// Receives one message and answers it; its headers in small letters, and its body.
fn receive(listener: &TcpListener, answer: &str) -> Result<(String, String), Stop> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let n = stream.read(&mut buffer)?;
        bytes.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                stream.write_all(format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").as_bytes())?;
                return Ok((head, body.to_owned()));
            }
        }
        needs(n > 0, || "half a message".to_owned())?;
    }
}

/// The same message several times, because whoever receives it fails: it can be told to be the same.
pub(crate) fn callback(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/hook", listener.local_addr()?);
    target.operator().job(&json!({"command": ["true"], "webhook": {"url": url}}))?;
    let mut seen = Vec::new();
    for answer in ["500 Internal Server Error", "503 Service Unavailable", "204 No Content"] {
        let (head, body) = receive(&listener, answer)?;
        let header =
            head.lines().find_map(|line| line.strip_prefix("x-cofferdam-event-id: ")).map(str::to_owned);
        let id = serde_json::from_str::<Value>(&body)?["event_id"].as_str().map(str::to_owned);
        broke_if(header != id || id.is_none(), || "a message without an id of its own".to_owned())?;
        seen.push((id, body));
    }
    broke_if(seen.iter().any(|message| *message != seen[0]), || "the same event has several ids".to_owned())?;
    Ok(format!("{} attempts, one id, the same bytes", seen.len()))
}

/// A store of the first version.
const FIRST_VERSION: &str = include_str!("../../../../crates/store/tests/store/fixtures/version_1.sql");

/// Killed while it brings an old store up to date, at another moment each time: the next start does the rest.
pub(crate) fn migration(ground: &Ground) -> Outcome {
    let rounds = if ground.is_quick { 8 } else { 40 };
    let mut jobs = 0;
    for round in 0..rounds {
        let folder = ground.folder()?;
        let data = folder.path().join("data");
        std::fs::create_dir(&data)?;
        let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.stdin.read()); \
                      print(c.execute('SELECT count(*) FROM jobs').fetchone()[0])";
        let mut python = Command::new("python3");
        python.arg("-c").arg(script).arg(data.join("cofferdam.db"));
        let mut python =
            python.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn()?;
        if let Some(mut input) = python.stdin.take() {
            input.write_all(FIRST_VERSION.replace("{{bytes}}", "BLOB").as_bytes())?;
        }
        let made = python.wait_with_output()?;
        needs(made.status.success(), || "the old store cannot be made".to_owned())?;
        jobs = String::from_utf8_lossy(&made.stdout).trim().parse::<usize>().unwrap_or(0);
        let folder = killed_early(ground, folder, Duration::from_millis(round * 7 % 150))?;
        let target = match ground.start_in(folder, &[]) {
            Ok(target) => target,
            Err(Stop::Error(text)) => return broke(format!("it does not start again: {text}")),
            Err(stop) => return Err(stop),
        };
        let ran = target.operator().run(&json!({"command": ["true"]}))?;
        broke_if(ran["status"]["state"] != "succeeded", || format!("no job runs: {}", ran["status"]))?;
    }
    needs(jobs > 0, || "the old store has nothing in it".to_owned())?;
    Ok(format!("{rounds} kills at the start on an old store of {jobs} jobs, each finished by the next start"))
}

/// Starts a server and kills it after a while, whether it listens by then or not.
fn killed_early(ground: &Ground, folder: Folder, after: Duration) -> Result<Folder, Stop> {
    let mut child = ground.command(&folder)?.spawn()?;
    std::thread::sleep(after);
    child.kill()?;
    child.wait()?;
    Ok(folder)
}

/// A server that sleeps past its lease while another takes over its job, and then goes on where it was.
pub(crate) fn asleep(ground: &Ground) -> Outcome {
    let database = postgres::Server::start();
    let address = database.address("postgres");
    let sleeper = ground.start(&["--database", &address])?;
    let job = sleeper.operator().job(&json!({"command": "sleep 3; echo too late"}))?;
    let began = Instant::now();
    while state(&sleeper.operator(), &job)?.as_deref() != Some("running") {
        needs(began.elapsed() < Duration::from_secs(20), || "the job does not run".to_owned())?;
        std::thread::sleep(Duration::from_millis(20));
    }
    sleeper.signal("STOP")?;
    // The key is in the database, and its file in the first one's folder.
    let folder = ground.folder()?;
    std::fs::create_dir(folder.path().join("data"))?;
    for name in ["admin.key", "master.key", "signing.key"] {
        let _ = std::fs::copy(sleeper.data().join(name), folder.path().join("data").join(name));
    }
    let other = ground.start_in(folder, &["--database", &address])?;
    let client = other.nobody().with_key(&sleeper.key);
    // Two leases and some: by then the other has taken it to be lost.
    let taken = end_of(&client, &job, Duration::from_secs(90));
    let before = client.get(&format!("/v1/jobs/{job}"))?.text();
    sleeper.signal("CONT")?;
    let taken = taken?;
    std::thread::sleep(Duration::from_secs(6));
    let after = client.get(&format!("/v1/jobs/{job}"))?.text();
    broke_if(before != after, || format!("it was {taken}, and is written again: {after}"))?;
    broke_if(after.contains("too late"), || "what it wrote after its lease is kept".to_owned())?;
    let count = ends(&client)?.get(&job).copied().unwrap_or(0);
    broke_if(count > 1, || format!("it ended {count} times"))?;
    Ok(format!("taken over as {taken}; nothing was written by the one who slept"))
}
