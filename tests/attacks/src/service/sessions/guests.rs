//! Other tenants, and what runs in a session against whoever looks at its results.

use super::{create, put, shell, step};
use crate::plants::random_hex;
use crate::service::client::Client;
use crate::service::server::Ground;
use crate::service::{Outcome, Stop, broke, broke_if, needs, tenants};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

/// Steps, processes and files of another tenant's session: by its id, and by their own ids in one's own session.
pub(crate) fn foreign(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let [alice, eve] = tenants::two(&target.operator(), ["alice", "eve"])?;
    let theirs = create(&alice, &json!({"ttl_seconds": 600}))?;
    let write = json!({"command": ["sh", "-c", "echo mine > /workspace/mine"]});
    let made = alice.post(&format!("/v1/sessions/{theirs}/steps?wait_ms=30000"), &write)?.word("id")?;
    alice.post(&format!("/v1/sessions/{theirs}/processes"), &json!({"command": ["sleep", "600"]}))?;
    let base =
        alice.post(&format!("/v1/sessions/{theirs}/snapshots"), &json!({"name": "base"}))?.word("id")?;
    let own = create(&eve, &json!({"ttl_seconds": 600}))?;
    let mut tried = 0;
    let mut refused = |method: &str, path: String, body: &Value| -> Result<(), Stop> {
        tried += 1;
        let answer = eve.send(method, &path, "", body.to_string().as_bytes())?;
        broke_if(!matches!(answer.status, 404 | 422), || format!("{method} {path}: {}", answer.status))
    };
    let all = [
        ("POST", "steps", json!({"command": "true"})),
        ("POST", "processes", json!({"command": ["true"]})),
        ("GET", "processes/1", json!({})),
        ("POST", "processes/1/signal", json!({"signal": 9})),
        ("GET", "files?path=/workspace/mine", json!({})),
        ("DELETE", "files?path=/workspace/mine", json!({})),
        ("POST", "pause", json!({"mode": "freeze"})),
        ("POST", "fork", json!({"count": 1})),
        ("POST", "extend", json!({"ttl_seconds": 900})),
        ("POST", "snapshots", json!({"name": "stolen"})),
    ];
    for (method, rest, body) in &all {
        refused(method, format!("/v1/sessions/{theirs}/{rest}"), body)?;
    }
    // Parts of theirs, under one's own.
    refused("GET", format!("/v1/sessions/{own}/steps/{made}"), &json!({}))?;
    refused("POST", format!("/v1/sessions/{own}/steps/{made}/interrupt"), &json!({}))?;
    refused("GET", format!("/v1/sessions/{own}/steps/{made}/output?follow=false"), &json!({}))?;
    refused("GET", format!("/v1/sessions/{own}/processes/1"), &json!({}))?;
    for snapshot in [base.as_str(), "base"] {
        refused("POST", "/v1/sessions".to_owned(), &json!({"snapshot": snapshot}))?;
    }
    broke_if(shell(&alice, &theirs, "cat mine")? != "mine\n", || "the other's file is gone".to_owned())?;
    Ok(format!("{tried} requests refused"))
}

/// What an interpreter's own end of its socket could be told, and ends of cells that are not over.
const FORGE: &str = r"
import os, stat
frames = [b'end 2\n{}', b'end 17\n{\x22exit_code\x22:0}  ', b'ready 15\n{\x22version\x22:\x22x\x22}',
          b'result 46\n{\x22kind\x22:\x22text\x22,\x22data\x22:{\x22text/plain\x22:\x22forged\x22}}   ', b'end 99999999999\n', b'\xff' * 64, b'\n\n\n']
wrote = 0
for fd in range(3, 256):
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            continue
        for frame in frames:
            wrote += os.write(fd, frame) > 0
    except OSError:
        pass
print('wrote', wrote)
";

/// Code that writes on its interpreter's own descriptors: it may end its own step as it likes, and nothing else.
pub(crate) fn frames(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let id = create(&client, &json!({"ttl_seconds": 600}))?;
    let python = |context: &str, code: &str| {
        step(&client, &id, &json!({"language": "python", "code": code, "context": context}))
    };
    python("other", "kept = 5")?;
    for round in 0..3 {
        let first = python("default", FORGE)?;
        needs(first["status"]["state"].is_string(), || format!("no end: {first}"))?;
        let nonce = random_hex(8)?;
        let next = python("default", &format!("print('real-{nonce}'); 40 + 2"))?;
        let said = next["result"]["stdout"].as_str().unwrap_or_default();
        // Of the step before nothing may be taken for this one: neither its end nor a result.
        let is_own = said.contains(&format!("real-{nonce}"));
        let is_told = next["status"]["state"] != "succeeded";
        broke_if(!is_own && !is_told, || format!("round {round}: an end was taken for another's: {next}"))?;
        broke_if(next.to_string().contains("forged"), || {
            format!("a result was taken for another's: {next}")
        })?;
    }
    let other = python("other", "kept")?;
    let is_kept = other["result"]["results"][0]["data"]["text/plain"] == "5";
    broke_if(!is_kept, || format!("another interpreter was hit: {other}"))?;
    let code = step(&client, &id, &json!({"command": ["sh", "-c", "exit 7"]}))?;
    broke_if(code["result"]["exit_code"] != 7, || format!("the end of a program: {code}"))?;
    Ok("three rounds of forged frames end their own step at most".to_owned())
}

