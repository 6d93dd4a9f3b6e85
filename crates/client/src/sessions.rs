//! Verbs on sessions and their steps.

use crate::{Client, Result};
use cofferdam_api::{Session, SessionExtend, SessionList, SessionRequest, Step, StepRequest};
use cofferdam_core::SessionState;
use reqwest::Method;
use std::time::Duration;

/// The longest that one request waits for a step's end.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// How often a step is looked at that takes longer.
const LOOK: Duration = Duration::from_millis(500);

/// Which sessions are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionQuery {
    pub state: Option<SessionState>,
    pub task_id: Option<String>,
    pub agent: Option<String>,
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

impl Client {
    /// Has a session made, once, however often the request has to be sent.
    pub async fn session_create(&self, request: &SessionRequest) -> Result<Session> {
        self.call(Method::POST, &["v1", "sessions"]).body(request)?.once()?.json().await
    }

    pub async fn session_get(&self, id: &str) -> Result<Session> {
        self.call(Method::GET, &["v1", "sessions", id]).json().await
    }

    pub async fn session_list(&self, query: &SessionQuery) -> Result<SessionList> {
        let SessionQuery { state, task_id, agent, limit, cursor } = query;
        let mut call = self.call(Method::GET, &["v1", "sessions"]);
        let limit = limit.map(|limit| limit.to_string());
        let parameters = [
            ("state", state.map(SessionState::as_str)),
            ("task_id", task_id.as_deref()),
            ("agent", agent.as_deref()),
            ("limit", limit.as_deref()),
            ("cursor", cursor.as_deref()),
        ];
        for (name, value) in parameters {
            if let Some(value) = value {
                call = call.query(name, value);
            }
        }
        call.json().await
    }

    /// Puts a session's deadline off. It never comes nearer, so the request may be sent again.
    pub async fn session_extend(&self, id: &str, request: &SessionExtend) -> Result<Session> {
        self.call(Method::POST, &["v1", "sessions", id, "extend"]).body(request)?.repeatable().json().await
    }

    pub async fn session_delete(&self, id: &str) -> Result<()> {
        self.call(Method::DELETE, &["v1", "sessions", id]).gone().await
    }

    pub async fn step_get(&self, session: &str, id: &str) -> Result<Step> {
        self.call(Method::GET, &["v1", "sessions", session, "steps", id]).json().await
    }

    pub async fn step_interrupt(&self, session: &str, id: &str) -> Result<Step> {
        let path = ["v1", "sessions", session, "steps", id, "interrupt"];
        self.call(Method::POST, &path).repeatable().json().await
    }

    /// Runs a step, once, however often the request has to be sent; and waits for its end for at most `wait`.
    pub async fn step_create(&self, session: &str, request: &StepRequest, wait: Duration) -> Result<Step> {
        let wait = wait.min(MAX_WAIT);
        let path = ["v1", "sessions", session, "steps"];
        let call = self.call(Method::POST, &path).body(request)?.once()?.wait(wait);
        call.query("wait_ms", &wait.as_millis().to_string()).json().await
    }

    /// Runs a step and waits for its end, for as long as it takes.
    pub async fn step_run(&self, session: &str, request: &StepRequest) -> Result<Step> {
        let mut step = self.step_create(session, request, MAX_WAIT).await?;
        while !step.status.state.is_final() {
            tokio::time::sleep(LOOK).await;
            step = self.step_get(session, &step.id).await?;
        }
        Ok(step)
    }
}
