//! Webhooks of a real server, and the documentation's way to check them.

use crate::client::Client;
use crate::server::{Folder, Server};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const SECRET: &str = "a secret of the caller's";

/// A message: its head in lower case, and its body.
type Got = (String, String);

/// Takes messages, and answers each with 204.
fn receive(address: SocketAddr) -> (SocketAddr, Receiver<Got>) {
    let listener = TcpListener::bind(address).expect("a port");
    let address = listener.local_addr().expect("its address");
    let (sender, got) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if sender.send(take(stream)).is_err() {
                return;
            }
        }
    });
    (address, got)
}

fn take(mut stream: TcpStream) -> Got {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let n = stream.read(&mut buffer).expect("a message");
        bytes.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
            return (head, body.to_owned());
        }
    }
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

const ALLOWED: [&str; 3] = ["--webhook-allow", "127.0.0.1", "--webhook-http"];

fn job(address: SocketAddr, events: &[&str]) -> String {
    let webhook =
        json!({"url": format!("http://{address}/hook?token=1"), "secret": SECRET, "events": events});
    json!({"command": "exit 3", "webhook": webhook}).to_string()
}

fn header<'g>(got: &'g Got, name: &str) -> &'g str {
    got.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).expect(name)
}

/// Runs the documentation's own function on a message.
fn verify(got: &Got, secret: &str, body: &str, now: i64) -> bool {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/webhooks.md"))
        .expect("the page");
    let (_, rest) = page.split_once("```python\n").expect("an example");
    let (code, _) = rest.split_once("```").expect("its end");
    let headers = json!({
        "X-Cofferdam-Timestamp": header(got, "x-cofferdam-timestamp"),
        "X-Cofferdam-Signature": header(got, "x-cofferdam-signature"),
    });
    let driver = "\nimport json, sys\na = json.load(sys.stdin)\n\
                  print(verify(a['secret'], a['headers'], a['body'].encode(), a['now']))\n";
    let mut python = Command::new("python3")
        .arg("-c")
        .arg(format!("{code}{driver}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let input = json!({"secret": secret, "headers": headers, "body": body, "now": now}).to_string();
    python.stdin.take().expect("its input").write_all(input.as_bytes()).expect("its input");
    let output = python.wait_with_output().expect("its end");
    match String::from_utf8_lossy(&output.stdout).trim() {
        "True" => true,
        "False" => false,
        other => panic!("the example said {other:?}"),
    }
}

#[test]
fn a_message_can_be_checked_as_the_documentation_says() {
    let folder = Folder::new("webhook");
    let server = Server::start(folder.path(), &ALLOWED);
    let client = Client::of(&server);
    let (address, messages) = receive(loopback());
    let answer = client.post("/v1/jobs?wait_ms=30000", &job(address, &["accepted", "running", "finished"]));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!answer.body.contains(SECRET) && !answer.body.contains("token=1"), "{answer:?}");
    let mut got: Vec<Got> = (0..3).map(|_| messages.recv_timeout(PATIENCE).expect("a message")).collect();
    let state =
        |got: &Got| serde_json::from_str::<Value>(&got.1).expect("JSON")["state"].as_str().map(str::to_owned);
    got.sort_by_key(state);
    let states: Vec<_> = got.iter().filter_map(state).collect();
    assert_eq!(states, ["accepted", "failed", "running"]);
    let finished = &got[1];
    let body: Value = serde_json::from_str(&finished.1).expect("JSON");
    assert_eq!((&body["job_id"], &body["exit_code"]), (&answer.json()["id"], &json!(3)));
    assert_eq!(body["outcome"], json!({"kind": "exited", "code": 3}));
    assert_eq!(header(finished, "x-cofferdam-event-id"), body["event_id"].as_str().expect("an id"));
    let sent: i64 = header(finished, "x-cofferdam-timestamp").parse().expect("seconds");
    assert!(verify(finished, SECRET, &finished.1, sent + 299));
    assert!(!verify(finished, SECRET, &finished.1, sent + 301), "it is too old");
    assert!(!verify(finished, "another secret!!", &finished.1, sent));
    assert!(!verify(finished, SECRET, &finished.1.replace("failed", "succeeded"), sent));
    let shown = client.get(&format!("/v1/jobs/{}", answer.json()["id"].as_str().expect("an id"))).body;
    assert!(!shown.contains(SECRET) && !shown.contains("webhook"), "{shown}");
}

/// What could not be told before the server was killed is told by the next.
#[test]
fn a_message_outlives_the_server_that_was_to_send_it() {
    let folder = Folder::new("outlives");
    let server = Server::start(folder.path(), &ALLOWED);
    let client = Client::of(&server);
    let address = TcpListener::bind(loopback()).expect("a port").local_addr().expect("its address");
    let answer = client.post("/v1/jobs?wait_ms=30000", &job(address, &["finished"]));
    assert_eq!(answer.status, 200, "{answer:?}");
    server.kill();
    let (_, messages) = receive(address);
    let server = Server::start(folder.path(), &ALLOWED);
    let got = messages.recv_timeout(PATIENCE).expect("a message");
    assert_eq!(serde_json::from_str::<Value>(&got.1).expect("JSON")["job_id"], answer.json()["id"]);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn without_being_allowed_nothing_inside_is_reached() {
    let folder = Folder::new("inside");
    let mut server = Server::start(folder.path(), &["--webhook-http", "--metrics-listen", "127.0.0.1:0"]);
    let client = Client::of(&server);
    let (address, messages) = receive(loopback());
    for host in [address.to_string(), format!("localhost:{}", address.port())] {
        let webhook = json!({"url": format!("http://{host}/"), "secret": SECRET});
        let body = json!({"command": ["true"], "webhook": webhook}).to_string();
        assert_eq!(client.post("/v1/jobs?wait_ms=30000", &body).status, 200);
    }
    let metrics = client.at(server.metrics_address());
    let failed = || {
        let text = metrics.get("/metrics").body;
        let line = "cofferdam_webhooks_total{result=\"failed\"} ";
        text.lines().find_map(|known| known.strip_prefix(line)?.parse::<u64>().ok()).unwrap_or(0)
    };
    let began = std::time::Instant::now();
    while failed() < 2 {
        assert!(began.elapsed() < PATIENCE, "no attempt was made");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(messages.try_recv().is_err(), "something came");
    let plain = json!({"command": ["true"], "webhook": {"url": "http://example.org/", "events": ["never"]}});
    assert_eq!(
        client.post("/v1/jobs", &plain.to_string()).json()["error"]["details"]["field"],
        "webhook.events[0]"
    );
}
