//! What is otherwise on a backend than on the native one, with the reason: `differs.toml`, as data.
//!
//! What is not written there has to be as it is on the native backend, and what is written there has to be so.

use crate::row::{Row, Seen};
use crate::wall::Wall;
use serde::Deserialize;

const TEXT: &str = include_str!("../differs.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Differs {
    differs: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    on: Vec<Wall>,
    /// The attacks, as the table names them.
    what: Vec<String>,
    /// What is seen of the wall, where that is not `held`; `-` is an attack that is not made there.
    wall: Option<Word>,
    /// What is seen of the control, where that is not what is seen of it on the native backend.
    control: Option<Word>,
    why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Held,
    Broke,
    Error,
    #[serde(rename = "-")]
    NotMade,
}

impl Word {
    fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Broke => "broke",
            Self::Error => "error",
            Self::NotMade => "-",
        }
    }
}

impl Differs {
    pub(crate) fn load() -> Result<Self, String> {
        toml::from_str(TEXT).map_err(|error| format!("differs.toml: {error}"))
    }

    fn of(&self, wall: Wall, what: &str) -> Option<&Entry> {
        self.differs
            .iter()
            .find(|entry| entry.on.contains(&wall) && entry.what.iter().any(|name| name == what))
    }

    /// Why an attack is not made on a backend.
    pub(crate) fn not_made(&self, wall: Wall, what: &str) -> Option<&str> {
        let entry = self.of(wall, what).filter(|entry| entry.wall == Some(Word::NotMade))?;
        Some(&entry.why)
    }

    /// Compares what was seen with what is written: the row passes, differs with a reason, or fails.
    pub(crate) fn judge(&self, wall: Wall, mut row: Row) -> Row {
        (row.differs, row.stale) = (None, false);
        let Some(entry) = self.of(wall, &row.what) else { return row };
        if row.was_not_run() {
            return row;
        }
        let is_seen = |seen: &Seen, word: Option<Word>, usual: &[&str]| match word {
            Some(word) => seen.word() == word.name(),
            None => usual.contains(&seen.word()),
        };
        if is_seen(&row.wall, entry.wall, &["held"]) && is_seen(&row.control, entry.control, &["broke", "-"])
        {
            row.differs = Some(entry.why.clone());
        } else if row.passed() {
            row.stale = true;
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use std::collections::BTreeSet;

    fn differs() -> Differs {
        let text = r#"
            [[differs]]
            on = ["docker"]
            what = ["open"]
            wall = "broke"
            why = "it is open there"
            [[differs]]
            on = ["docker", "podman"]
            what = ["shut"]
            control = "held"
            why = "it cannot be left out"
            [[differs]]
            on = ["podman"]
            what = ["open"]
            wall = "-"
            why = "there is none"
        "#;
        toml::from_str(text).unwrap()
    }

    fn row(what: &str, wall: Seen, control: Seen) -> Row {
        Row::new("case-01", what, wall, control)
    }

    fn held() -> Seen {
        Seen::Held(String::new())
    }

    fn broke() -> Seen {
        Seen::Broke(String::new())
    }

    #[test]
    fn a_difference_that_is_written_down_is_neither_passed_nor_failed() {
        let row = differs().judge(Wall::Docker, row("open", broke(), broke()));
        assert_eq!(row.differs.as_deref(), Some("it is open there"));
        assert!(!row.passed() && !row.has_failed());
    }

    #[test]
    fn a_difference_that_is_not_written_down_fails() {
        assert!(differs().judge(Wall::Runc, row("open", broke(), broke())).has_failed());
        // A control that differs is no leave for the wall to break.
        assert!(differs().judge(Wall::Docker, row("shut", broke(), held())).has_failed());
        assert!(differs().judge(Wall::Docker, row("shut", held(), Seen::Error(String::new()))).has_failed());
    }

    #[test]
    fn a_difference_that_is_no_more_fails() {
        let row = differs().judge(Wall::Docker, row("open", held(), broke()));
        assert!(row.has_failed() && row.stale && !row.passed(), "{row:?}");
    }

    #[test]
    fn an_attack_that_is_not_made_says_why() {
        assert_eq!(differs().not_made(Wall::Podman, "open"), Some("there is none"));
        assert_eq!(differs().not_made(Wall::Docker, "open"), None);
    }

    #[test]
    fn what_is_written_is_of_attacks_that_there_are_once_and_with_a_reason() {
        let catalogue = Catalogue::load().unwrap();
        let mut known = BTreeSet::new();
        for (_, case) in catalogue.ordered() {
            known.extend(crate::runs::titles(&case.runs));
            known.extend(case.host.iter().map(|host| host.driver.clone()));
        }
        let mut seen = BTreeSet::new();
        for entry in Differs::load().unwrap().differs {
            assert!(!entry.why.trim().is_empty(), "{entry:?}");
            assert!(entry.wall.is_some() || entry.control.is_some(), "{entry:?}");
            for (on, what) in entry.on.iter().flat_map(|on| entry.what.iter().map(move |what| (on, what))) {
                assert!(known.contains(what), "no attack is called {what}");
                assert!(*on != Wall::Native, "{what}: it is what the others are compared with");
                assert!(seen.insert((*on, what.clone())), "{what} is written twice for {on}");
            }
        }
    }
}
