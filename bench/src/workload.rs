//! The programs that every contestant runs, in one place, so that no two of them can run different ones.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Workload {
    True,
    Python,
    /// The same program, by way of the service.
    Api,
    /// The same program, in a session that is made for it.
    FirstStep,
    /// One more step of a session.
    NextStep,
}

impl Workload {
    /// What every contestant runs.
    pub(crate) const ALL: [Self; 2] = [Self::True, Self::Python];

    /// What there is a table of.
    pub(crate) const SHOWN: [Self; 5] =
        [Self::True, Self::Python, Self::Api, Self::FirstStep, Self::NextStep];

    /// Absolute paths: a shim found first in PATH would cost more than the sandboxes under test.
    pub(crate) fn argv(self) -> &'static [&'static str] {
        match self {
            Self::True => &["/bin/true"],
            Self::Python | Self::Api | Self::FirstStep => &["/usr/bin/python3", "-c", "print(1)"],
            Self::NextStep => &[],
        }
    }

    /// What proves that the program really ran.
    pub(crate) fn expected_stdout(self) -> &'static str {
        match self {
            Self::True | Self::NextStep => "",
            Self::Python | Self::Api | Self::FirstStep => "1\n",
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::True => "/bin/true",
            Self::Python => "python3 -c 'print(1)'",
            Self::Api => "POST /v1/jobs of print(1)",
            Self::FirstStep => "a session and its first step, print(1)",
            Self::NextStep => "the next step of a session, x + 1",
        }
    }

    /// Fit for a file name.
    pub(crate) fn slug(self) -> &'static str {
        match self {
            Self::True => "true",
            Self::Python => "python",
            Self::Api => "api",
            Self::FirstStep => "first-step",
            Self::NextStep => "next-step",
        }
    }
}
