//! Where a session stands, and why it ended.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A session's state. Out of `ended` nothing leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Its sandbox is being made.
    Creating,
    /// It takes steps.
    Ready,
    /// It is kept, and takes no steps until it is resumed.
    Paused,
    /// Its sandbox is gone; the cause says why.
    Ended,
}

impl SessionState {
    pub const ALL: [Self; 4] = [Self::Creating, Self::Ready, Self::Paused, Self::Ended];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Ready => "ready",
            Self::Paused => "paused",
            Self::Ended => "ended",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether a session may go from this state to that.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Creating => matches!(next, Self::Ready | Self::Ended),
            Self::Ready => matches!(next, Self::Paused | Self::Ended),
            Self::Paused => matches!(next, Self::Ready | Self::Ended),
            Self::Ended => false,
        }
    }
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// Somebody asked for it.
    Deleted,
    /// Its deadline came.
    Expired,
    /// Nobody used it for as long as its idle time-out says.
    Idle,
    /// Its worker or its sandbox went away, and everything in it.
    Lost,
    /// Its sandbox could not be made.
    Errored,
}

impl EndCause {
    pub const ALL: [Self; 5] = [Self::Deleted, Self::Expired, Self::Idle, Self::Lost, Self::Errored];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Expired => "expired",
            Self::Idle => "idle",
            Self::Lost => "lost",
            Self::Errored => "errored",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == name)
    }
}

impl fmt::Display for EndCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for state in SessionState::ALL {
            assert_eq!(SessionState::from_name(state.as_str()), Some(state));
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("{:?}", state.as_str()));
        }
        for cause in EndCause::ALL {
            assert_eq!(EndCause::from_name(cause.as_str()), Some(cause));
            assert_eq!(serde_json::to_string(&cause).unwrap(), format!("{:?}", cause.as_str()));
        }
    }

    #[test]
    fn nothing_leaves_the_end_and_nothing_is_made_twice() {
        for state in SessionState::ALL {
            assert!(!SessionState::Ended.may_become(state));
            assert!(!state.may_become(SessionState::Creating));
        }
        assert!(SessionState::Ready.may_become(SessionState::Paused));
        assert!(!SessionState::Creating.may_become(SessionState::Paused));
    }
}