/// Runs a shell at a terminal, has it write what it is told, and shows the bytes that the user's terminal got.
const TERMINAL: &str = r"
import os, pty, sys, select, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], 'session', 'shell', sys.argv[2]])
said, sent, end = b'', False, time.time() + 40
while time.time() < end:
    ready, _, _ = select.select([fd], [], [], 1)
    if ready:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        said += piece
    if not sent and b'$' in said:
        sent = True
        os.write(fd, b'sh /workspace/hostile; exit\n')
sys.stdout.buffer.write(said)
";

/// Clipboard, title, keys, printing, answers: what a program must not make of a user's terminal.
const SEQUENCES: [(&str, &str); 8] = [
    ("clipboard", "]52;c;aGFjaw=="),
    ("title", "]0;hostile"),
    ("file", "]1337;File=name=eA==:eA=="),
    ("link", "]8;;file:///etc/passwd"),
    ("device control", "P$q\"p"),
    ("application command", "_Ghostile"),
    ("printing", "[5i"),
    ("title asked for", "[21t"),
];

pub(crate) fn escapes(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let id = create(&client, &json!({"ttl_seconds": 600, "env": {"PS1": "$ "}}))?;
    let mut script = "printf begun\n".to_owned();
    for (_, sequence) in SEQUENCES {
        for end in ["\\007", "\\033\\\\"] {
            script += &format!("printf '\\033{}{end}'\n", sequence.replace('\\', "\\\\"));
        }
    }
    script += "printf over\n";
    let written = put(&client, &id, "files?path=/workspace/hostile", script.as_bytes())?;
    needs(written.is_good(), || format!("the script: {}", written.status))?;
    // Otherwise the attack would prove nothing: the program does write them.
    let raw = shell(&client, &id, "sh hostile")?;
    needs(SEQUENCES.iter().all(|(_, text)| raw.contains(&format!("\x1b{text}"))), || format!("{raw:?}"))?;
    let Some(program) = ground.program() else { return super::super::cannot("no program") };
    let mut command = Command::new("python3");
    command.args(["-c", TERMINAL]).arg(program).arg(&id);
    command.env("COFFERDAM_URL", format!("http://{}", client.address)).env("COFFERDAM_API_KEY", &target.key);
    let shown = command.env("TERM", "xterm").output()?.stdout;
    let text = String::from_utf8_lossy(&shown);
    needs(text.contains("begun") && text.contains("over"), || format!("the shell said {text:?}"))?;
    for (name, sequence) in SEQUENCES {
        let raw = format!("\x1b{sequence}");
        broke_if(text.contains(&raw), || format!("{name} came through: {text:?}"))?;
    }
    Ok(format!("{} kinds of sequences, none came through", SEQUENCES.len()))
}

/// Whoever is attached to a process when their key is taken back, and whoever comes after.
pub(crate) fn attached(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let operator = target.operator();
    let id = create(&operator, &json!({"ttl_seconds": 600}))?;
    let path = format!("/v1/sessions/{id}/processes");
    operator.post(&path, &json!({"command": ["sh", "-c", "while :; do echo x; sleep .2; done"]}))?;
    let (key, secret) = operator.key(&["*"])?;
    let client: Client = target.nobody().with_key(&secret);
    let mut events = client.events(&format!("{path}/1/output"))?;
    needs(events.next().is_some_and(|event| event.is_ok()), || "the stream does not begin".to_owned())?;
    operator.delete(&format!("/v1/keys/{key}"))?;
    let began = Instant::now();
    for event in events {
        let _ = event?;
        if began.elapsed() > Duration::from_secs(12) {
            return broke("it goes on after its key");
        }
    }
    let took = began.elapsed().as_millis();
    for rest in ["output", "ws"] {
        let upgrade = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
        let again = client.send("GET", &format!("{path}/1/{rest}"), upgrade, b"")?;
        broke_if(again.status != 401, || format!("{rest} after that: {}", again.status))?;
    }
    Ok(format!("ended after {took} ms, and 401 since"))
}
