//! Files of a session on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileInfo {
    /// In a list, below the folder that was asked for.
    #[schema(example = "/workspace/a.txt")]
    pub path: String,
    pub kind: FileKind,
    pub size_bytes: u64,
    /// The permission bits, in octal; not in a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "644")]
    pub mode: Option<String>,
    /// Not in a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub modified_at: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    File,
    Folder,
    /// It is never followed.
    Link,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileList {
    pub files: Vec<FileInfo>,
    /// Whether there are more than were asked for.
    pub truncated: bool,
}

/// `POST /v1/sessions/{id}/files/mkdir`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderRequest {
    #[schema(example = "/workspace/data")]
    pub path: String,
}

/// `POST /v1/sessions/{id}/files/move`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    #[schema(example = "/workspace/a.txt")]
    pub from: String,
    /// A file that is there is replaced.
    #[schema(example = "/workspace/b.txt")]
    pub to: String,
}
