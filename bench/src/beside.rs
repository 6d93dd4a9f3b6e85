//! The same thing done by us and by a command.

use std::time::Duration;

use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::stats::{Statistic, Summary};

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Beside<Of> {
    pub(crate) of: Of,
    pub(crate) command: &'static str,
    pub(crate) ours: Summary,
    pub(crate) theirs: Summary,
}

impl<Of> Beside<Of> {
    pub(crate) fn new(of: Of, command: &'static str, ours: &[Duration], theirs: &[Duration]) -> Result<Self> {
        let none = || Failure::new("no samples");
        let (ours, theirs) = (Summary::of(ours).ok_or_else(none)?, Summary::of(theirs).ok_or_else(none)?);
        Ok(Self { of, command, ours, theirs })
    }

    /// Of the medians.
    pub(crate) fn ratio(&self) -> f64 {
        self.ours.get(Statistic::P50) as f64 / self.theirs.get(Statistic::P50) as f64
    }
}
