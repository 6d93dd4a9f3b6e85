//! Sessions to attack: a `cofferdam serve` of the suite's own, with the same secrets planted in it as in a launcher, and
//! sessions in each of the states that one can be in.

use crate::lab::{DISK_BYTES, MEMORY_BYTES, PIDS, PROBE};
use crate::place::State;
use crate::probe::Output;
use crate::service::client::Client;
use crate::service::server::{Ground, Target};
use crate::service::{Stop, cannot, needs};
use cofferdam_backend::ExitStatus;
use cofferdam_linux::slots::{FIRST_ID, IDS_PER_SLOT};
use serde_json::{Value, json};
use std::path::Path;

/// No probe takes longer; those that flood end by themselves.
const STEP_MS: u64 = 60_000;

/// A server with sessions.
#[derive(Debug)]
pub(crate) struct Ward {
    target: Target,
    probe: Vec<u8>,
}

/// A session, with the probe in it.
#[derive(Debug)]
pub(crate) struct Patient {
    pub(crate) id: String,
    /// The number of its sandbox's range of ids.
    pub(crate) slot: u32,
    /// The one that it was forked from.
    parent: Option<String>,
}

impl Ward {
    /// A server that was started as carelessly as a launcher of the suite: with the nonce in its environment.
    pub(crate) fn open(ground: &Ground, probe: &Path, nonce: &str) -> Result<Self, Stop> {
        let options = ["--slots", "64", "--memory", "64g"];
        let target = ground.start_with(&options, &[("SERVER_TOKEN", nonce)])?;
        Ok(Self { target, probe: std::fs::read(probe)? })
    }

    pub(crate) fn client(&self) -> Client {
        self.target.operator()
    }

    /// A file of the server's own, and what is in it.
    pub(crate) fn secret_file(&self) -> (String, String) {
        (self.target.data().join("admin.key").display().to_string(), self.target.key.clone())
    }

    fn create(&self) -> Result<String, Stop> {
        let limits = json!({"memory_bytes": MEMORY_BYTES, "pids": PIDS, "disk_bytes": DISK_BYTES, "cpus": 1});
        let made = self.client().post("/v1/sessions", &json!({"ttl_seconds": 900, "limits": limits}))?;
        made.word("id")
    }

    fn ask(&self, id: &str, verb: &str, body: &Value) -> Result<Value, Stop> {
        let answer = self.client().post(&format!("/v1/sessions/{id}/{verb}"), body)?;
        needs(answer.is_good(), || format!("{verb}: {} {}", answer.status, answer.text()))?;
        Ok(answer.json())
    }

    /// A session in a state. Until then it has run something, as one that is kept has.
    pub(crate) fn admit(&self, state: State) -> Result<Patient, Stop> {
        let first = self.create()?;
        let path = format!("/v1/sessions/{first}/files?path={PROBE}&mode=755");
        let put = self.client().send("PUT", &path, "", &self.probe)?;
        needs(put.is_good(), || format!("the probe: {} {}", put.status, put.text()))?;
        self.step(&first, &["true"])?;
        let (id, parent) = match state {
            State::Fresh => (first, None),
            State::Thawed | State::Resumed => {
                let mode = if state == State::Thawed { "freeze" } else { "archive" };
                self.ask(&first, "pause", &json!({"mode": mode}))?;
                let resumed = self.client().send("POST", &format!("/v1/sessions/{first}/resume"), "", b"")?;
                needs(resumed.is_good(), || format!("resume: {} {}", resumed.status, resumed.text()))?;
                (first, None)
            }
            State::Forked => {
                let forked = self.ask(&first, "fork", &json!({"count": 1}))?;
                match forked["sessions"][0]["id"].as_str() {
                    Some(child) => (child.to_owned(), Some(first)),
                    None => return cannot(format!("no child: {forked}")),
                }
            }
        };
        let map = self.step(&id, &["cat", "/proc/self/uid_map"])?;
        let map = map["result"]["stdout"].as_str().unwrap_or_default().to_owned();
        let first_id: Option<u32> = map.split_whitespace().nth(1).and_then(|id| id.parse().ok());
        let slot = first_id.and_then(|first| Some(first.checked_sub(FIRST_ID)? / IDS_PER_SLOT));
        match slot {
            Some(slot) => Ok(Patient { id, slot, parent }),
            None => cannot(format!("an id map: {map}")),
        }
    }

    pub(crate) fn step(&self, id: &str, argv: &[&str]) -> Result<Value, Stop> {
        self.ask(id, &format!("steps?wait_ms={STEP_MS}"), &json!({"command": argv, "timeout_ms": STEP_MS}))
    }

    /// Runs the probe as a step.
    pub(crate) fn run(&self, patient: &Patient, words: &[String]) -> Result<Output, Stop> {
        let argv: Vec<&str> = [PROBE].into_iter().chain(words.iter().map(String::as_str)).collect();
        let step = self.step(&patient.id, &argv)?;
        let result = &step["result"];
        let outcome = &result["outcome"];
        let number = |name: &str| outcome[name].as_i64().and_then(|n| i32::try_from(n).ok());
        let status = match outcome["kind"].as_str() {
            Some("exited") => ExitStatus::Exited(number("code").unwrap_or(-1)),
            Some("signaled") => ExitStatus::Signaled(number("signal").unwrap_or(-1)),
            Some("oom_killed") => ExitStatus::Signaled(9),
            _ => return cannot(format!("the step did not end: {step}")),
        };
        let text = [&result["stdout"], &result["stderr"]].map(|text| text.as_str().unwrap_or_default());
        let oom_kills = u64::from(outcome["kind"] == "oom_killed");
        Ok(Output { status, text: text.concat().into_bytes(), oom_kills })
    }

    /// Ends a session; everything of it has to be gone when this returns.
    pub(crate) fn discharge(&self, patient: &Patient) -> Result<(), Stop> {
        for id in [Some(&patient.id), patient.parent.as_ref()].into_iter().flatten() {
            let gone = self.client().delete(&format!("/v1/sessions/{id}"))?;
            needs(gone.status == 204, || format!("its end: {} {}", gone.status, gone.text()))?;
        }
        Ok(())
    }
}
