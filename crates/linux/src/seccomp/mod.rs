//! The seccomp filters: which system calls a sandbox may make.
//!
//! The policy is data (`table`, `rules`, and one file per architecture), `compile` turns it into classic BPF,
//! and `program` installs the result. Every call of the kernel is listed with what becomes of it; whatever is
//! not listed does not exist (ENOSYS), so a call that a future kernel adds is closed until somebody has
//! looked at it.
//!
//! What this module deliberately does not do: look through pointers (BPF cannot, which is why `clone3` is
//! closed to payloads), return different errors per argument, or adapt to the machine. A filter is the same
//! everywhere, so one golden file describes it.
//!
//! Filters stack, and the strictest answer wins: a payload runs under PID 1's filter and under its own. So
//! [`Profile::Init`] allows at least what the payload's profiles allow, and a test holds it to that.

#[cfg(test)]
mod assemble;
#[cfg(test)]
mod compile;
mod compiled;
mod describe;
mod export;
mod nr;
mod program;
#[cfg(test)]
mod ranges;
mod rules;
mod table;

#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod arch;

#[cfg(test)]
mod eval;
#[cfg(test)]
mod live;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;

pub use describe::describe;
pub use export::oci_json;
pub use program::{Program, install};

/// Who a filter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The user's code, running under another uid than PID 1.
    Payload,
    /// The user's code where it has PID 1's uid (rootless with a single id): calls that would let it starve
    /// or slow down PID 1 are refused on top.
    PayloadOneId,
    /// PID 1 of the sandbox, which runs only our code, and every payload until it installs its own.
    Init,
}

impl Profile {
    pub const ALL: [Profile; 3] = [Profile::Payload, Profile::PayloadOneId, Profile::Init];

    /// The compiled filter. It is part of the binary, because compiling takes longer than installing.
    pub fn program(self) -> &'static Program {
        match self {
            Profile::Payload => &compiled::PAYLOAD,
            Profile::PayloadOneId => &compiled::PAYLOAD_ONE_ID,
            Profile::Init => &compiled::INIT,
        }
    }

    /// The same, compiled now.
    #[cfg(test)]
    fn compile(self) -> Program {
        compile::compile(&table::table(self))
    }
}

/// The filter for user code. See [`Profile::Payload`].
pub fn payload() -> &'static Program {
    Profile::Payload.program()
}

/// The filter for user code that shares PID 1's uid. See [`Profile::PayloadOneId`].
pub fn payload_one_id() -> &'static Program {
    Profile::PayloadOneId.program()
}

/// The filter for PID 1. See [`Profile::Init`].
pub fn init() -> &'static Program {
    Profile::Init.program()
}
