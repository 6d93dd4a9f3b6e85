//! What an operator decides about artifacts.

use crate::Keep;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactSettings {
    /// The largest single upload.
    pub max_bytes: u64,
    /// For how long an artifact is kept after it was made.
    pub retention: Keep,
    /// For how long an upload may take, from its beginning until it is finalised.
    pub upload_time: Duration,
    /// The longest that a signed address may be good for, and what it is good for if nobody says.
    pub link_time_max: Duration,
    pub link_time: Duration,
    /// Bytes that no record names are removed when they are older than that.
    pub orphan_age: Duration,
    /// How often what is over is looked for, and how often everything is.
    pub sweep: Duration,
    pub full_sweep: Duration,
}

const HOUR: Duration = Duration::from_secs(3600);

impl Default for ArtifactSettings {
    fn default() -> Self {
        Self {
            max_bytes: 5 << 30,
            retention: Keep::For(30 * 24 * HOUR),
            upload_time: HOUR,
            link_time_max: 7 * 24 * HOUR,
            link_time: Duration::from_secs(900),
            orphan_age: HOUR,
            sweep: Duration::from_secs(30),
            full_sweep: HOUR,
        }
    }
}
