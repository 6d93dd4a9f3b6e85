//! `[http]`: what a client may cost before it has said anything of use.

use crate::config::Config;
use crate::config::kinds::{Bytes, Count, Kind, Time};
use crate::config::setting::{Clash, Section, setting};

pub(crate) const SECTION: Section = Section {
    name: "http",
    about: "Connections, and for how long one may keep the server waiting.",
    settings: &[
        setting!(
            "max_connections",
            Count<usize>,
            http.max_connections,
            "connections at once; more wait to be taken"
        ),
        setting!("header_timeout", Time, http.header_timeout, "for the head of a request"),
        setting!("handshake_timeout", Time, http.handshake_timeout, "for the handshake of TLS"),
        setting!(
            "body_timeout",
            Time,
            http.body_timeout,
            "for a body, and besides a second for each 4 KiB of it; later is a 408"
        ),
        setting!(
            "idle_timeout",
            Time,
            http.idle_timeout,
            "a connection without a request is closed after this time"
        ),
        setting!("max_header_bytes", Bytes, http.max_header_bytes, "size of a request's head; at least 8k"),
        setting!("max_headers", Count<usize>, http.max_headers, "header fields of a request"),
        setting!("max_streams", Count<u32>, http.max_streams, "requests at once on one HTTP/2 connection"),
    ],
    check,
};

fn check(config: &Config) -> Result<(), Clash> {
    let bytes = config.http.max_header_bytes;
    if (8192..=1 << 20).contains(&bytes) {
        return Ok(());
    }
    let fix = "it must be from 8k to 1m".to_owned();
    Err(Clash { key: "max_header_bytes", value: Bytes::show(&bytes), fix })
}
