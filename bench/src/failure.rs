//! The one error of the benchmark: a sentence for the reader.
//!
//! Nothing here recovers by kind of error. A failure is either printed before exit code 2 or shown in a
//! contestant's row, so text with its context is all that is needed.

use std::fmt;
use std::io;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(String);

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Puts what was being done before the operating system's own words.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl fmt::Display) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}
