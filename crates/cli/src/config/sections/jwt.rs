//! `[jwt]`: whose tokens are taken besides keys.

use crate::config::Config;
use crate::config::kinds::{Folder, Maybe, Switch, Text, Time};
use crate::config::setting::{Clash, Section, setting};
use cofferdam_identity::{ClaimNames, Jwks, JwtSettings};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct JwtConfig {
    issuer: Option<String>,
    audience: Option<String>,
    jwks_file: Option<PathBuf>,
    jwks_url: Option<String>,
    jwks_ca_file: Option<PathBuf>,
    refresh: Duration,
    max_age: Duration,
    leeway: Duration,
    names: ClaimNames,
    allow_operator: bool,
}

impl Default for JwtConfig {
    fn default() -> Self {
        Self {
            issuer: None,
            audience: None,
            jwks_file: None,
            jwks_url: None,
            jwks_ca_file: None,
            refresh: Duration::from_secs(600),
            max_age: Duration::from_secs(24 * 3600),
            leeway: Duration::from_secs(30),
            names: ClaimNames::default(),
            allow_operator: false,
        }
    }
}

pub(crate) const SECTION: Section = Section {
    name: "jwt",
    about: "Tokens (JWT) that are taken besides keys. Without an issuer none is.",
    settings: &[
        setting!("issuer", Maybe<Text>, jwt.issuer, "whose tokens are taken: `iss`, exactly"),
        setting!("audience", Maybe<Text>, jwt.audience, "what they have to be for: `aud`"),
        setting!(
            "jwks_file",
            Maybe<Folder>,
            jwt.jwks_file,
            "a file with the keys, as a set (RFC 7517). Only a file may hold secrets, for HS256"
        ),
        setting!("jwks_url", Maybe<Text>, jwt.jwks_url, "an address of the keys, over https"),
        setting!(
            "jwks_ca_file",
            Maybe<Folder>,
            jwt.jwks_ca_file,
            "certificates for that address, in the place of the system's"
        ),
        setting!("refresh", Time, jwt.refresh, "keys of an address are fetched again after this time"),
        setting!(
            "max_age",
            Time,
            jwt.max_age,
            "keys that could not be fetched again for so long are not believed any more"
        ),
        setting!("leeway", Time, jwt.leeway, "by so much clocks may differ"),
        setting!("tenant_claim", Text, jwt.names.tenant, "the claim with the tenant, by id or by name"),
        setting!("agent_claim", Text, jwt.names.agent, "the claim with the agent"),
        setting!(
            "scope_claim",
            Text,
            jwt.names.scope,
            "the claim with the scopes, as words in one text or as a list"
        ),
        setting!(
            "allow_operator",
            Switch,
            jwt.allow_operator,
            "whether a token may have the scope `operator`"
        ),
    ],
    check,
};

fn check(config: &Config) -> Result<(), Clash> {
    config.jwt.settings().map(drop)
}

impl JwtConfig {
    /// What control takes; none where no issuer is named.
    pub(crate) fn settings(&self) -> Result<Option<JwtSettings>, Clash> {
        let clash =
            |key, value: &str, fix: &str| Err(Clash { key, value: value.to_owned(), fix: fix.to_owned() });
        let Some(issuer) = &self.issuer else {
            return match (&self.audience, &self.jwks_file, &self.jwks_url) {
                (None, None, None) => Ok(None),
                _ => clash("issuer", "", "name the issuer, or leave all of [jwt] out"),
            };
        };
        let Some(audience) = &self.audience else {
            return clash("audience", "", "say what tokens have to be for");
        };
        let jwks = match (&self.jwks_file, &self.jwks_url) {
            (Some(path), None) => Jwks::File(path.clone()),
            (None, Some(url)) => Jwks::Url {
                url: url.clone(),
                ca_file: self.jwks_ca_file.clone(),
                refresh: self.refresh,
                max_age: self.max_age,
            },
            (None, None) => return clash("jwks_file", "", "give jwks_file or jwks_url"),
            (Some(_), Some(url)) => return clash("jwks_url", url, "give either jwks_file or jwks_url"),
        };
        Ok(Some(JwtSettings {
            issuer: issuer.clone(),
            audience: audience.clone(),
            jwks,
            leeway: self.leeway,
            names: self.names.clone(),
            allow_operator: self.allow_operator,
        }))
    }
}
