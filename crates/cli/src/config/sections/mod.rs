//! A file a topic. To add one: a file with a `SECTION`, its line in [`ALL`], and the field that it fills in
//! [`Config`] (what control decides by is in its `Settings`).

mod artifacts;
mod backends;
mod http;
mod jwt;
mod limits;
mod observe;
mod quotas;
mod retention;
mod serve;
mod sessions;
mod signing;
mod tls;
mod webhooks;

pub(crate) use backends::{BackendsConfig, MOST_WAITING};
pub(crate) use observe::ObserveConfig;
pub(crate) use serve::ServeConfig;

use super::setting::Section;

pub(crate) const ALL: &[Section] = &[
    serve::SECTION,
    tls::SECTION,
    backends::SECTION,
    http::SECTION,
    limits::SECTION,
    quotas::SECTION,
    sessions::SECTION,
    jwt::SECTION,
    signing::SECTION,
    retention::SECTION,
    artifacts::SECTION,
    observe::SECTION,
    webhooks::SECTION,
];

/// Everything that can be set.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) serve: ServeConfig,
    pub(crate) control: cofferdam_control::Settings,
    pub(crate) http: cofferdam_http::HttpSettings,
    pub(crate) tls: tls::TlsConfig,
    pub(crate) jwt: jwt::JwtConfig,
    pub(crate) observe: ObserveConfig,
}
