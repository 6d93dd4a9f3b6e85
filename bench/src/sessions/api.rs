//! The calls that are made of sessions.

use std::time::Duration;

use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::http::Http;
use crate::server::Server;

#[derive(Debug)]
pub(super) struct Api {
    pub(super) http: Http,
}

/// A session that was just made.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) id: String,
    pub(super) expires_at_ms: i64,
    pub(super) took: Duration,
}

/// A session as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) has_ended: bool,
    pub(super) since_ms: i64,
}

impl Api {
    pub(super) fn new(server: &Server) -> Self {
        Self { http: Http::new(server.address(), server.key()) }
    }

    pub(super) fn create(&self, ttl_seconds: u64, limits: Value) -> Result<Made> {
        let body = json!({"ttl_seconds": ttl_seconds, "limits": limits}).to_string();
        let answer = self.http.call("POST", "/v1/sessions", &body)?;
        let session = answer.json(201)?;
        let expires_at_ms = time(&session["expires_at"])?;
        Ok(Made { id: text(&session["id"])?, expires_at_ms, took: answer.took })
    }

    /// Runs code and is content only with the value of its last expression, or what it prints.
    pub(super) fn python(&self, id: &str, code: &str, expected: &str) -> Result<Duration> {
        let body = json!({"language": "python", "code": code}).to_string();
        let answer = self.http.call("POST", &format!("/v1/sessions/{id}/steps?wait_ms=60000"), &body)?;
        let step = answer.json(200)?;
        let result = &step["result"];
        let value = result["results"][0]["data"]["text/plain"].as_str();
        match value.or(result["stdout"].as_str()) == Some(expected) && result["error"].is_null() {
            true => Ok(answer.took),
            false => Err(Failure::new(format!("a step was to give {expected:?}: {step}"))),
        }
    }

    /// Makes children and returns their ids.
    pub(super) fn fork(&self, id: &str) -> Result<(Vec<String>, Duration)> {
        let answer = self.http.call("POST", &format!("/v1/sessions/{id}/fork"), r#"{"count":1}"#)?;
        let forked = answer.json(201)?;
        let children = forked["sessions"].as_array().into_iter().flatten();
        Ok((children.map(|child| text(&child["id"])).collect::<Result<_>>()?, answer.took))
    }

    pub(super) fn show(&self, id: &str) -> Result<Seen> {
        let session = self.http.call("GET", &format!("/v1/sessions/{id}"), "")?.json(200)?;
        let status = &session["status"];
        Ok(Seen { has_ended: status["state"] == "ended", since_ms: time(&status["last_transition_at"])? })
    }

    pub(super) fn delete(&self, id: &str) -> Result<()> {
        self.http.call("DELETE", &format!("/v1/sessions/{id}"), "")?.expect(204)
    }

    /// Sandboxes that are nobody's yet.
    pub(super) fn waiting(&self) -> Result<usize> {
        let answer = self.http.call("GET", "/metrics", "")?;
        answer.expect(200)?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let found = text.lines().find_map(|line| line.strip_prefix("cofferdam_pool_waiting "));
        found
            .and_then(|number| number.trim().parse().ok())
            .ok_or_else(|| Failure::new("the service does not tell how many sandboxes wait"))
    }
}

fn text(value: &Value) -> Result<String> {
    value.as_str().map(String::from).ok_or_else(|| Failure::new(format!("the service answered {value}")))
}

fn time(value: &Value) -> Result<i64> {
    let text = text(value)?;
    cofferdam_core::parse_timestamp("time", &text).map_err(|error| Failure::new(error.to_string()))
}
