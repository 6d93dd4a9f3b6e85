//! `[serve]`: the process itself.

use super::BackendsConfig;
use crate::config::Config;
use crate::config::kinds::{Address, Count, Cpus, Folder, Maybe, Size, Switch, Text, Time};
use crate::config::setting::{Clash, Section, setting};
use cofferdam_core::Cpus as CpuShare;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct ServeConfig {
    pub(crate) data: Option<PathBuf>,
    pub(crate) listen: SocketAddr,
    pub(crate) database: Option<String>,
    pub(crate) artifacts: Option<String>,
    pub(crate) slots: Option<u64>,
    pub(crate) cpus: Option<CpuShare>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) drain: Duration,
    pub(crate) plain_http_anywhere: bool,
    pub(crate) backends: BackendsConfig,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            data: None,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            database: None,
            artifacts: None,
            slots: None,
            cpus: None,
            memory_bytes: None,
            drain: Duration::from_secs(30),
            plain_http_anywhere: false,
            backends: BackendsConfig::default(),
        }
    }
}

pub(crate) const SECTION: Section = Section {
    name: "serve",
    about: "The process, its folder and its address.",
    settings: &[
        setting!(
            "data",
            Maybe<Folder>,
            serve.data,
            "folder for the database and the first key; made if it is not there. It has to be given",
            flag = "--data"
        ),
        setting!("listen", Address, serve.listen, "address to listen on", flag = "--listen"),
        setting!(
            "database",
            Maybe<Text>,
            serve.database,
            "a postgres:// address, in the place of SQLite in the data folder",
            secret,
            flag = "--database"
        ),
        setting!(
            "artifacts",
            Maybe<Text>,
            serve.artifacts,
            "a folder or s3://BUCKET for artifacts; `artifacts` in the data folder unless it is given",
            flag = "--artifacts"
        ),
        setting!(
            "slots",
            Maybe<Count<u64>>,
            serve.slots,
            "jobs that may run at once; four for each processor unless it is given",
            flag = "--slots"
        ),
        setting!(
            "cpus",
            Maybe<Cpus>,
            serve.cpus,
            "CPUs that running jobs may have together; one for each slot unless it is given",
            flag = "--cpus"
        ),
        setting!(
            "memory",
            Maybe<Size>,
            serve.memory_bytes,
            "memory that running jobs may have together; 3/4 of the machine's unless it is given",
            flag = "--memory"
        ),
        setting!("drain", Time, serve.drain, "how long what runs may go on when the server is told to stop"),
        setting!(
            "plain_http_anywhere",
            Switch,
            serve.plain_http_anywhere,
            "allows an address that is not loopback without TLS: keys go over that network in the clear",
            flag = "--plain-http-anywhere"
        ),
        setting!(
            "dev_no_auth",
            Switch,
            control.dev_no_auth,
            "for development: a request without a key may do everything in the first tenant. Only on loopback; every use is audited",
            flag = "--dev-no-auth"
        ),
        setting!(
            "lease",
            Time,
            control.lease,
            "for this long a claim on a job is believed without another word; from 1s to 5m",
            flag = "--lease"
        ),
    ],
    check,
};

/// What lies between a lease that ends by a hiccup and a job that nobody knows of for minutes.
const LEASES: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(300);

/// Keys go over the wire with each request, so not in the clear to another machine; and without keys nobody from
/// there may ask at all.
fn check(config: &Config) -> Result<(), Clash> {
    let Config { serve, tls, control, .. } = config;
    if !LEASES.contains(&control.lease) {
        let value = format!("{}ms", control.lease.as_millis());
        return Err(Clash { key: "lease", value, fix: "it must be from 1s to 5m".to_owned() });
    }
    let is_local = serve.listen.ip().is_loopback();
    let clash =
        |fix: &str| Err(Clash { key: "listen", value: serve.listen.to_string(), fix: fix.to_owned() });
    if !is_local && control.dev_no_auth {
        return clash("without authentication (dev_no_auth) only loopback is served");
    }
    if !is_local && tls.cert.is_none() && !serve.plain_http_anywhere {
        return clash(
            "without TLS only loopback is served: give [tls] cert and key, or plain_http_anywhere where something \
             before it has TLS",
        );
    }
    Ok(())
}
