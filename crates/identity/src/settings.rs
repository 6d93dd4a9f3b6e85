//! What an operator says of tokens.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtSettings {
    pub issuer: String,
    pub audience: String,
    pub jwks: Jwks,
    /// By so much the clocks of the issuer and of this machine may differ.
    pub leeway: Duration,
    pub names: ClaimNames,
    /// Whether a token may carry the scope `operator`.
    pub allow_operator: bool,
}

/// Where the keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Jwks {
    File(PathBuf),
    Url {
        url: String,
        /// Certificates in the place of the system's, for an issuer with its own.
        ca_file: Option<PathBuf>,
        /// Keys are fetched again after this time, without anybody waiting for it.
        refresh: Duration,
        /// Keys that could not be fetched again for so long are not believed any more.
        max_age: Duration,
    },
}

/// Which claim says what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimNames {
    pub tenant: String,
    pub agent: String,
    pub scope: String,
}

impl Default for ClaimNames {
    fn default() -> Self {
        let [tenant, agent, scope] = ["tenant", "agent", "scope"].map(str::to_owned);
        Self { tenant, agent, scope }
    }
}
