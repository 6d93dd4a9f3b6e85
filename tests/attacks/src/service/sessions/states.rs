//! Attacks that an observer outside judges, in sessions of each state.

use super::{archives, put, shell};
use crate::host::posture;
use crate::inventory::{all_processes, children, is_alive, marked};
use crate::lab::PROBE;
use crate::mode;
use crate::plants::random_hex;
use crate::service::{Outcome, Stop, broke, broke_if, cannot, needs};
use crate::ward::{Patient, Ward};
use serde_json::json;
use std::time::{Duration, Instant};

pub(crate) type StateAttack = fn(&Ward, &Patient) -> Outcome;

/// Every one, by the name that the catalogue gives it.
pub(crate) const ALL: &[(&str, StateAttack)] = &[
    ("session-09-posture", golden),
    ("outlive-05-session", clinging),
    ("files-01-session", links),
    ("files-03-session", special),
    ("files-05-session", exchanged),
    ("files-08-session", hostile),
];

/// The processes of a session, as the host numbers them: init, and what runs under it.
fn processes(patient: &Patient) -> Result<(u32, Vec<u32>), Stop> {
    let first = mode::host_ids(patient.slot).start.to_string();
    let is_its = |pid: &u32| {
        let map = std::fs::read_to_string(format!("/proc/{pid}/uid_map")).unwrap_or_default();
        map.split_whitespace().nth(1) == Some(&first)
    };
    let all: Vec<u32> = all_processes().filter(is_its).collect();
    match all.iter().find(|pid| !children(**pid).is_empty()) {
        Some(init) => Ok((*init, children(*init))),
        None => cannot(format!("no init among {all:?}")),
    }
}

/// Init and a process, against the golden files of sessions, which are the same in every state.
fn golden(ward: &Ward, patient: &Patient) -> Outcome {
    let path = format!("/v1/sessions/{}/processes", patient.id);
    let started = ward.client().post(&path, &json!({"command": [PROBE, "--beat", "50"]}))?;
    needs(started.is_good(), || format!("a process: {} {}", started.status, started.text()))?;
    let beats = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(6).any(|word| word == b"--beat")
    };
    let began = Instant::now();
    let (init, payload) = loop {
        let (init, children) = processes(patient)?;
        if let Some(payload) = children.into_iter().find(beats) {
            break (init, payload);
        }
        needs(began.elapsed() < Duration::from_secs(10), || "the process is not there".to_owned())?;
        std::thread::sleep(Duration::from_millis(20));
    };
    // Init answers when it is done with what came before, such as closing its ends of the process's pipes.
    ward.client().get(&format!("/v1/sessions/{}/files/stat?path={PROBE}", patient.id))?;
    let seen = posture::of_session(&patient.id, patient.slot, init, payload).map_err(Stop::Error)?;
    match posture::against_golden("session", &seen).map_err(Stop::Error)? {
        (lines, wrong) if wrong.is_empty() => Ok(format!("{lines} lines as in the golden files")),
        (_, wrong) => broke(wrong.join("; ")),
    }
}

/// Forked twice, in a session of its own, deaf to signals: nothing a second after the session's end.
fn clinging(ward: &Ward, patient: &Patient) -> Outcome {
    let marker = format!("marker-{}", random_hex(8)?);
    let path = format!("/v1/sessions/{}", patient.id);
    let command = json!({"command": [PROBE, "outlive-05", marker, "20"]});
    let started = ward.client().post(&format!("{path}/processes"), &command)?;
    needs(started.is_good(), || format!("a process: {}", started.status))?;
    let began = Instant::now();
    while marked(&marker).is_empty() {
        needs(began.elapsed() < Duration::from_secs(10), || "nothing clings".to_owned())?;
        std::thread::sleep(Duration::from_millis(20));
    }
    let before = marked(&marker);
    ward.client().delete(&path)?;
    std::thread::sleep(Duration::from_secs(1));
    let left: Vec<u32> = before.iter().copied().chain(marked(&marker)).filter(|pid| is_alive(*pid)).collect();
    broke_if(!left.is_empty(), || format!("{left:?} are left"))?;
    Ok(format!("{} processes, none is left", before.len()))
}

