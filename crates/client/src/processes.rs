//! Verbs on the processes of a session.

use crate::{Attached, Client, Result};
use cofferdam_api::{ProcessList, ProcessRequest, ProcessView};
use reqwest::Method;
use std::time::Duration;

impl Client {
    /// Starts a process. It is not asked for again where the answer is lost: it might run twice.
    pub async fn process_start(&self, session: &str, request: &ProcessRequest) -> Result<ProcessView> {
        self.call(Method::POST, &["v1", "sessions", session, "processes"]).body(request)?.json().await
    }

    pub async fn process_list(&self, session: &str) -> Result<ProcessList> {
        self.call(Method::GET, &["v1", "sessions", session, "processes"]).json().await
    }

    /// How a process stands, once it has ended or after a time.
    pub async fn process_get(&self, session: &str, number: u64, wait: Duration) -> Result<ProcessView> {
        let number = number.to_string();
        let call = self.call(Method::GET, &["v1", "sessions", session, "processes", &number]).wait(wait);
        call.query("wait_ms", &wait.as_millis().to_string()).json().await
    }

    /// Connects to a process, and has its output from a number on.
    pub async fn process_attach(&self, session: &str, number: u64, from_seq: u64) -> Result<Attached> {
        Attached::open(self, session, number, from_seq).await
    }
}
