//! What an operator decides about sessions.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    /// For those whose request does not say.
    pub default_ttl: Duration,
    /// The furthest off, from now, that a deadline may be put.
    pub maximum_ttl: Duration,
    /// How many of one session's steps may run or wait at once.
    pub max_waiting_steps: u64,
    /// For so long a session is kept that was paused at its deadline.
    pub archive_ttl: Duration,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            default_ttl: Duration::from_secs(3600),
            maximum_ttl: Duration::from_secs(24 * 3600),
            max_waiting_steps: 64,
            archive_ttl: Duration::from_secs(7 * 24 * 3600),
        }
    }
}
