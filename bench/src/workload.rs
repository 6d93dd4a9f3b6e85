//! The programs that every contestant runs, in one place, so that no two of them can run different ones.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Workload {
    True,
    Python,
    /// The same program, by way of the service.
    Api,
}

impl Workload {
    /// What every contestant runs.
    pub(crate) const ALL: [Self; 2] = [Self::True, Self::Python];

    /// What there is a table of.
    pub(crate) const SHOWN: [Self; 3] = [Self::True, Self::Python, Self::Api];

    /// Absolute paths: a shim found first in PATH would cost more than the sandboxes under test.
    pub(crate) fn argv(self) -> &'static [&'static str] {
        match self {
            Self::True => &["/bin/true"],
            Self::Python | Self::Api => &["/usr/bin/python3", "-c", "print(1)"],
        }
    }

    /// What proves that the program really ran.
    pub(crate) fn expected_stdout(self) -> &'static str {
        match self {
            Self::True => "",
            Self::Python | Self::Api => "1\n",
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::True => "/bin/true",
            Self::Python => "python3 -c 'print(1)'",
            Self::Api => "POST /v1/jobs of print(1)",
        }
    }

    /// Fit for a file name.
    pub(crate) fn slug(self) -> &'static str {
        match self {
            Self::True => "true",
            Self::Python => "python",
            Self::Api => "api",
        }
    }
}
