//! Verbs on sessions and their steps.

use crate::{Client, Result};
use cofferdam_api::{Session, SessionExtend, SessionList, SessionRequest};
use cofferdam_core::SessionState;
use reqwest::Method;

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
}
