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

/// What an archive brought into a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArchiveWritten {
    /// Files and links, but not folders.
    #[schema(example = 12)]
    pub files: u64,
    /// All files together, unpacked.
    #[schema(example = 40960)]
    pub size_bytes: u64,
}

/// One find of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileMatch {
    /// Below the folder that was asked for.
    #[schema(example = "src/main.py")]
    pub path: String,
    pub kind: FileKind,
    pub size_bytes: u64,
    /// The number of the line, from 1, where content was looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The line, or its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileMatches {
    pub matches: Vec<FileMatch>,
    /// Whether there may be more: the limit was reached, or the time was over.
    pub truncated: bool,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    Created,
    /// Its content or its mode.
    Modified,
    Removed,
    Moved,
}

impl FileChangeKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Removed => "removed",
            Self::Moved => "moved",
        }
    }
}

/// The data of one event of a watch; the event's name is the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileChangeData {
    pub seq: i64,
    /// Below the folder that is watched.
    #[schema(example = "src/main.py")]
    pub path: String,
    pub kind: FileKind,
    pub change: FileChangeKind,
    /// Where it was before, for what was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// The first event of a watch: what happens from here on is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WatchReadyData {
    pub seq: i64,
    #[schema(example = "/workspace")]
    pub path: String,
}

/// `POST /v1/sessions/{id}/files/watch/tickets`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"path": "/workspace", "origin": "https://app.example"}))]
pub struct WatchTicketRequest {
    /// The folder; /workspace unless given.
    #[schema(example = "/workspace")]
    pub path: Option<String>,
    /// The pages that may use it, by scheme, host and port; without it, those of this server.
    #[schema(example = "https://app.example")]
    pub origin: Option<String>,
}

/// `POST /v1/sessions/{id}/files/url`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FileLinkRequest {
    #[schema(example = "/workspace/a.txt")]
    pub path: String,
    /// `GET`, the default, `HEAD` or `PUT`.
    #[serde(default)]
    #[schema(pattern = "^(GET|HEAD|PUT)$", example = "GET")]
    pub method: Option<String>,
    /// 900, unless given.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 604800, example = 60)]
    pub ttl_seconds: Option<u64>,
    /// How many bytes an upload may have; for `PUT` only, and needed there.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub size_bytes: Option<u64>,
}
