//! Jobs that bring their container with them: `execution_mode: docker-sandbox`.

use crate::Command;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// `sandbox` of a job: what runs in a container of Docker or Podman, in the place of `image`, `command` and `env`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"image": "app:1", "command": ["true"]}))]
pub struct SandboxRequest {
    /// An image of the server's store, as `NAME:TAG` or by digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = true, nullable = false, example = "app:1")]
    pub image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = true, nullable = false)]
    pub command: Option<Command>,
    /// Where the command starts, an absolute path. Without mounts, the job's own workspace is there; the image's own
    /// working directory or /workspace, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/workspace")]
    pub workdir: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Folders of the server's machine, where its operator lets them in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 32)]
    pub mounts: Vec<MountRequest>,
}

/// A folder of the server's machine, as it is seen in the container.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MountRequest {
    /// Absolute, and below a folder that the operator lets in.
    #[schema(example = "/srv/data")]
    pub source: String,
    /// Absolute. Not over /proc, /sys, /dev, /run, /workspace or /tmp themselves.
    #[schema(example = "/data")]
    pub target: String,
    /// Unless it is false, and the operator allows that, nothing in it can be written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}
