//! Artifacts on the wire.

use serde::{Deserialize, Serialize};

/// `POST /v1/artifacts`: what is about to be uploaded.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArtifactRequest {
    pub name: String,
    pub size_bytes: u64,
    /// In hexadecimal. It may be given when finalising instead.
    #[serde(default)]
    pub sha256: Option<String>,
    #[serde(default)]
    pub content_type: Option<String>,
}

/// `POST /v1/artifacts/{id}/finalize`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FinalizeRequest {
    pub sha256: Option<String>,
}

/// `POST /v1/artifacts/{id}/url`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkRequest {
    /// `GET`, the default, or `HEAD`.
    pub method: Option<String>,
    pub ttl_seconds: Option<u64>,
}

/// An artifact, as it is answered everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Artifact {
    pub id: String,
    /// Of the job that left it; none for an upload.
    pub job_id: Option<String>,
    pub name: String,
    pub size_bytes: u64,
    pub sha256: Option<String>,
    pub content_type: String,
    /// `uploading` or `ready`.
    pub state: &'static str,
    pub created_at: String,
    /// When it goes by itself.
    pub expires_at: String,
}

/// An address that allows one thing until a time, to whoever has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SignedUrl {
    pub method: String,
    /// Below the address of the server.
    pub url: String,
    pub expires_at: String,
}

/// An artifact whose bytes are awaited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArtifactCreated {
    #[serde(flatten)]
    pub artifact: Artifact,
    pub upload: SignedUrl,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArtifactList {
    pub artifacts: Vec<Artifact>,
    /// For the next page; none at the end.
    pub next_cursor: Option<String>,
}
