//! A worker's word that it is there, again and again.

use crate::call::Peer;
use crate::connector::{HttpWorkers, RemoteError, check_url};
use cofferdam_api::{WorkerHeartbeat, WorkerHeartbeatAnswer, WorkerSession};
use cofferdam_control::{HEARTBEAT, ServiceTokens};
use reqwest::Method;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;

/// While nobody has heard it, it is said more often.
const UNHEARD: Duration = Duration::from_millis(500);

/// What says that a worker is there.
#[derive(Debug)]
pub struct Registration {
    id: String,
    controls: Vec<Peer>,
    beat: watch::Receiver<WorkerHeartbeat>,
}

impl Registration {
    /// `controls` are the addresses of control planes that share a store: one of them is enough.
    pub fn new(
        id: String,
        controls: &[String],
        tokens: &ServiceTokens,
        authorities: Option<&[u8]>,
        beat: watch::Receiver<WorkerHeartbeat>,
    ) -> Result<Self, RemoteError> {
        let workers = HttpWorkers::new(tokens, authorities)?;
        for url in controls {
            check_url(url)?;
        }
        Ok(Self { id, controls: controls.iter().map(|url| workers.peer(url)).collect(), beat })
    }

    /// Says it until it is dropped, and at once when there is something new to say. `sessions` are those that the worker
    /// has by then; `heard` is called each time with whether anybody heard it, and with those that are not its own.
    pub async fn keep(
        mut self,
        sessions: impl Fn() -> Vec<WorkerSession>,
        mut heard: impl FnMut(Result<Vec<WorkerSession>, String>),
    ) -> Infallible {
        loop {
            let pause = match self.say(sessions()).await {
                Ok(WorkerHeartbeatAnswer { next_ms, not_yours }) => {
                    heard(Ok(not_yours));
                    Duration::from_millis(next_ms)
                }
                Err(why) => {
                    heard(Err(why));
                    UNHEARD
                }
            };
            // Whoever changes it is gone only with the process.
            let _ = tokio::time::timeout(pause, self.beat.changed()).await;
        }
    }

    async fn say(&mut self, sessions: Vec<WorkerSession>) -> Result<WorkerHeartbeatAnswer, String> {
        let beat = WorkerHeartbeat { sessions, ..self.beat.borrow_and_update().clone() };
        let path = format!("/internal/workers/{}", self.id);
        let mut why = "there is no control plane to tell".to_owned();
        for control in 0..self.controls.len() {
            match self.controls[control].call(Method::PUT, &path, Some(&beat)).await {
                Ok(answer) => {
                    // The one that answered is asked first the next time.
                    self.controls.swap(0, control);
                    let usual = |_| {
                        let next_ms = HEARTBEAT.as_millis() as u64;
                        WorkerHeartbeatAnswer { next_ms, not_yours: Vec::new() }
                    };
                    return Ok(serde_json::from_value(answer).unwrap_or_else(usual));
                }
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }
}
