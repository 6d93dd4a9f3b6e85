//! What `doctor` says of one part of a machine.

use serde::Serialize;

/// How a part of the machine stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    Ok,
    Degraded,
    Missing,
}

/// One line of `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Such as `kernel`, `cgroup`, `runtime`, `helper`.
    pub group: &'static str,
    pub name: String,
    pub state: CheckState,
    /// What was found.
    pub found: String,
    /// What to do about it, where something can be done.
    pub fix: Option<String>,
    /// Whether sandboxes cannot be made in strict mode without it.
    pub required: bool,
}
