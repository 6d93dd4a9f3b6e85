//! `[tls]`: the certificate.

use crate::config::Config;
use crate::config::kinds::{Folder, Maybe};
use crate::config::setting::{Clash, Section, setting};
use std::path::PathBuf;

#[derive(Debug, Default)]
pub(crate) struct TlsConfig {
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

pub(crate) const SECTION: Section = Section {
    name: "tls",
    about: "The certificate of the listener. Both files are read again when they change, and at SIGHUP; connections that are there stay.",
    settings: &[
        setting!(
            "cert",
            Maybe<Folder>,
            tls.cert,
            "a file with the chain of certificates, in PEM",
            flag = "--tls-cert"
        ),
        setting!("key", Maybe<Folder>, tls.key, "a file with the private key, in PEM", flag = "--tls-key"),
    ],
    check,
};

fn check(config: &Config) -> Result<(), Clash> {
    let fix = || "a certificate and its key go together; give both".to_owned();
    match (&config.tls.cert, &config.tls.key) {
        (Some(cert), None) => Err(Clash { key: "cert", value: cert.display().to_string(), fix: fix() }),
        (None, Some(key)) => Err(Clash { key: "key", value: key.display().to_string(), fix: fix() }),
        _ => Ok(()),
    }
}
