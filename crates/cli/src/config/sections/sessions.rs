//! `[sessions]`: how long sandboxes that stay may stay.

use crate::config::Config;
use crate::config::kinds::{Count, Kind, Time};
use crate::config::setting::{Clash, Section, setting};

pub(crate) const SECTION: Section = Section {
    name: "sessions",
    about: "Sandboxes that stay. A session is a sandbox of its tenant's `max_running` for as long as it lives.",
    settings: &[
        setting!(
            "ttl",
            Time,
            control.sessions.default_ttl,
            "the time after which a session ends, unless it says otherwise"
        ),
        setting!(
            "ttl_max",
            Time,
            control.sessions.maximum_ttl,
            "the furthest off, from now, that a deadline may be"
        ),
        setting!(
            "max_waiting_steps",
            Count<u64>,
            control.sessions.max_waiting_steps,
            "steps of one session that run or wait at once; more are a 429"
        ),
        setting!(
            "archive_ttl",
            Time,
            control.sessions.archive_ttl,
            "how long a session is kept that was paused at its deadline"
        ),
    ],
    check,
};

/// The default lies within the maximum.
fn check(config: &Config) -> Result<(), Clash> {
    let sessions = &config.control.sessions;
    if sessions.default_ttl <= sessions.maximum_ttl {
        return Ok(());
    }
    let fix = "it is more than ttl_max; lower it, or raise that".to_owned();
    Err(Clash { key: "ttl", value: Time::show(&sessions.default_ttl), fix })
}