/// Reading, writing, listing and removing through links that lead out, to /proc, and to where only init may.
fn links(ward: &Ward, patient: &Patient) -> Outcome {
    let (client, id) = (ward.client(), patient.id.as_str());
    let plant = "echo own > own; ln -s /etc/passwd file; ln -s /etc folder; ln -s /proc/self/root root; \
                 ln -s /proc/1/root init; ln -s .. up; ln -s /proc/self/fd fds; ln -s /workspace/own inside";
    shell(&client, id, plant)?;
    let mut tried = 0;
    for path in
        ["file", "folder/passwd", "root/etc/passwd", "init/etc/passwd", "up/etc/passwd", "fds/0", "inside"]
    {
        let place = format!("/v1/sessions/{id}/files?path=/workspace/{path}");
        let read = client.get(&place)?;
        broke_if(read.is_good(), || format!("{path} was read: {}", read.text()))?;
        let written = put(&client, id, &format!("files?path=/workspace/{path}"), b"written")?;
        // A link may be replaced by a file of its own; nothing may be written behind it.
        broke_if(written.is_good() && path.contains('/'), || format!("{path} was written to"))?;
        tried += 2;
    }
    let seen = shell(&client, id, "cat own; test -L /workspace/folder && grep -c written /etc/passwd")?;
    broke_if(!seen.starts_with("own\n") || seen.contains('1'), || format!("something was written: {seen}"))?;
    for path in [
        "/workspace/../etc/passwd",
        "/workspace/%2e%2e/%2e%2e/etc/passwd",
        "/proc/1/environ",
        "/proc/self/root/etc/passwd",
    ] {
        let read = client.get(&format!("/v1/sessions/{id}/files?path={path}"))?;
        // What the image has is the guest's to read; init's is not.
        let is_outside = read.text().contains("COFFERDAM") || path.contains("/proc/") && read.is_good();
        broke_if(is_outside, || format!("{path}: {}", read.text()))?;
        tried += 1;
    }
    Ok(format!("{tried} requests, none followed a link"))
}

/// Pipes, sockets and devices where files are expected: nothing waits for them.
fn special(ward: &Ward, patient: &Patient) -> Outcome {
    let (client, id) = (ward.client(), patient.id.as_str());
    let plant = "mkfifo pipe $CYNODE_ARTIFACTS_DIR/pipe; ln -s /dev/zero zero; \
                 python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'";
    let began = Instant::now();
    shell(&client, id, plant)?;
    for path in ["pipe", "socket", "zero"] {
        let read = client.get(&format!("/v1/sessions/{id}/files?path=/workspace/{path}"))?;
        broke_if(read.is_good(), || format!("{path} was read"))?;
        if path != "zero" {
            let written = put(&client, id, &format!("files?path=/workspace/{path}"), b"x")?;
            broke_if(written.status >= 500, || format!("{path}: {}", written.status))?;
        }
    }
    let packed = client.get(&format!("/v1/sessions/{id}/archive?path=/workspace&format=tar"))?;
    broke_if(packed.status >= 500, || format!("the archive: {}", packed.status))?;
    let took = began.elapsed();
    broke_if(took > Duration::from_secs(20), || format!("it waited for {} s", took.as_secs()))?;
    Ok(format!("done after {} ms", took.as_millis()))
}

/// A file that changes places with a link to one of the server's, while it is read.
fn exchanged(ward: &Ward, patient: &Patient) -> Outcome {
    let (client, id) = (ward.client(), patient.id.as_str());
    shell(&client, id, "mkdir race")?;
    let (file, secret) = ward.secret_file();
    let command = json!({"command": [PROBE, "files-05", "/workspace/race", file, "6"]});
    client.post(&format!("/v1/sessions/{id}/processes"), &command)?;
    let began = Instant::now();
    let (mut read, mut refused) = (0, 0);
    while began.elapsed() < Duration::from_secs(2) {
        let path = format!("/v1/sessions/{id}/files?path=/workspace/race/swap");
        match client.send("GET", &path, "", b"") {
            Ok(answer) => {
                broke_if(answer.text().contains(&secret), || "the server's file was read".to_owned())?;
                let count = if answer.is_good() { &mut read } else { &mut refused };
                *count += 1;
            }
            // It was a file when it was looked at, and a link when it was opened: the answer is cut off.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => refused += 1,
            Err(error) => return Err(error.into()),
        }
    }
    needs(read > 0 && refused > 0, || format!("no race: {read} read, {refused} refused"))?;
    Ok(format!("{} reads: {read} of the file, {refused} refused, none of the link", read + refused))
}

fn hostile(ward: &Ward, patient: &Patient) -> Outcome {
    let tried = archives::send_all(&ward.client(), &patient.id)?;
    Ok(format!("{tried} archives, each refused or harmless"))
}
