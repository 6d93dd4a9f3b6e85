//! What is kept, for how long, and the sweep that removes the rest.

mod audit;
mod keep;
mod sweep;

pub use keep::Keep;
pub use sweep::Swept;

use std::time::Duration;

/// For how long things are kept after they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// A job, from its end on. Its output goes with it at the latest.
    pub jobs: Keep,
    /// What it wrote, from its end on.
    pub output: Keep,
    /// An entry of the audit. What is removed leaves a checkpoint.
    pub audit: Keep,
    /// How often it is looked for what may go.
    pub every: Duration,
}

const DAY: u64 = 24 * 60 * 60;

impl Default for Retention {
    fn default() -> Self {
        let days = |days| Keep::For(Duration::from_secs(days * DAY));
        Self { jobs: days(30), output: days(7), audit: days(365), every: Duration::from_secs(600) }
    }
}
