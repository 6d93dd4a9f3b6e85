//! From a table to a program: a decision tree over ranges of numbers, with argument rules at some of its
//! leaves.
//!
//! The kernel walks a new filter once per system call to learn which are allowed whatever their arguments,
//! and then skips the filter for those. So both its size and its depth count, at installation; at run time
//! only the calls with an argument rule pay.

use super::arch;
use super::assemble::{ARCH, Assembler, Compare, Label, NR, Target, Verdict, low_word};
use super::program::Program;
use super::ranges::Ranges;
use super::rules::{Rule, Sense, Test};
use super::table::{Action, Entry};

const ALLOW: Target = Target::Verdict(Verdict::Allow);
const EPERM: Target = Target::Verdict(Verdict::Eperm);
const ENOSYS: Target = Target::Verdict(Verdict::Enosys);
const KILL: Target = Target::Verdict(Verdict::Kill);

/// Compiles a table, which is sorted by number.
pub(super) fn compile(table: &[Entry]) -> Program {
    let mut asm = Assembler::default();
    let mut known_rules = Vec::new();
    let mut ranges = Ranges::new(ENOSYS);
    for entry in table {
        let target = match entry.action {
            Action::Allow => ALLOW,
            Action::Eperm => EPERM,
            Action::Enosys => ENOSYS,
            Action::Rule(rule) => rule_once(&mut asm, &mut known_rules, rule),
        };
        ranges.set(entry.call.nr, target);
    }
    let native_number = ranges.tree(&mut asm);
    let any_number = foreign_numbers(&mut asm, native_number);
    let native = asm.load(NR, any_number);
    // Numbers mean other calls on another architecture, so nothing is decided about them.
    let start = asm.branch(Compare::Eq, arch::AUDIT_ARCH, Target::Code(native), KILL);
    asm.load(ARCH, Target::Code(start));
    Program::new(asm.finish())
}

/// Kills on a number of the architecture's second kind. -1 is spared: it is of no kind, and what programs use
/// for "a call that does not exist".
fn foreign_numbers(asm: &mut Assembler, native: Target) -> Target {
    let Some(first) = arch::FOREIGN_NUMBERS_FROM else { return native };
    let minus_one = asm.branch(Compare::Eq, u32::MAX, ENOSYS, KILL);
    Target::Code(asm.branch(Compare::Ge, first, Target::Code(minus_one), native))
}

/// Calls may share a rule, and then share its code.
fn rule_once(asm: &mut Assembler, known: &mut Vec<(&'static Rule, Target)>, rule: &'static Rule) -> Target {
    if let Some((_, target)) = known.iter().find(|(known, _)| *known == rule) {
        return *target;
    }
    let target = self::rule(asm, rule);
    known.push((rule, target));
    target
}

fn rule(asm: &mut Assembler, rule: &Rule) -> Target {
    let (holds, fails) = match rule.sense {
        Sense::AllowIf => (ALLOW, EPERM),
        Sense::RefuseIf => (EPERM, ALLOW),
    };
    let mut next = Step { start: fails, loaded: None };
    for clause in rule.clauses.iter().rev() {
        let fail = next;
        next = Step { start: holds, loaded: None };
        for test in clause.iter().rev() {
            next = self::test(asm, test, next, fail);
        }
    }
    next.start
}

/// A piece of a rule's code.
#[derive(Clone, Copy)]
struct Step {
    start: Target,
    /// Where it may be entered if the accumulator has the argument already.
    loaded: Option<(u32, Label)>,
}

impl Step {
    /// Where to enter if the accumulator has argument `arg`.
    fn with(self, arg: u32) -> Target {
        match self.loaded {
            Some((loaded, label)) if loaded == arg => Target::Code(label),
            _ => self.start,
        }
    }
}

fn test(asm: &mut Assembler, test: &Test, pass: Step, fail: Step) -> Step {
    let body = match (test.mask, test.values) {
        (u32::MAX, values) => one_of(asm, values, pass.with(test.arg), fail.with(test.arg)),
        (mask, [0]) => Target::Code(asm.branch(Compare::Set, mask, fail.with(test.arg), pass.with(test.arg))),
        (mask, values) => {
            // The mask destroys the argument, so what follows loads its own.
            let compare = one_of(asm, values, pass.start, fail.start);
            Target::Code(asm.and(mask, compare))
        }
    };
    let loaded = match body {
        Target::Code(label) => Some((test.arg, label)),
        Target::Verdict(_) => None,
    };
    Step { start: Target::Code(asm.load(low_word(test.arg), body)), loaded }
}

fn one_of(asm: &mut Assembler, values: &[u32], yes: Target, no: Target) -> Target {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let mut ranges = Ranges::new(no);
    for value in sorted {
        ranges.set(value, yes);
    }
    ranges.tree(asm)
}
