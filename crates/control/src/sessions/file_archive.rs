//! `file.read` and `file.write` of whole folders, as archives. The bytes go through.

use super::files::{parse, refused};
use crate::session_worker::{ArchiveKind, FileReader};
use crate::{Control, Result};
use cofferdam_api::ArchiveWritten;
use cofferdam_policy::Permit;
use serde_json::json;

impl Control {
    pub async fn read_archive(
        &self,
        permit: &Permit,
        session: &str,
        path: &str,
        kind: ArchiveKind,
    ) -> Result<FileReader> {
        let path = parse("path", path)?;
        let details = json!({"path": path.as_str(), "verb": "archive", "format": kind.as_str()});
        let at = self.reach_file(permit, session, "file.read", details).await?;
        at.sessions()?.read_archive(&at.placed, &path, kind).await.map_err(refused)
    }

    /// Unpacks an archive into a folder. One that is cut off or refused changes nothing in it.
    pub async fn write_archive(
        &self,
        permit: &Permit,
        session: &str,
        path: &str,
        kind: ArchiveKind,
        content: FileReader,
    ) -> Result<ArchiveWritten> {
        let path = parse("path", path)?;
        let details = json!({"path": path.as_str(), "verb": "archive", "format": kind.as_str()});
        let at = self.reach_file(permit, session, "file.written", details).await?;
        at.sessions()?.write_archive(&at.placed, &path, kind, content).await.map_err(refused)
    }
}
