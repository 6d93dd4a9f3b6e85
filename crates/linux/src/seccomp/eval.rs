//! For tests: runs a filter as the kernel would, and refuses what the kernel would refuse.

use libc::sock_filter;

use super::arch;
use super::assemble::Verdict;

/// A system call as a filter sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data {
    pub(super) nr: u32,
    pub(super) arch: u32,
    pub(super) args: [u64; 6],
}

impl Data {
    pub(super) fn native(nr: u32, args: [u64; 6]) -> Self {
        Data { nr, arch: arch::AUDIT_ARCH, args }
    }

    /// The word at a byte offset of `struct seccomp_data`: nr, arch, instruction pointer (two words),
    /// arguments.
    fn word(&self, offset: u32) -> u32 {
        assert_eq!(offset % 4, 0, "an unaligned load");
        match offset / 4 {
            0 => self.nr,
            1 => self.arch,
            2 | 3 => panic!("a filter has no use for the instruction pointer"),
            word @ 4..16 => {
                let arg = self.args[(word as usize - 4) / 2];
                if word % 2 == 0 { arg as u32 } else { (arg >> 32) as u32 }
            }
            _ => panic!("a load from outside"),
        }
    }
}

/// The answer, and how many instructions it took.
pub(super) fn run(code: &[sock_filter], data: &Data) -> (Verdict, usize) {
    let mut accumulator = 0;
    let mut at = 0;
    for steps in 1..=code.len() {
        let sock_filter { code: op, jt, jf, k } = *code.get(at).expect("a jump out of the program");
        let branch = |taken: bool| usize::from(if taken { jt } else { jf });
        at += 1;
        // The numbers are written out, so that this agrees with the kernel's header and not with the
        // assembler.
        match op {
            0x20 => accumulator = data.word(k),
            0x54 => accumulator &= k,
            0x05 => at += k as usize,
            0x15 => at += branch(accumulator == k),
            0x35 => at += branch(accumulator >= k),
            0x45 => at += branch(accumulator & k != 0),
            0x06 => return (verdict(k), steps),
            _ => panic!("instruction {op:#x} is not one of ours"),
        }
    }
    panic!("no return");
}

fn verdict(value: u32) -> Verdict {
    match value {
        0x7fff_0000 => Verdict::Allow,
        0x0005_0001 => Verdict::Eperm,
        0x0005_0026 => Verdict::Enosys,
        0x8000_0000 => Verdict::Kill,
        _ => panic!("{value:#x} is not one of our verdicts"),
    }
}
