//! Attacks on sessions: by other tenants, by what runs in one on whoever looks at it, on what is kept of one, and on its
//! time.

pub(crate) mod archives;
pub(crate) mod guests;
pub(crate) mod kept;
pub(crate) mod states;
pub(crate) mod time;

use super::client::Client;
use super::{Stop, needs};
use serde_json::{Value, json};

/// A session of this client's.
pub(crate) fn create(client: &Client, body: &Value) -> Result<String, Stop> {
    client.post("/v1/sessions", body)?.word("id")
}

pub(crate) fn step(client: &Client, id: &str, body: &Value) -> Result<Value, Stop> {
    let answer = client.post(&format!("/v1/sessions/{id}/steps?wait_ms=60000"), body)?;
    needs(answer.status == 200, || format!("a step: {} {}", answer.status, answer.text()))?;
    Ok(answer.json())
}

/// What a line of shell says.
pub(crate) fn shell(client: &Client, id: &str, line: &str) -> Result<String, Stop> {
    let step = step(client, id, &json!({"command": line}))?;
    Ok(step["result"]["stdout"].as_str().unwrap_or_default().to_owned())
}

pub(crate) fn put(
    client: &Client,
    id: &str,
    rest: &str,
    bytes: &[u8],
) -> Result<super::client::Answer, Stop> {
    Ok(client.send("PUT", &format!("/v1/sessions/{id}/{rest}"), "", bytes)?)
}
