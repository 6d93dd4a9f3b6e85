//! What was seen of one attack.

use crate::place::{Place, State};
use cofferdam_core::Control;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One look at one attack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "seen", content = "detail", rename_all = "snake_case")]
pub(crate) enum Seen {
    /// The attack was stopped.
    Held(String),
    /// The attack worked.
    Broke(String),
    /// It could not be tried; proves nothing.
    Error(String),
    /// There is no such look, and why.
    Without(String),
}

impl Seen {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Held(_) => "held",
            Self::Broke(_) => "broke",
            Self::Error(_) => "error",
            Self::Without(_) => "-",
        }
    }

    pub(crate) fn detail(&self) -> &str {
        match self {
            Self::Held(text) | Self::Broke(text) | Self::Error(text) | Self::Without(text) => text,
        }
    }
}

/// One attack, against every wall and again without some.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) what: String,
    pub(crate) left_out: Vec<Control>,
    /// Left out both times.
    pub(crate) behind: Vec<Control>,
    pub(crate) wall: Seen,
    pub(crate) control: Seen,
    /// What the control was made on, where that is not the product with something left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) twin: Option<String>,
    pub(crate) place: Place,
    pub(crate) took_ms: u64,
    /// Why it is otherwise than on the native backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) differs: Option<String>,
    /// That it should differ, and does not.
    #[serde(default)]
    pub(crate) stale: bool,
}

impl Row {
    pub(crate) fn new(case: &str, what: impl Into<String>, wall: Seen, control: Seen) -> Self {
        Self {
            case: case.to_owned(),
            what: what.into(),
            left_out: Vec::new(),
            behind: Vec::new(),
            wall,
            control,
            twin: None,
            place: Place::Run,
            took_ms: 0,
            differs: None,
            stale: false,
        }
    }

    /// One that this mode has no use for, and why.
    pub(crate) fn not_applicable(case: &str, what: impl Into<String>, reason: &str) -> Self {
        let why = || Seen::Without(reason.to_owned());
        Self::new(case, what, why(), why())
    }

    pub(crate) fn leaving_out(mut self, controls: &[Control]) -> Self {
        self.left_out = controls.to_vec();
        self
    }

    pub(crate) fn in_session(mut self, state: State) -> Self {
        self.place = Place::Session(state);
        self
    }

    pub(crate) fn took(mut self, duration: Duration) -> Self {
        self.took_ms = duration.as_millis() as u64;
        self
    }

    /// The wall holds, and it is the wall that holds.
    pub(crate) fn passed(&self) -> bool {
        self.differs.is_none()
            && !self.stale
            && matches!(self.wall, Seen::Held(_))
            && matches!(self.control, Seen::Broke(_) | Seen::Without(_))
    }

    pub(crate) fn has_failed(&self) -> bool {
        !self.passed() && !self.was_not_run() && self.differs.is_none()
    }

    /// That nothing but everything together made the control's attack work.
    pub(crate) fn took_everything(&self) -> bool {
        self.left_out.len() == Control::ALL.len()
    }

    /// Not in this mode, or something that the run was not given; said with the reason, and not counted as passed.
    pub(crate) fn was_not_run(&self) -> bool {
        matches!(self.wall, Seen::Without(_))
    }

    pub(crate) fn is_error(&self) -> bool {
        self.differs.is_none()
            && [&self.wall, &self.control].into_iter().any(|seen| matches!(seen, Seen::Error(_)))
    }
}

/// A check that gives its evidence or says what is wrong, as a look at a wall.
pub(crate) fn judge(checked: Result<String, String>) -> Seen {
    match checked {
        Ok(evidence) => Seen::Held(evidence),
        Err(wrong) => Seen::Broke(wrong),
    }
}
