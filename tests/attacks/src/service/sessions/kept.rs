//! What is kept of sessions: secrets that go with others, files that were altered, and what a deleted one leaves.

use super::{create, shell, step};
use crate::plants::random_hex;
use crate::service::client::Client;
use crate::service::server::Ground;
use crate::service::{Outcome, Stop, broke, broke_if, cannot, needs};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const SEES: &str = "cat /run/secrets/token 2>/dev/null || echo none";

fn fork(client: &Client, id: &str) -> Result<String, Stop> {
    let forked = client.post(&format!("/v1/sessions/{id}/fork"), &json!({"count": 1}))?;
    match forked.json()["sessions"][0]["id"].as_str() {
        Some(child) => Ok(child.to_owned()),
        None => cannot(format!("a fork: {} {}", forked.status, forked.text())),
    }
}

fn pause(client: &Client, id: &str, mode: &str) -> Result<(), Stop> {
    let paused = client.post(&format!("/v1/sessions/{id}/pause"), &json!({"mode": mode}))?;
    needs(paused.is_good(), || format!("a pause: {} {}", paused.status, paused.text()))
}

fn resume(client: &Client, id: &str) -> Result<u16, Stop> {
    Ok(client.send("POST", &format!("/v1/sessions/{id}/resume"), "", b"")?.status)
}

/// A session's secret, for somebody else of its tenant.
pub(crate) fn secrets(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let owner = target.operator();
    let nonce = random_hex(16)?;
    let body = json!({"value": nonce}).to_string();
    let kept = owner.send("PUT", "/v1/secrets/token", "", body.as_bytes())?;
    needs(kept.is_good(), || format!("a secret: {}", kept.status))?;
    let id = create(&owner, &json!({"secrets": [{"name": "token"}]}))?;
    needs(shell(&owner, &id, SEES)? == nonce, || "the session has no secret".to_owned())?;
    let scopes = ["sessions:read", "sessions:write", "jobs:read", "jobs:write"];
    let (_, secret) = owner.key(&scopes).or_else(|_| owner.key(&["*"]))?;
    let other = target.nobody().with_key(&secret);
    // Of whoever gave it, a fork has it: otherwise nothing is shown by one that has not.
    let own = fork(&owner, &id)?;
    needs(shell(&owner, &own, SEES)? == nonce, || "a fork of the owner's has no secret".to_owned())?;
    let mut children = vec![fork(&other, &id)?];
    let made = owner.post(&format!("/v1/sessions/{id}/snapshots"), &json!({"name": "with-secret"}))?;
    needs(made.is_good(), || format!("a snapshot: {}", made.status))?;
    children.push(create(&other, &json!({"snapshot": "with-secret"}))?);
    pause(&owner, &id, "archive")?;
    children.push(fork(&other, &id)?);
    for child in &children {
        let seen = shell(&other, child, SEES)?;
        broke_if(seen.contains(&nonce), || format!("{child} has it"))?;
        let whole =
            shell(&other, child, &format!("grep -rl {nonce} /workspace /tmp /run /dev/shm 2>/dev/null"))?;
        broke_if(!whole.trim().is_empty(), || format!("it is in {whole}"))?;
    }
    Ok(format!("{} sessions of somebody else's, none has it", children.len()))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)?.flatten() {
        match entry.file_type()?.is_dir() {
            true => files(&entry.path(), found)?,
            false => found.push(entry.path()),
        }
    }
    Ok(())
}

