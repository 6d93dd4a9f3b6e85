//! A session's time: kept alive by nobody but itself, and put off at the moment at which it is over.

use super::create;
use crate::service::server::Ground;
use crate::service::{Outcome, Stop, broke, broke_if, needs};
use serde_json::json;
use std::time::{Duration, Instant};

/// A guest that does what it can to look used.
pub(crate) fn idle(ground: &Ground) -> Outcome {
    let target = ground.start(&[])?;
    let client = target.operator();
    let id = create(&client, &json!({"ttl_seconds": 600, "idle_timeout_seconds": 2}))?;
    let path = format!("/v1/sessions/{id}");
    let busy =
        "while :; do echo busy; date > file; touch $CYNODE_ARTIFACTS_DIR/a 2>/dev/null; sleep .05; done";
    let started = client.post(&format!("{path}/processes"), &json!({"command": ["sh", "-c", busy]}))?;
    needs(started.is_good(), || format!("a process: {}", started.status))?;
    let left = json!({"command": format!("({busy}) & echo left")});
    client.post(&format!("{path}/steps?wait_ms=30000"), &left)?;
    let began = Instant::now();
    loop {
        let session = client.get(&path)?.json();
        if session["status"]["state"] == "ended" {
            let (cause, took) = (session["status"]["cause"].clone(), began.elapsed());
            broke_if(cause != "idle", || format!("it ended as {cause}"))?;
            return Ok(format!("ended after {} ms", took.as_millis()));
        }
        if began.elapsed() > Duration::from_secs(15) {
            return broke("it is there after 15 s, with a time of 2 s");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// How many sessions are extended around the end of their time.
const RACES: u64 = 16;

/// Extended at the moment of the deadline: it is either so, and holds, or it was too late and is said to be.
pub(crate) fn race(ground: &Ground) -> Outcome {
    let target = ground.start(&["--slots", "32", "--memory", "64g"])?;
    let client = target.operator();
    let racers: Vec<_> = (0..RACES)
        .map(|number| {
            let client = client.clone();
            std::thread::spawn(move || -> Result<(String, u16), Stop> {
                let began = Instant::now();
                let id = create(&client, &json!({"ttl_seconds": 1}))?;
                // Before, at, and after the end of the second.
                let moment = Duration::from_millis(960 + number * 8);
                std::thread::sleep(moment.saturating_sub(began.elapsed()));
                let body = json!({"ttl_seconds": 600});
                let answer = client.post(&format!("/v1/sessions/{id}/extend"), &body)?;
                Ok((id, answer.status))
            })
        })
        .collect();
    let mut ends = Vec::new();
    for racer in racers {
        ends.push(racer.join().map_err(|_| Stop::Error("a racer fell".to_owned()))??);
    }
    std::thread::sleep(Duration::from_secs(3));
    let mut extended = 0;
    for (id, status) in &ends {
        let session = client.get(&format!("/v1/sessions/{id}"))?.json();
        let state = &session["status"]["state"];
        match status {
            200 => {
                extended += 1;
                broke_if(state != "ready", || format!("extended, and then {session}"))?;
                let step = client
                    .post(&format!("/v1/sessions/{id}/steps?wait_ms=30000"), &json!({"command": "true"}))?;
                broke_if(step.status != 200, || format!("extended, and then {}", step.status))?;
            }
            409 => {
                broke_if(session["status"]["cause"] != "expired", || format!("refused, and then {session}"))?
            }
            other => return broke(format!("extend: {other}")),
        }
    }
    Ok(format!("{extended} of {} extended in time, the rest refused and ended", ends.len()))
}
