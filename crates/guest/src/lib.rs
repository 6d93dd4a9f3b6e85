//! Inside a container nothing of the host can start a process, open a file as the sandbox's user or make a
//! socket. A helper can: it is the first process of every container, and serves the host over the container's
//! own stdin and stdout. No mount, no port and no second connection is needed, so that it works the same through
//! a daemon on another machine, in a container of runc and behind gVisor's own kernel.
//!
//! `agent` is what runs inside, `host` is the other side of it, `protocol` what they say. The helper runs as the
//! sandbox's user with nothing that its processes do not have; what protects it is being process 1, whose memory
//! cannot be read and whom no signal from inside can end. When its stdin ends, it ends, and all with it.

pub mod accounts;
pub mod agent;
pub mod facts;
pub mod host;
pub mod inotify;
pub mod maker;
pub mod protocol;
pub mod report;

/// The word by which a program of ours becomes the helper.
pub const WORD: &str = "guest";

/// Where the helper lies inside.
pub const PROGRAM: &str = "/.cofferdam/guest";

/// Where secrets are files: in memory of its own in every container, which nothing keeps.
pub const SECRETS: &str = "/run/secrets";

/// What the largest secrets take that one job or session may have, twice over: 32 of 64 KiB.
pub const SECRETS_BYTES: u64 = 4 << 20;

/// Each in some folders of its own.
pub const SECRETS_FILES: u64 = 1024;

/// Who processes are inside, and the helper with them.
pub const UID: u32 = 1000;
