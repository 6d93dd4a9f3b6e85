//! The programs that run inside, one for each interpreter.

/// How an interpreter is started and told what it is.
#[derive(Debug)]
pub(crate) struct Program {
    /// Looked up in the PATH of the kernel's environment, inside.
    pub(crate) name: &'static str,
    pub(crate) start: Start,
    /// The kernel itself.
    pub(crate) source: &'static str,
    /// Whether it wants to be told of an interrupt besides the signal.
    pub(crate) hears_interrupts: bool,
}

#[derive(Debug)]
pub(crate) enum Start {
    /// A short program is an argument, connects, and gets the kernel from there. So `ps` stays readable.
    Argument { flag: &'static str, boot: &'static str },
    /// The interpreter reads the kernel, and then lines for each cell, from its stdin: an interrupt makes a shell
    /// drop the line that it is at and read the next one.
    Lines {
        words: &'static [&'static str],
        line: &'static str,
        /// For one whose last line was lost to an interrupt.
        again: &'static str,
    },
}

pub(crate) static PYTHON: Program = Program {
    name: "python3",
    start: Start::Argument {
        flag: "-c",
        boot: concat!(include_str!("python_load.py"), include_str!("python_boot.py")),
    },
    source: include_str!("python.py"),
    hears_interrupts: false,
};

/// What an interpreter is given that waits for a kernel to become.
#[derive(Debug, PartialEq, Eq)]
pub struct Waiting {
    /// A program. It reads from its stdin the length of the kernel (32 bits, little-endian) and the kernel, in the same way
    /// what another one has compiled of it, if anything, says that it is ready and what it has compiled, and reads
    /// arguments and environment.
    pub code: &'static str,
    pub kernel: &'static str,
}

/// One that has the kernel compiled by the time it is asked.
pub static PYTHON_WAITING: Waiting = Waiting {
    code: concat!(
        include_str!("python_load.py"),
        include_str!("python_ready.py"),
        include_str!("python_boot.py")
    ),
    kernel: include_str!("python.py"),
};

pub(crate) static NODE: Program = Program {
    name: "node",
    start: Start::Argument { flag: "-e", boot: include_str!("node_boot.js") },
    source: include_str!("node.js"),
    hears_interrupts: true,
};

pub(crate) static BASH: Program = Program {
    name: "bash",
    start: Start::Lines {
        // It complains of having no terminal before it reads its first line, which is nobody's business.
        words: &["-c", "exec bash --norc --noprofile --noediting -i 197>&2 2>/dev/null"],
        line: concat!(
            "_cofferdam_take; _cofferdam_last; ",
            "eval \"$_cofferdam_text\" 0</dev/null 196>&- 197>&- 198>&-; _cofferdam_done=$?\n",
            "_cofferdam_end\n",
        ),
        again: "_cofferdam_end\n",
    },
    source: include_str!("bash.sh"),
    hears_interrupts: false,
};
