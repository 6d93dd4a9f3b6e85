//! The catalogue: every case of the threat list, as data.

use crate::mode::Mode;
use cofferdam_core::Control;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The catalogue as it was when this program was built.
pub(crate) const TEXT: &str = include_str!("../catalogue.toml");

/// Every case id of the threat list, in its order.
pub(crate) const IDS: &str = include_str!("../ids.txt");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Catalogue {
    pub(crate) case: BTreeMap<String, Case>,
    pub(crate) control: BTreeMap<String, Kill>,
}

/// One case; it has at least one of `runs`, `host`, `service`, `na` and `later`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) runs: Vec<Run>,
    #[serde(default)]
    pub(crate) host: Vec<Host>,
    #[serde(default)]
    pub(crate) service: Vec<Service>,
    pub(crate) na: Option<String>,
    pub(crate) later: Option<String>,
}

/// A probe in a sandbox, with everything in place and again without `steps`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    pub(crate) probe: String,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) steps: Vec<ControlName>,
    #[serde(default)]
    pub(crate) behind: Vec<ControlName>,
    pub(crate) no_control: Option<String>,
    /// Modes in which the wall is tried and the control is not, and why.
    #[serde(default)]
    pub(crate) no_control_on: Reasons,
    /// Modes in which it is not run, and why.
    #[serde(default)]
    pub(crate) not_on: Reasons,
    #[serde(default)]
    pub(crate) expect: Expect,
    #[serde(default)]
    pub(crate) image: ImageKind,
    /// Another CPU limit than the suite's.
    pub(crate) cpus: Option<String>,
    /// Why it is not made in sessions, though its group is.
    pub(crate) not_in_sessions: Option<String>,
}

/// What is different in a mode, and why.
pub(crate) type Reasons = BTreeMap<Mode, String>;

/// How a run with everything in place ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Expect {
    #[default]
    Exit0,
    /// It may be killed for its memory as well.
    Oom,
}

/// The root filesystem of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ImageKind {
    #[default]
    Host,
    /// The folder that the suite made, with traps in it.
    Planted,
}

/// A driver outside the sandbox.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    pub(crate) driver: String,
    pub(crate) does: String,
    /// The probes that it runs.
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers, and for the tests of the catalogue"))]
    pub(crate) probes: Vec<String>,
    /// Modes in which it is not run, and why.
    #[serde(default)]
    pub(crate) not_on: Reasons,
    /// What `--quick` does instead; absent = it is as quick as the others.
    pub(crate) quick: Option<String>,
}

/// An attack on a running service, and again on its twin.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Service {
    pub(crate) attack: String,
    pub(crate) does: String,
    /// Why it is not made on the twin.
    pub(crate) no_control: Option<String>,
    /// Made in a session of each state.
    #[serde(default)]
    pub(crate) in_states: bool,
    /// What `--quick` does instead; absent = it is as quick as the others.
    pub(crate) quick: Option<String>,
}

/// What notices that a control is missing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kill {
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers, and for the tests of the catalogue"))]
    pub(crate) probes: Vec<String>,
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers, and for the tests of the catalogue"))]
    pub(crate) drivers: Vec<String>,
    /// Other controls that imply it, so that they have to be left out as well for it to matter.
    #[serde(default)]
    pub(crate) with: Vec<ControlName>,
    /// Why nothing can, on the machines that there are.
    pub(crate) reason: Option<String>,
    /// Modes in which no sandbox can be made without it, and why; the mutation run sees that none is.
    #[serde(default)]
    pub(crate) inseparable_on: Reasons,
    /// Modes in which it is not there to be left out, and why.
    #[serde(default)]
    pub(crate) not_on: Reasons,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ControlName(pub Control);

impl TryFrom<String> for ControlName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        control(&name).map(Self).ok_or_else(|| format!("no control is called {name}"))
    }
}

pub(crate) fn control(name: &str) -> Option<Control> {
    Control::ALL.into_iter().find(|control| control.name() == name)
}

impl Catalogue {
    pub(crate) fn load() -> Result<Self, String> {
        toml::from_str(TEXT).map_err(|error| format!("catalogue.toml: {error}"))
    }

    /// The cases in the order of the threat list.
    pub(crate) fn ordered(&self) -> impl Iterator<Item = (&'static str, &Case)> {
        ids().filter_map(|id| Some((id, self.case.get(id)?)))
    }
}

pub(crate) fn ids() -> impl Iterator<Item = &'static str> {
    IDS.lines().map(str::trim).filter(|line| !line.is_empty())
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
