//! Output that is followed over connections that break, and by a program that is killed.

use crate::proxy::{Fate, Proxy};
use crate::server::{Folder, Server};
use cofferdam_api::JobRequest;
use cofferdam_client::{Client, OutputEvent, Patience};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Duration;

const LINES: usize = 120;

/// Many times what it takes.
const PATIENCE: Duration = Duration::from_secs(90);

/// Writes a line every now and then, for a few seconds, to both streams in turn.
fn talker() -> JobRequest {
    let code = format!(
        "import sys, time\nfor i in range({LINES}):\n  print(i, file=[sys.stdout, sys.stderr][i % 2], flush=True)\n  time.sleep(.02)"
    );
    JobRequest { language: Some("python".into()), code: Some(code), ..JobRequest::default() }
}

fn expected(remainder: usize) -> String {
    (0..LINES).filter(|i| i % 2 == remainder).map(|i| format!("{i}\n")).collect()
}

#[tokio::test]
async fn nothing_is_lost_or_repeated_however_often_the_connection_breaks() {
    let folder = Folder::new("follow");
    let server = Server::start(folder.path(), &[]);
    // In the middle of the head, of an event, between two; a few hundred bytes further each time.
    let proxy = Proxy::before(server.address, |number| Fate::Cut(150 + (number * 97) % 1400));
    let direct = Client::new(&format!("http://{}", server.address), &server.key).expect("a client");
    let job = direct.job_create(&talker(), Duration::ZERO).await.expect("a job");
    let patience = Patience {
        attempts: 12,
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(200),
        ..Patience::default()
    };
    let client = Client::new(&proxy.url(), &server.key).expect("a client").with_patience(patience);
    let mut output = client.job_output(&job.id, None);
    let (mut streams, mut numbers, mut results) = ([Vec::new(), Vec::new()], Vec::new(), 0);
    let mut has_ended = false;
    // The result has more bytes than a connection carries, so that only the direct way brings it.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while let Ok(Some(event)) =
        tokio::time::timeout_at(deadline, output.next()).await.expect("the output comes to an end")
    {
        numbers.push(event.seq());
        match event {
            OutputEvent::Stdout { bytes, .. } => streams[0].extend(bytes),
            OutputEvent::Stderr { bytes, .. } => streams[1].extend(bytes),
            OutputEvent::Result { .. } => results += 1,
            OutputEvent::Complete { .. } => has_ended = true,
            OutputEvent::Init { .. } | OutputEvent::Truncated { .. } => {}
        }
    }
    assert_eq!((results, has_ended), (0, false), "the proxy let a whole result through");
    let mut rest = direct.job_output(&job.id, numbers.last().copied());
    while let Some(event) = rest.next().await.expect("an event") {
        numbers.push(event.seq());
        match event {
            OutputEvent::Stdout { bytes, .. } => streams[0].extend(bytes),
            OutputEvent::Stderr { bytes, .. } => streams[1].extend(bytes),
            OutputEvent::Result { job, .. } => {
                results += 1;
                assert_eq!(job.result.expect("a result").stdout, expected(0));
            }
            _ => {}
        }
    }
    let [out, err] = streams.map(|bytes| String::from_utf8(bytes).expect("text"));
    assert_eq!((out, err), (expected(0), expected(1)));
    assert_eq!(results, 1);
    let whole: Vec<i64> = (0..numbers.len() as i64).collect();
    assert_eq!(numbers, whole, "a number is missing or there twice");
    assert!(proxy.connections() > 10, "only {} connections broke", proxy.connections());
}

/// The command writes each event as a line; whoever is killed goes on behind the last whole one.
#[test]
fn a_follower_that_is_killed_goes_on_where_it_was() {
    let folder = Folder::new("killed");
    let server = Server::start(folder.path(), &[]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let client = Client::new(&format!("http://{}", server.address), &server.key).expect("a client");
    let job = runtime.block_on(client.job_create(&talker(), Duration::ZERO)).expect("a job");
    let follow = |after: Option<i64>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
        command.args(["job", "logs", "-f", "--json", &job.id]);
        if let Some(after) = after {
            command.args(["--after", &after.to_string()]);
        }
        command
            .env("COFFERDAM_URL", format!("http://{}", server.address))
            .env("COFFERDAM_API_KEY", &server.key);
        command.stdout(Stdio::piped()).spawn().expect("a follower")
    };
    let mut lines: Vec<serde_json::Value> = Vec::new();
    for kill in 0..4 {
        let mut child = follow(lines.last().map(|line| line["seq"].as_i64().expect("a number")));
        let mut reader = BufReader::new(child.stdout.take().expect("its output"));
        for _ in 0..3 + kill {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            lines.push(serde_json::from_str(&line).expect("JSON"));
        }
        // SIGKILL; what it had written and nobody read is gone with it.
        child.kill().expect("it is killed");
        child.wait().expect("its end");
    }
    let mut child = follow(lines.last().map(|line| line["seq"].as_i64().expect("a number")));
    let mut rest = String::new();
    child.stdout.take().expect("its output").read_to_string(&mut rest).expect("text");
    assert_eq!(child.wait().expect("its end").code(), Some(0));
    lines.extend(rest.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")));
    let text = |name: &str| -> String {
        let of = lines.iter().filter(|line| line["event"] == name);
        of.map(|line| line["text"].as_str().expect("text")).collect()
    };
    assert_eq!((text("stdout"), text("stderr")), (expected(0), expected(1)));
    let numbers: Vec<i64> = lines.iter().map(|line| line["seq"].as_i64().expect("a number")).collect();
    assert_eq!(numbers, (0..lines.len() as i64).collect::<Vec<_>>());
    assert_eq!(lines.last().map(|line| line["event"].clone()), Some("complete".into()));
}
