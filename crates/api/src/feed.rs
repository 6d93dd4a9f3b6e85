//! The data of the events by which a tenant's jobs are followed.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `init`: where the feed stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FeedInitData {
    pub seq: i64,
}

/// What became of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FeedData {
    pub seq: i64,
    #[schema(format = DateTime)]
    pub at: String,
    /// The same as the event's name.
    #[schema(example = "job.finished")]
    pub kind: String,
    pub job_id: String,
    /// Where it is known.
    pub state: Option<String>,
    pub reason: Option<String>,
}
