//! Artifacts on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST /v1/artifacts`: what is about to be uploaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArtifactRequest {
    /// Of a file; it is what a download will be called.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$",
        example = "data.csv"
    )]
    pub name: String,
    #[schema(maximum = 5368709120u64, example = 12)]
    pub size_bytes: u64,
    /// In hexadecimal. It may be given when finalising instead.
    #[serde(default)]
    #[schema(pattern = "^[0-9A-Fa-f]{64}$")]
    pub sha256: Option<String>,
    /// `application/octet-stream`, unless given.
    #[serde(default)]
    #[schema(
        max_length = 127,
        pattern = r"^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+ *(;[ -~]*)?$",
        example = "text/csv"
    )]
    pub content_type: Option<String>,
}

/// `POST /v1/artifacts/{id}/finalize`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FinalizeRequest {
    /// Of the bytes, in hexadecimal; needed unless it was given at the beginning.
    #[schema(pattern = "^[0-9A-Fa-f]{64}$")]
    pub sha256: Option<String>,
}

/// `POST /v1/artifacts/{id}/url`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LinkRequest {
    /// `GET`, the default, or `HEAD`.
    #[schema(pattern = "^(GET|HEAD)$", example = "GET")]
    pub method: Option<String>,
    /// 900, unless given.
    #[schema(minimum = 1, maximum = 604800, example = 60)]
    pub ttl_seconds: Option<u64>,
}

/// `POST /v1/sessions/{id}/artifacts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionArtifactRequest {
    /// A plain file of the session.
    #[schema(example = "/workspace/report.pdf")]
    pub path: String,
    /// What the artifact is called; the last name of the path, unless given.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 255, example = "report.pdf")]
    pub name: Option<String>,
}

/// An artifact, as it is answered everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    #[schema(example = "art-aaaaaaaaaaaaaaaa")]
    pub id: String,
    /// Of the job that left it; none for an upload.
    pub job_id: Option<String>,
    /// Of the session that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Of the step that made it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
    pub name: String,
    pub size_bytes: u64,
    pub sha256: Option<String>,
    pub content_type: String,
    /// `uploading` or `ready`.
    #[schema(example = "ready")]
    pub state: String,
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it goes by itself.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// An address that allows one thing until a time, to whoever has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignedUrl {
    pub method: String,
    /// Below the address of the server.
    pub url: String,
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// An artifact whose bytes are awaited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactCreated {
    #[serde(flatten)]
    pub artifact: Artifact,
    pub upload: SignedUrl,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactList {
    pub artifacts: Vec<Artifact>,
    /// For the next page; none at the end.
    pub next_cursor: Option<String>,
}
