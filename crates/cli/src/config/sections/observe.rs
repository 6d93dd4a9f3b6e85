//! `[observe]`: how an operator sees what the server does.

use crate::config::Config;
use crate::config::kinds::{Address, Maybe, Text};
use crate::config::setting::{Clash, Section, setting};
use std::net::SocketAddr;

#[derive(Debug)]
pub(crate) struct ObserveConfig {
    pub(crate) metrics_listen: Option<SocketAddr>,
    pub(crate) log_format: String,
    pub(crate) log_level: String,
    pub(crate) otlp: Option<String>,
}

impl Default for ObserveConfig {
    fn default() -> Self {
        let (log_format, log_level) = ("auto".to_owned(), "info".to_owned());
        Self { metrics_listen: None, log_format, log_level, otlp: None }
    }
}

pub(crate) const SECTION: Section = Section {
    name: "observe",
    about: "The log on stderr, metrics and traces: [operations.md](operations.md).",
    settings: &[
        setting!(
            "metrics_listen",
            Maybe<Address>,
            observe.metrics_listen,
            "address on loopback that serves `/metrics`, `/healthz` and `/readyz` without a key",
            flag = "--metrics-listen"
        ),
        setting!(
            "log_format",
            Text,
            observe.log_format,
            "`human`, `json`, or `auto`: human on a terminal",
            flag = "--log-format"
        ),
        setting!(
            "log_level",
            Text,
            observe.log_level,
            "`off`, `error`, `warn`, `info`, `debug` or `trace`",
            flag = "--log-level"
        ),
        setting!(
            "otlp",
            Maybe<Text>,
            observe.otlp,
            "collector of traces by OTLP over HTTP, such as `http://127.0.0.1:4318`",
            flag = "--otlp"
        ),
    ],
    check,
};

const FORMATS: [&str; 3] = ["auto", "human", "json"];
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Whoever reaches the metrics needs no key, so only those on this machine may.
fn check(config: &Config) -> Result<(), Clash> {
    let observe = &config.observe;
    let one_of = |names: &[&str]| format!("it must be one of {}", names.join(", "));
    if let Some(address) = observe.metrics_listen.filter(|address| !address.ip().is_loopback()) {
        let fix = "metrics are served without a key, so only on loopback".to_owned();
        return Err(Clash { key: "metrics_listen", value: address.to_string(), fix });
    }
    if !FORMATS.contains(&observe.log_format.as_str()) {
        return Err(Clash { key: "log_format", value: observe.log_format.clone(), fix: one_of(&FORMATS) });
    }
    if !LEVELS.contains(&observe.log_level.as_str()) {
        return Err(Clash { key: "log_level", value: observe.log_level.clone(), fix: one_of(&LEVELS) });
    }
    match &observe.otlp {
        Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
            let fix = "it must be a URL such as http://127.0.0.1:4318".to_owned();
            Err(Clash { key: "otlp", value: url.clone(), fix })
        }
        _ => Ok(()),
    }
}
