//! The catalogue: every case of the threat list, as data.

use cofferdam_core::Control;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The catalogue as it was when this program was built.
pub const TEXT: &str = include_str!("../catalogue.toml");

/// Every case id of the threat list, in its order.
pub const IDS: &str = include_str!("../ids.txt");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    pub case: BTreeMap<String, Case>,
    pub control: BTreeMap<String, Kill>,
}

/// One case; it has at least one of `runs`, `host`, `na` and `later`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub title: String,
    #[serde(default)]
    pub runs: Vec<Run>,
    #[serde(default)]
    pub host: Vec<Host>,
    pub na: Option<String>,
    pub later: Option<String>,
}

/// A probe in a sandbox, with everything in place and again without `steps`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub probe: String,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub steps: Vec<ControlName>,
    #[serde(default)]
    pub behind: Vec<ControlName>,
    pub no_control: Option<String>,
    #[serde(default)]
    pub expect: Expect,
    #[serde(default)]
    pub image: ImageKind,
    /// Another CPU limit than the suite's.
    pub cpus: Option<String>,
}

/// How a run with everything in place ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expect {
    #[default]
    Exit0,
    /// It may be killed for its memory as well.
    Oom,
}

/// The root filesystem of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageKind {
    #[default]
    Host,
    /// The folder that the suite made, with traps in it.
    Planted,
}

/// A driver outside the sandbox.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub driver: String,
    pub does: String,
    /// The probes that it runs.
    #[serde(default)]
    pub probes: Vec<String>,
    /// What `--quick` does instead; absent = it is as quick as the others.
    pub quick: Option<String>,
}

/// What notices that a control is missing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kill {
    #[serde(default)]
    pub probes: Vec<String>,
    #[serde(default)]
    pub drivers: Vec<String>,
    /// Other controls that imply it, so that they have to be left out as well for it to matter.
    #[serde(default)]
    pub with: Vec<ControlName>,
    /// Why nothing can, on the machines that there are.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ControlName(pub Control);

impl TryFrom<String> for ControlName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        control(&name).map(Self).ok_or_else(|| format!("no control is called {name}"))
    }
}

pub fn control(name: &str) -> Option<Control> {
    Control::ALL.into_iter().find(|control| control.name() == name)
}

impl Catalogue {
    pub fn load() -> Result<Self, String> {
        toml::from_str(TEXT).map_err(|error| format!("catalogue.toml: {error}"))
    }

    /// The cases in the order of the threat list.
    pub fn ordered(&self) -> impl Iterator<Item = (&'static str, &Case)> {
        ids().filter_map(|id| Some((id, self.case.get(id)?)))
    }
}

pub fn ids() -> impl Iterator<Item = &'static str> {
    IDS.lines().map(str::trim).filter(|line| !line.is_empty())
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
