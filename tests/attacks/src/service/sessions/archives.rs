//! Hostile archives: what they would write elsewhere, what they would bring along, and what they would fill up.

use super::{create, put, shell};
use crate::service::client::Client;
use crate::service::server::Ground;
use crate::service::{Outcome, Stop, broke_if, needs};
use serde_json::json;
use std::process::Command;

const BLOCK: usize = 512;

/// One entry of a tar: its kind is the letter that the format has for it.
fn entry(name: &str, kind: u8, mode: u32, link: &str, data: &[u8]) -> Vec<u8> {
    let mut head = [0; BLOCK];
    let mut at = |place: usize, bytes: &[u8]| head[place..place + bytes.len()].copy_from_slice(bytes);
    at(0, &name.as_bytes()[..name.len().min(100)]);
    at(100, format!("{mode:07o}").as_bytes());
    at(108, b"0000000\x000000000");
    at(124, format!("{:011o}", data.len()).as_bytes());
    at(136, b"00000000000");
    at(148, b"        ");
    at(156, &[kind]);
    at(157, link.as_bytes());
    at(257, b"ustar\x0000");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut bytes = head.to_vec();
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

fn tar(entries: &[Vec<u8>]) -> Vec<u8> {
    [entries.concat(), vec![0; 2 * BLOCK]].concat()
}

fn file(name: &str) -> Vec<u8> {
    entry(name, b'0', 0o644, "", b"escaped\n")
}

fn link(name: &str, target: &str) -> Vec<u8> {
    entry(name, b'2', 0o777, target, b"")
}

/// What has to be refused, by what it is.
fn refused() -> Vec<(&'static str, Vec<u8>)> {
    let long = |record: &str| entry("pax", b'x', 0o644, "", record.as_bytes());
    vec![
        ("climbs", tar(&[file("../escaped")])),
        ("climbs later", tar(&[file("a/../../escaped")])),
        ("a link that leads out", tar(&[link("out", "/tmp")])),
        ("a link that climbs", tar(&[link("out", "../../tmp")])),
        ("a link, and a file behind it", tar(&[link("out", "/tmp"), file("out/escaped")])),
        ("a link inside, and a file behind it", tar(&[link("in", "."), file("in/escaped")])),
        (
            "a folder over a link",
            tar(&[link("d", "/tmp"), entry("d", b'5', 0o755, "", b""), file("d/escaped")]),
        ),
        ("a hard link that leads out", tar(&[entry("h", b'1', 0o644, "/etc/passwd", b"")])),
        ("a hard link that climbs", tar(&[entry("h", b'1', 0o644, "../before", b"")])),
        ("a character device", tar(&[entry("null", b'3', 0o666, "", b"")])),
        ("a block device", tar(&[entry("disk", b'4', 0o666, "", b"")])),
        ("a pipe", tar(&[entry("pipe", b'6', 0o666, "", b"")])),
        ("a size that another header says", tar(&[long("21 size=000999999999\n"), file("escaped")])),
        ("cut off", file("escaped")[..600].to_vec()),
        ("not one at all", b"escaped\n".repeat(100)),
        ("one name over and over", tar(&vec![entry("a", b'5', 0o755, "", b""); 100_001])),
        ("deeper than anything", tar(&[file(&"d/".repeat(48)), long(&deep())])),
    ]
}

/// A path of more names than anybody makes, said as an extended header.
fn deep() -> String {
    let record = format!(" path={}escaped\n", "d/".repeat(3000));
    format!("{}{record}", record.len() + 4)
}

/// What may be taken, if it does no harm.
fn harmless() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("an absolute name", tar(&[file("/tmp/escaped")])),
        ("set-uid", tar(&[entry("set", b'0', 0o6755, "", b"#!/bin/sh\n")])),
        ("twice the same", tar(&[file("twice"), file("twice")])),
        ("a file, and a link in its place", tar(&[file("x"), link("x", "y")])),
    ]
}

