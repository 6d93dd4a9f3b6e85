//! How a check ends: what it came to in words, and for the shell.

use crate::exit::Failure;
use cofferdam_proof::{Envelope, KeyList, MAX_DOCUMENT_BYTES};
use serde::Serialize;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Proven,
    /// Nothing is wrong, and something could not be shown.
    Unproven,
    Broken,
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        Self::from(match verdict {
            Verdict::Proven => 0,
            Verdict::Broken => 1,
            Verdict::Unproven => 2,
        })
    }
}

/// A file of no more than a document may have.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::new(format!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    let most = MAX_DOCUMENT_BYTES as u64 + 1;
    File::open(path).map_err(failed)?.take(most).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

pub(super) fn read_keys(path: Option<&Path>) -> Result<Option<KeyList>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let keys = KeyList::parse(&read(path)?);
    keys.map(Some).map_err(|error| Failure::new(format!("--keys: {}: {error}", path.display())))
}

pub(super) fn read_envelope(path: &Path) -> Result<Envelope, Failure> {
    let envelope = Envelope::parse(&read(path)?);
    envelope.map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// One line of a report, with nothing in it that a terminal would obey.
pub(super) fn line(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names in a chain may be anybody's.
    #[test]
    fn what_was_read_stays_in_its_line() {
        assert_eq!(line("a\nb\u{1b}[2J é"), "a\\nb\\u{1b}[2J é");
    }

    #[test]
    fn the_worst_of_several_counts() {
        assert_eq!(
            [Verdict::Unproven, Verdict::Broken, Verdict::Proven].into_iter().max(),
            Some(Verdict::Broken)
        );
        assert_eq!([Verdict::Unproven, Verdict::Proven].into_iter().max(), Some(Verdict::Unproven));
    }
}
