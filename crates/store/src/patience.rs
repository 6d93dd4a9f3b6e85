//! How long a database is waited for.

use std::time::Duration;

/// After these times a database that says nothing is taken for one that fails. Trying again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    pub connect: Duration,
    pub read: Duration,
    /// For a whole batch. One that was given up may have been kept all the same, as with any lost connection.
    pub write: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        // A write may have to wait for another process's first, which takes up to ten seconds by itself.
        Self { connect: seconds(10), read: seconds(10), write: seconds(30) }
    }
}
