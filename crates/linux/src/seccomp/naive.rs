//! For tests: what the table says, worked out without BPF, and the arguments with which to ask.

use super::assemble::Verdict;
use super::rules::{Rule, Sense};
use super::table::{Action, Entry};

/// A rule that tests can take apart.
#[derive(Debug, Clone)]
pub(super) struct OwnedRule {
    sense: Sense,
    clauses: Vec<Vec<OwnedTest>>,
}

#[derive(Debug, Clone)]
struct OwnedTest {
    arg: usize,
    mask: u32,
    values: Vec<u32>,
}

impl OwnedTest {
    /// The bits of the mask, if the test is that they are clear.
    fn flags(&self) -> Vec<u32> {
        let mask = if self.mask != u32::MAX && self.values == [0] { self.mask } else { 0 };
        (0..32).map(|bit| 1 << bit).filter(|bit| mask & bit != 0).collect()
    }
}

impl From<&Rule> for OwnedRule {
    fn from(rule: &Rule) -> Self {
        let clauses = rule.clauses.iter().map(|clause| {
            let tests = clause.iter();
            tests
                .map(|t| OwnedTest { arg: t.arg as usize, mask: t.mask, values: t.values.to_vec() })
                .collect()
        });
        OwnedRule { sense: rule.sense, clauses: clauses.collect() }
    }
}

impl OwnedRule {
    pub(super) fn verdict(&self, args: &[u64; 6]) -> Verdict {
        let holds = self.clauses.iter().any(|clause| {
            clause.iter().all(|test| test.values.contains(&(args[test.arg] as u32 & test.mask)))
        });
        if holds == (self.sense == Sense::AllowIf) { Verdict::Allow } else { Verdict::Eperm }
    }

    /// The rule without one of its parts: each clause, each test, each value, each flag that must be clear.
    pub(super) fn simplified(&self) -> Vec<OwnedRule> {
        let mut out = Vec::new();
        for c in 0..self.clauses.len() {
            out.push(self.with(|rule| {
                rule.clauses.remove(c);
            }));
            for t in 0..self.clauses[c].len() {
                out.push(self.with(|rule| {
                    rule.clauses[c].remove(t);
                }));
                for v in 0..self.clauses[c][t].values.len() {
                    out.push(self.with(|rule| {
                        rule.clauses[c][t].values.remove(v);
                    }));
                }
                for flag in self.clauses[c][t].flags() {
                    out.push(self.with(|rule| rule.clauses[c][t].mask &= !flag));
                }
            }
        }
        out
    }

    fn with(&self, change: impl FnOnce(&mut OwnedRule)) -> OwnedRule {
        let mut rule = self.clone();
        change(&mut rule);
        rule
    }

    /// All combinations of values that may matter: those of the tests, their neighbours, the same with bits
    /// above 32, and under a mask with each bit flipped. An argument that no test looks at stays 0.
    pub(super) fn interesting_args(&self) -> Vec<[u64; 6]> {
        let mut all = vec![[0; 6]];
        for arg in 0..6 {
            let values = self.interesting_values(arg);
            all =
                all.iter().flat_map(|args| values.iter().map(|value| with_arg(args, arg, *value))).collect();
        }
        all
    }

    fn interesting_values(&self, arg: usize) -> Vec<u64> {
        let tests: Vec<&OwnedTest> = self.clauses.iter().flatten().filter(|test| test.arg == arg).collect();
        if tests.is_empty() {
            return vec![0];
        }
        let mut values = vec![0, 1, u64::from(u32::MAX), 1 << 32, u64::MAX];
        for test in tests {
            for value in test.values.iter().map(|value| u64::from(*value)) {
                values.extend([value, value.wrapping_sub(1), value + 1, value ^ 1 << 31, value | 1 << 32]);
                values.extend((0..32).filter(|_| test.mask != u32::MAX).map(|bit| value ^ 1 << bit));
            }
        }
        values.sort_unstable();
        values.dedup();
        values
    }
}

fn with_arg(args: &[u64; 6], arg: usize, value: u64) -> [u64; 6] {
    let mut args = *args;
    args[arg] = value;
    args
}

/// The answer for a call of the right architecture, straight from the table.
pub(super) fn verdict(table: &[Entry], nr: u32, args: &[u64; 6]) -> Verdict {
    if nr != u32::MAX && nr >= 0x4000_0000 {
        return Verdict::Kill;
    }
    match table.iter().find(|entry| entry.call.nr == nr).map(|entry| entry.action) {
        None | Some(Action::Enosys) => Verdict::Enosys,
        Some(Action::Allow) => Verdict::Allow,
        Some(Action::Eperm) => Verdict::Eperm,
        Some(Action::Rule(rule)) => OwnedRule::from(rule).verdict(args),
    }
}
