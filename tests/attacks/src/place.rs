//! Where an attack is made: in a run of its own, or in a session, which may have been through something.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    /// A sandbox of its own.
    #[default]
    Run,
    Session(State),
}

/// What a session has been through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Fresh,
    /// Frozen, and it goes on.
    Thawed,
    /// Archived, and in another sandbox since.
    Resumed,
    /// Made from the files of another.
    Forked,
}

impl State {
    pub(crate) const ALL: [Self; 4] = [Self::Fresh, Self::Thawed, Self::Resumed, Self::Forked];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Thawed => "thawed",
            Self::Resumed => "resumed",
            Self::Forked => "forked",
        }
    }
}

/// The groups of the threat list that are tried in sessions as well: what a process can reach, learn and leave behind.
const GROUPS: [&str; 5] = ["escape-", "priv-", "leak-", "outlive-", "files-"];

pub(crate) fn is_for_sessions(case: &str) -> bool {
    GROUPS.iter().any(|group| case.starts_with(group))
}
