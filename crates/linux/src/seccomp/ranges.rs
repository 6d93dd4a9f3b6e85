//! Which answer belongs to which range of numbers, and the decision tree that finds it.

use super::assemble::{Assembler, Compare, Target};

/// How many single numbers are tested one after the other before it is worth splitting the range around them.
const MAX_EXCEPTIONS: usize = 3;

/// An answer for every number, built up in ascending order.
#[derive(Debug)]
pub(super) struct Ranges {
    ranges: Vec<Range>,
    otherwise: Target,
    /// The first number that has no answer yet, if there is one.
    next: Option<u32>,
}

/// The numbers from `start` to the start of the next range.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Range {
    start: u32,
    target: Target,
    exceptions: Vec<(u32, Target)>,
}

impl Ranges {
    pub(super) fn new(otherwise: Target) -> Self {
        Ranges { ranges: Vec::new(), otherwise, next: Some(0) }
    }

    /// Sets the answer for `number`, which is higher than all before.
    pub(super) fn set(&mut self, number: u32, target: Target) {
        let next = self.next.expect("the last number has its answer");
        assert!(number >= next, "{number} has two answers, or comes too late");
        if number > next {
            self.start_range(next, self.otherwise);
        }
        self.start_range(number, target);
        self.next = number.checked_add(1);
    }

    /// Writes the tree, for the number in the accumulator.
    pub(super) fn tree(mut self, asm: &mut Assembler) -> Target {
        if let Some(next) = self.next {
            self.start_range(next, self.otherwise);
        }
        tree(asm, &self.ranges)
    }

    /// Begins a range, unless it goes on with what was there, or goes on after a single number: a comparison
    /// for equality does with one instruction what takes two with ranges.
    fn start_range(&mut self, start: u32, target: Target) {
        match self.ranges.as_mut_slice() {
            [.., last] if last.target == target => {}
            [.., around, single]
                if around.target == target
                    && around.exceptions.len() < MAX_EXCEPTIONS
                    && single.start + 1 == start =>
            {
                around.exceptions.push((single.start, single.target));
                self.ranges.pop();
            }
            _ => self.ranges.push(Range { start, target, exceptions: Vec::new() }),
        }
    }
}

fn tree(asm: &mut Assembler, ranges: &[Range]) -> Target {
    if let [range] = ranges {
        return range.exceptions.iter().rev().fold(range.target, |otherwise, &(number, target)| {
            Target::Code(asm.branch(Compare::Eq, number, target, otherwise))
        });
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let at_least = tree(asm, high);
    let below = tree(asm, low);
    Target::Code(asm.branch(Compare::Ge, high[0].start, at_least, below))
}
