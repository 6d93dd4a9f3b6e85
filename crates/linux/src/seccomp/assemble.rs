//! An assembler for classic BPF that works backwards.
//!
//! BPF jumps only forwards, and a conditional jump at most 255 instructions far. Writing the program from its
//! end means that every target exists when a jump to it is written, so its distance is known and a target
//! that is too far away can be brought near at once: a verdict by repeating its one instruction, anything
//! else by an unconditional jump, whose distance has 32 bits.

use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W,
};
use libc::{seccomp_data, sock_filter};

use super::arch;

/// Offsets of what a filter may look at.
pub(super) const NR: u32 = std::mem::offset_of!(seccomp_data, nr) as u32;
pub(super) const ARCH: u32 = std::mem::offset_of!(seccomp_data, arch) as u32;

/// The low half of an argument.
pub(super) const fn low_word(arg: u32) -> u32 {
    std::mem::offset_of!(seccomp_data, args) as u32 + 8 * arg + arch::LOW_WORD
}

/// How a filter ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Allow,
    Eperm,
    Enosys,
    Kill,
}

impl Verdict {
    pub(super) fn value(self) -> u32 {
        match self {
            Verdict::Allow => libc::SECCOMP_RET_ALLOW,
            Verdict::Eperm => libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
            Verdict::Enosys => libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32,
            Verdict::Kill => libc::SECCOMP_RET_KILL_PROCESS,
        }
    }
}

/// Where a jump goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Verdict(Verdict),
    Code(Label),
}

/// The place of an instruction, counted from the end of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    /// The accumulator equals the constant.
    Eq,
    /// The accumulator is at least the constant.
    Ge,
    /// The accumulator has a bit in common with the constant.
    Set,
}

/// A program in the making, its last instruction first.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    reversed: Vec<sock_filter>,
    /// The latest return of each verdict.
    returns: Vec<(Verdict, Label)>,
}

impl Assembler {
    /// Loads the word at `offset`, then goes to `then`.
    pub(super) fn load(&mut self, offset: u32, then: Target) -> Label {
        self.fall_through_to(then);
        self.push(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset)
    }

    /// Masks the accumulator, then goes to `then`.
    pub(super) fn and(&mut self, mask: u32, then: Target) -> Label {
        self.fall_through_to(then);
        self.push(BPF_ALU | BPF_AND | BPF_K, 0, 0, mask)
    }

    /// Goes to `yes` or to `no`.
    pub(super) fn branch(&mut self, compare: Compare, constant: u32, yes: Target, no: Target) -> Label {
        let (yes, no) = (self.near(yes), self.near(no));
        let op = match compare {
            Compare::Eq => BPF_JEQ,
            Compare::Ge => BPF_JGE,
            Compare::Set => BPF_JSET,
        };
        let (yes, no) = (self.distance(yes) as u8, self.distance(no) as u8);
        self.push(BPF_JMP | op | BPF_K, yes, no, constant)
    }

    /// The program in its right order.
    pub(super) fn finish(mut self) -> Vec<sock_filter> {
        self.reversed.reverse();
        self.reversed
    }

    fn fall_through_to(&mut self, target: Target) {
        let label = self.near(target);
        let distance = self.distance(label);
        if distance > 0 {
            self.push(BPF_JMP | BPF_JA, 0, 0, distance);
        }
    }

    /// A place from which the next or the next but one instruction can go to `target` by a conditional jump.
    /// Writes at most one instruction, so `branch` may ask for two places in a row.
    fn near(&mut self, target: Target) -> Label {
        match target {
            Target::Code(label) if self.is_near(label) => label,
            Target::Code(label) => {
                let distance = self.distance(label);
                self.push(BPF_JMP | BPF_JA, 0, 0, distance)
            }
            Target::Verdict(verdict) => {
                let known = self.returns.iter().find(|(known, _)| *known == verdict).map(|(_, label)| *label);
                if let Some(label) = known
                    && self.is_near(label)
                {
                    return label;
                }
                let label = self.push(BPF_RET | BPF_K, 0, 0, verdict.value());
                self.returns.retain(|(known, _)| *known != verdict);
                self.returns.push((verdict, label));
                label
            }
        }
    }

    fn is_near(&self, label: Label) -> bool {
        self.distance(label) < u32::from(u8::MAX)
    }

    /// What the instruction that is written next has to skip to reach `label`.
    fn distance(&self, label: Label) -> u32 {
        (self.reversed.len() - label.0 - 1) as u32
    }

    fn push(&mut self, code: u32, jt: u8, jf: u8, k: u32) -> Label {
        self.reversed.push(sock_filter { code: code as u16, jt, jf, k });
        Label(self.reversed.len() - 1)
    }
}
