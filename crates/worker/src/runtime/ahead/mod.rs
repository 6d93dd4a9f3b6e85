//! Interpreters that are started before there is a program for them.
//!
//! An interpreter waits for one message on its stdin and becomes what `python3 -c` or `node -e` would have been
//! for that program: with its arguments, its environment and its input, and nothing of the wait left to see.
//! What cannot be made so afterwards (a variable that only counts at the start of an interpreter, say) is a
//! reason to start a new one.

#[cfg(test)]
mod tests;

use super::{INLINE_CODE_MAX_BYTES, Runtime};
use crate::task_env::{STARTUP_VARIABLES, default_env};

/// How a runtime waits.
#[derive(Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The words after the program's name, the last of which is the code that waits.
    flag: &'static str,
    boot: &'static str,
    /// Whether it tells that code compiled, and can be started with that.
    is_compiled: bool,
    /// Names of variables, or how they begin, that the interpreter looks at while it starts.
    looked_at: &'static [&'static str],
    /// What it is given before it waits for what is wanted of it.
    pub(crate) then: Option<&'static cofferdam_kernels::Waiting>,
    /// What one that waits takes of the machine's memory, rounded up from measurements.
    pub idle_bytes: u64,
}

/// What the C library looks at when a program starts.
const LIBC: [&str; 7] = ["LD_", "LC_", "GLIBC_", "GCONV_", "MALLOC_", "LOCPATH", "LANGUAGE"];

pub(super) static PYTHON: Ahead = PYTHON_ALONE;

const PYTHON_ALONE: Ahead = Ahead {
    flag: "-c",
    boot: include_str!("python.py"),
    is_compiled: true,
    looked_at: &["PYTHON"],
    then: None,
    idle_bytes: 8 << 20,
};

/// One that becomes the interpreter of a session.
pub(super) static PYTHON_KERNEL: Ahead =
    Ahead { then: Some(&cofferdam_kernels::PYTHON_WAITING), idle_bytes: 10 << 20, ..PYTHON_ALONE };

pub(super) static NODE: Ahead = Ahead {
    flag: "-e",
    boot: include_str!("node.js"),
    is_compiled: false,
    looked_at: &["NODE_", "UV_", "OPENSSL_", "SSL_", "ICU_", "NO_COLOR", "FORCE_COLOR"],
    then: None,
    idle_bytes: 24 << 20,
};

/// What an interpreter writes when it waits. Behind it are the length of its code compiled, in four bytes, and that,
/// which is nothing if there is no use in it.
pub(crate) const READY: u8 = 0;

/// Code that is longer than this compiled is none of ours.
pub(crate) const COMPILED_MAX_BYTES: usize = 64 << 10;

/// How the function that waits is called by what tells of it; the rest of the text stays as it is.
const TELLING_CALL: &str = "_boot = _boot(True)\n";

/// The text that reads what waits compiled, from its stdin, instead of compiling it: that takes a fraction of the time,
/// and as a word of its own it would be decoded, encoded and read as a text first. A text takes the place of a text: the
/// program that comes has the same frames below it.
fn reading(boot: &str, len: usize) -> Option<String> {
    let (_, rest) = boot.split_once(TELLING_CALL)?;
    let code = format!("open(0, 'rb', closefd=False).read({len})");
    Some(format!("_boot = type(lambda: 0)(__import__('marshal').loads({code}), globals())(False)\n{rest}"))
}

impl Ahead {
    /// The words that start the interpreter, and what it is sent then. `compiled` is what another one of the same image
    /// has told.
    pub(crate) fn start<'c>(&self, runtime: &Runtime, compiled: Option<&'c [u8]>) -> (Vec<String>, &'c [u8]) {
        let compiled = compiled.filter(|_| self.is_compiled);
        let reading = compiled.and_then(|code| Some((reading(self.boot, code.len())?, code)));
        let (boot, sent) = reading.unwrap_or_else(|| (self.boot.to_owned(), &[]));
        (vec![runtime.program.to_owned(), self.flag.to_owned(), boot], sent)
    }

    /// Whether a program can be given to an interpreter that has started without it. `requested` is its environment, with
    /// or without the defaults.
    pub(crate) fn takes(&self, code: &str, requested: &[(String, String)]) -> bool {
        let counts_at_start = |name: &str| {
            STARTUP_VARIABLES.contains(&name)
                || LIBC.iter().chain(self.looked_at).any(|start| name.starts_with(start))
        };
        let defaults = default_env();
        code.len() <= INLINE_CODE_MAX_BYTES
            && !code.contains('\0')
            && !requested.iter().any(|variable| counts_at_start(&variable.0) && !defaults.contains(variable))
    }
}

/// The message that an interpreter waits for: its length, and then words that each end where the next begins.
pub(crate) fn message(code: &str, args: &[String], env: &[(String, String)], has_input: bool) -> Vec<u8> {
    let mut words = vec![0; 4];
    words.extend(if has_input { b"1" } else { b"0" });
    let mut add = |parts: &[&str]| {
        words.push(0);
        parts.iter().for_each(|part| words.extend(part.as_bytes()));
    };
    add(&[&args.len().to_string()]);
    add(&[code]);
    args.iter().for_each(|arg| add(&[arg]));
    env.iter().for_each(|(name, value)| add(&[name, "=", value]));
    let len = u32::try_from(words.len() - 4).unwrap_or(u32::MAX);
    words[..4].copy_from_slice(&len.to_le_bytes());
    words
}
