//! The isolation report: which walls a sandbox has, and how that is known.

use crate::InvalidValue;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Whether a sandbox may be made with a mandatory control missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum IsolationMode {
    /// Refuse, with the reason and the fix.
    #[default]
    Strict,
    /// Make it, and say in the report what is missing.
    BestEffort,
}

impl IsolationMode {
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidValue> {
        match text {
            "strict" => Ok(Self::Strict),
            "best-effort" => Ok(Self::BestEffort),
            _ => Err(InvalidValue::new(field, text, "it must be strict or best-effort")),
        }
    }
}

/// One wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    UserNamespace,
    PidNamespace,
    MountNamespace,
    NetNamespace,
    IpcNamespace,
    UtsNamespace,
    CgroupNamespace,
    OwnHostUids,
    SeparateInitUid,
    Capabilities,
    NoNewPrivs,
    Securebits,
    Groups,
    Seccomp,
    Landlock,
    ClosedFds,
    Keyring,
    Rlimits,
    ReadOnlyRoot,
    PrivateRoot,
    MountFlags,
    ProcMasked,
    ProcReadOnly,
    ProcHidden,
    MinimalDev,
    HostRootDetached,
    CleanEnvironment,
    MemoryLimit,
    SwapOff,
    PidsLimit,
    CpuLimit,
    DiskLimit,
    InodeLimit,
    DevicesLimit,
    NamespaceLimits,
    InitProtected,
    InitSeccomp,
    DiesWithHost,
    OwnSession,
    CoreDumpsOff,
    LoopbackOnly,
    OomVictim,
}

impl Control {
    pub const ALL: [Self; 42] = [
        Self::UserNamespace,
        Self::PidNamespace,
        Self::MountNamespace,
        Self::NetNamespace,
        Self::IpcNamespace,
        Self::UtsNamespace,
        Self::CgroupNamespace,
        Self::OwnHostUids,
        Self::SeparateInitUid,
        Self::Capabilities,
        Self::NoNewPrivs,
        Self::Securebits,
        Self::Groups,
        Self::Seccomp,
        Self::Landlock,
        Self::ClosedFds,
        Self::Keyring,
        Self::Rlimits,
        Self::ReadOnlyRoot,
        Self::PrivateRoot,
        Self::MountFlags,
        Self::ProcMasked,
        Self::ProcReadOnly,
        Self::ProcHidden,
        Self::MinimalDev,
        Self::HostRootDetached,
        Self::CleanEnvironment,
        Self::MemoryLimit,
        Self::SwapOff,
        Self::PidsLimit,
        Self::CpuLimit,
        Self::DiskLimit,
        Self::InodeLimit,
        Self::DevicesLimit,
        Self::NamespaceLimits,
        Self::InitProtected,
        Self::InitSeccomp,
        Self::DiesWithHost,
        Self::OwnSession,
        Self::CoreDumpsOff,
        Self::LoopbackOnly,
        Self::OomVictim,
    ];

    /// Whether strict mode refuses a sandbox without it. The others depend on the kernel or the layout.
    pub fn mandatory(self) -> bool {
        !matches!(
            self,
            Self::Landlock
                | Self::CgroupNamespace
                | Self::DevicesLimit
                | Self::OwnHostUids
                | Self::SeparateInitUid
                | Self::ReadOnlyRoot
        )
    }

    /// The name used in reports, the same as on the wire.
    pub fn name(self) -> String {
        let debug = format!("{self:?}");
        let mut name = String::with_capacity(debug.len() + 4);
        for (i, c) in debug.char_indices() {
            if c.is_ascii_uppercase() && i > 0 {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
        }
        name
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// How far a control holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ControlState {
    /// In force, and seen to be by a probe.
    Enforced,
    /// In force in a weaker form; the note says which.
    Degraded,
    /// Not in force; the note says why.
    Absent,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationRow {
    pub control: Control,
    pub state: ControlState,
    /// What the probe saw, or why the control is weaker or missing.
    pub note: String,
}

/// Every control of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationReport {
    pub backend: String,
    pub mode: IsolationMode,
    pub controls: Vec<IsolationRow>,
}

impl IsolationReport {
    /// A report of a sandbox that could not be asked: nothing is claimed.
    pub fn unproven(mode: IsolationMode, why: &str) -> Self {
        let row = |control| IsolationRow {
            control,
            state: ControlState::Absent,
            note: format!("not proven: {why}"),
        };
        Self { backend: String::new(), mode, controls: Control::ALL.into_iter().map(row).collect() }
    }

    pub fn state(&self, control: Control) -> ControlState {
        let row = self.controls.iter().find(|row| row.control == control);
        row.map_or(ControlState::Absent, |row| row.state)
    }

    /// The mandatory controls that are not enforced.
    pub fn missing(&self) -> impl Iterator<Item = &IsolationRow> {
        self.controls.iter().filter(|row| row.control.mandatory() && row.state == ControlState::Absent)
    }

    pub fn count(&self, state: ControlState) -> usize {
        self.controls.iter().filter(|row| row.state == state).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_wire() {
        for control in Control::ALL {
            assert_eq!(serde_json::to_string(&control).unwrap(), format!("\"{}\"", control.name()));
        }
    }

    #[test]
    fn every_control_is_listed_once() {
        let mut all = Control::ALL.to_vec();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), Control::ALL.len());
    }
}
