//! What is told of a folder that is watched: as server-sent events, whose name is the type, and as JSON in text frames
//! of a WebSocket.

use crate::{ErrorCode, FileChangeData, FileChangeKind, TruncatedData, WatchReadyData};
use serde::{Deserialize, Serialize};

/// One event. `gone`, or an `error` that is the last, comes before every end that is not the client's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WatchEvent {
    /// The first of a watch that begins: what happens from here on is told.
    Ready(WatchReadyData),
    Created(FileChangeData),
    Modified(FileChangeData),
    Removed(FileChangeData),
    Moved(FileChangeData),
    /// What was up to this number was dropped, and was not seen.
    Truncated(TruncatedData),
    /// The folder is, and nothing more comes.
    Gone(WatchReadyData),
    Error {
        code: ErrorCode,
        message: String,
        /// Whether the stream ends with it.
        is_last: bool,
    },
}

impl From<FileChangeData> for WatchEvent {
    fn from(data: FileChangeData) -> Self {
        match data.change {
            FileChangeKind::Created => Self::Created(data),
            FileChangeKind::Modified => Self::Modified(data),
            FileChangeKind::Removed => Self::Removed(data),
            FileChangeKind::Moved => Self::Moved(data),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileKind;
    use serde_json::json;

    #[test]
    fn the_type_is_what_happened() {
        let change = |change| {
            let (path, kind) = ("a".to_owned(), FileKind::File);
            WatchEvent::from(FileChangeData { seq: 7, path, kind, change, from: None })
        };
        for (kind, name) in [
            (FileChangeKind::Created, "created"),
            (FileChangeKind::Modified, "modified"),
            (FileChangeKind::Removed, "removed"),
            (FileChangeKind::Moved, "moved"),
        ] {
            let said = serde_json::to_value(change(kind)).unwrap();
            assert_eq!(said, json!({"type": name, "seq": 7, "path": "a", "kind": "file", "change": name}));
        }
        let gone = WatchEvent::Gone(WatchReadyData { seq: 8, path: "/workspace".to_owned() });
        assert_eq!(
            serde_json::to_value(gone).unwrap(),
            json!({"type": "gone", "seq": 8, "path": "/workspace"})
        );
    }
}
