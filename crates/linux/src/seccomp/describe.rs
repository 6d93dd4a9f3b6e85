//! The table as text: for the documentation, and as the golden file that shows in a review what a change
//! opens.

use std::fmt;

use super::Profile;
use super::rules::{Rule, Sense, Test};
use super::table::{Action, Entry, table};

/// The table of a profile, one call per line in order of number. An argument rule is given in words and,
/// behind them, exactly.
pub fn describe(profile: Profile) -> String {
    table(profile).iter().map(|entry| format!("{entry}\n")).collect()
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>4} {:<24} ", self.call.nr, self.call.name())?;
        match self.action {
            Action::Allow => f.write_str("allow"),
            Action::Eperm => f.write_str("EPERM"),
            Action::Enosys => f.write_str("ENOSYS"),
            Action::Rule(rule) => write!(f, "rule: {} [{rule}]", rule.text),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.sense {
            Sense::AllowIf => "allow if ",
            Sense::RefuseIf => "EPERM if ",
        })?;
        for (clause, tests) in self.clauses.iter().enumerate() {
            f.write_str(if clause > 0 { " or " } else { "" })?;
            for (position, test) in tests.iter().enumerate() {
                write!(f, "{}{test}", if position > 0 { " and " } else { "" })?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "arg{}", self.arg)?;
        if self.mask != u32::MAX {
            write!(f, "&{:#x}", self.mask)?;
        }
        f.write_str(" in {")?;
        for (position, value) in self.values.iter().enumerate() {
            write!(f, "{}{value:#x}", if position > 0 { " " } else { "" })?;
        }
        f.write_str("}")
    }
}
