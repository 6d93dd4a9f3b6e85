//! `[webhooks]`: where jobs may be told of, and how often that is tried.

use crate::config::kinds::{Count, Networks, Switch, Time};
use crate::config::setting::{Section, no_clash, setting};

pub(crate) const SECTION: Section = Section {
    name: "webhooks",
    about: "Messages about jobs to addresses that their owners name: [webhooks.md](webhooks.md).",
    settings: &[
        setting!(
            "allow",
            Networks,
            control.webhooks.allowed,
            "addresses and networks that may be told although they are not public",
            flag = "--webhook-allow"
        ),
        setting!(
            "http",
            Switch,
            control.webhooks.plain_http,
            "takes addresses that begin with `http://`, too",
            flag = "--webhook-http"
        ),
        setting!(
            "attempts",
            Count<u32>,
            control.webhooks.attempts,
            "how often a message is tried before it is given up"
        ),
        setting!(
            "first_pause",
            Time,
            control.webhooks.first_pause,
            "the pause after the first attempt; each after that is twice as long"
        ),
        setting!("longest_pause", Time, control.webhooks.longest_pause, "the longest of these pauses"),
        setting!(
            "timeout",
            Time,
            control.webhooks.timeout,
            "for one attempt, from the lookup of the name to the head of the answer"
        ),
        setting!(
            "keep",
            Time,
            control.webhooks.keep,
            "how long messages that were delivered or given up are kept"
        ),
    ],
    check: no_clash,
};
