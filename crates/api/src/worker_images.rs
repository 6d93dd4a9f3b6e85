//! What control asks of a worker's image store.

use crate::ImageCheck;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST /images/look`: tries an image of the worker's.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageLook {
    /// The worker that is meant.
    pub worker_id: String,
    #[schema(max_length = 384, example = "python-tools:1")]
    pub name: String,
    /// Which image it is; the one that has that name there, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The contract of each is tried.
    #[schema(max_items = 16)]
    pub profiles: Vec<String>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ImageLooked {
    Found {
        /// With its tag.
        name: String,
        /// What the profiles say that it can do.
        capabilities: Vec<String>,
        check: ImageCheck,
    },
    /// It is kept.
    Done,
    /// The worker has no such image.
    NotThere,
    /// There can be no such name, digest or profile.
    Invalid { field: String, value: String, fix: String },
    /// For the operator.
    Failed { why: String },
}

/// `PUT /images/pins`: keeps images in the worker's store, whatever becomes of their names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImagePins {
    /// The worker that is meant.
    pub worker_id: String,
    /// For whom: the control plane.
    #[schema(pattern = "^[a-z0-9-]{1,64}$")]
    pub keeper: String,
    #[schema(max_items = 100000)]
    pub digests: Vec<String>,
    /// Lets go of all others that it has kept for it.
    pub is_all: bool,
}