/// Says what an archive has done that it must not.
const LOOK: &str = "find /tmp /run /dev/shm /workspace -name 'escaped*' 2>/dev/null | grep -v ^/workspace/in/; \
    find /workspace/in \\( -perm /6000 -o -type b -o -type c -o -type p \\) 2>/dev/null; \
    for l in $(find /workspace/in -type l 2>/dev/null); do readlink -m $l | grep -v ^/workspace/in; done; \
    test \"$(cat /workspace/before)\" = before || echo changed";

/// Sends every hostile archive into a session.
pub(crate) fn send_all(client: &Client, id: &str) -> Result<usize, Stop> {
    shell(client, id, "echo before > before")?;
    let all = refused().into_iter().map(|(what, bytes)| (what, bytes, true));
    let all: Vec<_> = all.chain(harmless().into_iter().map(|(what, bytes)| (what, bytes, false))).collect();
    for (what, bytes, must_fail) in &all {
        let answer = put(client, id, "archive?path=/workspace/in&format=tar", bytes)?;
        broke_if(*must_fail && answer.is_good(), || format!("{what}: {}", answer.status))?;
        broke_if(answer.status >= 500, || format!("{what}: {} {}", answer.status, answer.text()))?;
        let wrong = shell(client, id, LOOK)?;
        broke_if(!wrong.trim().is_empty(), || format!("{what}: {wrong}"))?;
        shell(client, id, "chmod -R u+rwx in 2>/dev/null; rm -rf in")?;
        let left = shell(client, id, "ls -A | grep -vx 'before\\|probe\\|.artifacts'")?;
        broke_if(!left.trim().is_empty(), || format!("{what} leaves {left}"))?;
    }
    Ok(all.len())
}

pub(crate) fn hostile(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let id = create(&client, &json!({"ttl_seconds": 600}))?;
    let tried = send_all(&client, &id)?;
    Ok(format!("{tried} archives, each refused or harmless, and nothing left of it"))
}

/// Zips that are small and unpack to far more than there is room for, or to more entries than anybody sends.
const BOMBS: &str = r"
import sys, zipfile
out, kind = sys.argv[1], sys.argv[2]
with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED) as z:
    if kind == 'one':
        with z.open('bomb', 'w', force_zip64=True) as f:
            for _ in range(1024):
                f.write(bytes(1 << 20))
    else:
        for i in range(100001):
            z.writestr('a%d' % i if kind == 'many' else 'd%d/' % (i % 10), b'')
";

pub(crate) fn bombs(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let limits = json!({"memory_bytes": 268_435_456, "disk_bytes": 33_554_432});
    let id = create(&client, &json!({"ttl_seconds": 600, "limits": limits}))?;
    shell(&client, &id, "echo before > before")?;
    let folder = ground.folder()?;
    let before = target.memory();
    let mut said = Vec::new();
    for kind in ["one", "many", "same"] {
        let path = folder.path().join(kind);
        let made =
            Command::new("python3").args(["-W", "ignore", "-c", BOMBS]).arg(&path).arg(kind).status()?;
        needs(made.success(), || format!("a bomb: {made}"))?;
        let bytes = std::fs::read(&path)?;
        let answer = put(&client, &id, "archive?path=/workspace/in&format=zip", &bytes)?;
        broke_if(answer.is_good(), || format!("{kind}, of {} bytes: {}", bytes.len(), answer.status))?;
        let left = shell(&client, &id, "ls -A | grep -vx 'before\\|.artifacts'; cat before")?;
        broke_if(left != "before\n", || format!("{kind} leaves {left}"))?;
        said.push(format!("{kind}: {}", answer.status));
    }
    let grown = target.memory().saturating_sub(before) >> 20;
    broke_if(grown > 256, || format!("the server has grown by {grown} MiB"))?;
    Ok(format!("{}; the server has grown by {grown} MiB", said.join(", ")))
}
