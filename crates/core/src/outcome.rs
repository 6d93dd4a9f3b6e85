//! How a process ended, and what it ran into on the way.

use serde::{Deserialize, Serialize};

/// What ended a process. Told by evidence (wait status, cgroup events), never guessed from an exit code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    Exited { code: i32 },
    Signaled { signal: i32 },
    TimedOut,
    OomKilled,
    Cancelled { by: String },
    Denied { rule: String },
    Expired,
    Lost,
    Failed { code: String, message: String },
}

impl Outcome {
    /// The exit code, for a process that ended by itself.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Exited { code } => Some(*code),
            _ => None,
        }
    }
}

/// A limit that a process can run into without being ended by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    Memory,
    Pids,
    Cpu,
    Disk,
    Inodes,
    Output,
}

/// That a limit was reached, how often, and when it was first seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitHit {
    pub limit: LimitKind,
    pub count: u64,
    /// Milliseconds after the start; null where only the fact is known.
    #[serde(rename = "first_at_ms")]
    pub first_at_ms: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_have_their_documented_form() {
        let json = |outcome: &Outcome| serde_json::to_string(outcome).unwrap();
        assert_eq!(json(&Outcome::Exited { code: 0 }), r#"{"kind":"exited","code":0}"#);
        assert_eq!(json(&Outcome::Signaled { signal: 11 }), r#"{"kind":"signaled","signal":11}"#);
        assert_eq!(json(&Outcome::TimedOut), r#"{"kind":"timed_out"}"#);
        assert_eq!(json(&Outcome::OomKilled), r#"{"kind":"oom_killed"}"#);
        assert_eq!(Outcome::OomKilled.exit_code(), None);
        assert_eq!(Outcome::Exited { code: 137 }.exit_code(), Some(137));
    }
}