/// What was written away, altered in its place: bytes changed, cut off, and exchanged with another session's.
pub(crate) fn altered(ground: &Ground) -> Outcome {
    let target = ground.start(&["--slots", "32"])?;
    let client = target.operator();
    let make = |text: &str| -> Result<String, Stop> {
        let id = create(&client, &json!({"ttl_seconds": 900}))?;
        shell(&client, &id, &format!("echo {text} > file; head -c 300000 /dev/urandom > noise"))?;
        pause(&client, &id, "archive")?;
        Ok(id)
    };
    let (victim, other) = (make("original")?, make("another")?);
    let mut all = Vec::new();
    files(&target.data().join("artifacts"), &mut all)?;
    let of = |id: &str| -> Vec<PathBuf> {
        all.iter().filter(|path| path.to_string_lossy().contains(id)).cloned().collect()
    };
    let (mine, theirs) = (of(&victim), of(&other));
    needs(!mine.is_empty() && !theirs.is_empty(), || "nothing was written away".to_owned())?;
    let mut tried = 0;
    let mut refused = |what: &str| -> Result<(), Stop> {
        tried += 1;
        let status = resume(&client, &victim)?;
        broke_if(status < 400, || format!("{what}: it was taken, {status}"))?;
        let state = client.get(&format!("/v1/sessions/{victim}"))?.json()["status"]["state"].clone();
        broke_if(state != "paused", || format!("{what}: it is {state} afterwards"))
    };
    for path in &mine {
        let whole = std::fs::read(path)?;
        for at in [0, whole.len() / 2, whole.len().saturating_sub(1)] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(path, &bytes)?;
            refused(&format!("byte {at} changed"))?;
        }
        std::fs::write(path, &whole[..whole.len() / 2])?;
        refused("cut off")?;
        std::fs::write(path, std::fs::read(&theirs[0])?)?;
        refused("another session's")?;
        std::fs::write(path, &whole)?;
    }
    // As it was, it comes back: it was the change that was refused.
    let status = resume(&client, &victim)?;
    needs(status == 200, || format!("the unchanged one: {status}"))?;
    needs(shell(&client, &victim, "cat file")? == "original\n", || "its file is another".to_owned())?;
    Ok(format!("{tried} changes refused, and it is paused after each"))
}

fn with(folder: &Path, word: &str) -> Result<Vec<PathBuf>, Stop> {
    let mut all = Vec::new();
    files(folder, &mut all)?;
    let has = |path: &PathBuf| {
        std::fs::read(path).is_ok_and(|bytes| bytes.windows(word.len()).any(|part| part == word.as_bytes()))
    };
    Ok(all.into_iter().filter(has).collect())
}

/// A word in a session's files, output, environment and artifacts; and then the session is deleted.
pub(crate) fn traces(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let nonce = random_hex(16)?;
    let id = create(&client, &json!({"env": {"PLANTED": nonce}}))?;
    let line = "echo $PLANTED; echo $PLANTED > file; echo $PLANTED > $CYNODE_ARTIFACTS_DIR/made";
    let done = step(&client, &id, &json!({"command": line}))?;
    needs(done.to_string().contains(&nonce), || format!("it is not said: {done}"))?;
    needs(!with(&target.data(), &nonce)?.is_empty(), || "it is nowhere before the delete".to_owned())?;
    pause(&client, &id, "archive")?;
    let gone = client.delete(&format!("/v1/sessions/{id}"))?;
    needs(gone.status == 204, || format!("the delete: {}", gone.status))?;
    // Artifacts outlive their session, and are sealed; what they say is in no file as it is.
    let began = Instant::now();
    loop {
        let left = with(&target.data(), &nonce)?;
        if left.is_empty() {
            break;
        }
        if began.elapsed() > Duration::from_secs(45) {
            return broke(format!("after {} s it is in {left:?}", began.elapsed().as_secs()));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    broke_if(target.log().contains(&nonce), || "it is in the log".to_owned())?;
    let Some(program) = ground.program() else { return cannot("no program") };
    let check =
        Command::new(program).args(["session", "shred-check", &id, "--data"]).arg(target.data()).output()?;
    let said = String::from_utf8_lossy(&check.stdout).into_owned();
    broke_if(!check.status.success(), || format!("shred-check: {} {said}", check.status))?;
    Ok(format!("gone from every file within {} ms", began.elapsed().as_millis()))
}
