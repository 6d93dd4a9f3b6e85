//! `file.read` and `file.write`: the files of a session, from outside. Each use is noted; the bytes go through.

use super::context_restart::UNREACHABLE;
use crate::session_worker::{FileReader, Placed, SessionFailure, SessionWorker};
use crate::worker::Worker;
use crate::{Control, ControlError, Result};
use cofferdam_api::{FileInfo, FileList};
use cofferdam_core::{GuestPath, InvalidValue};
use cofferdam_policy::Permit;
use serde_json::json;
use std::sync::Arc;

/// Where a new file's mode is not given.
pub const FILE_MODE: u32 = 0o644;

/// A session that may be used, and the way to it.
pub(super) struct Reached {
    worker: Arc<dyn Worker>,
    pub(super) placed: Placed,
}

impl Reached {
    pub(super) fn sessions(&self) -> Result<&dyn SessionWorker> {
        self.worker.sessions().ok_or(UNREACHABLE)
    }
}

impl Control {
    pub(super) async fn reach_file(
        &self,
        permit: &Permit,
        session: &str,
        kind: &'static str,
        details: serde_json::Value,
    ) -> Result<Reached> {
        let record = self.use_session(permit, session, kind, details).await?;
        let (worker, id) = self.reach(&record).await?;
        Ok(Reached { worker, placed: Placed { id, generation: record.generation } })
    }

    pub async fn stat_file(&self, permit: &Permit, session: &str, path: &str) -> Result<FileInfo> {
        let path = parse("path", path)?;
        let at = self
            .reach_file(permit, session, "file.read", json!({"path": path.as_str(), "verb": "stat"}))
            .await?;
        at.sessions()?.stat_file(&at.placed, &path).await.map_err(refused)
    }

    /// A file's bytes, and what is known of it. Where they begin is said by whoever knows how many there are.
    pub async fn read_file(
        &self,
        permit: &Permit,
        session: &str,
        path: &str,
        first: impl FnOnce(u64) -> u64 + Send,
    ) -> Result<(FileInfo, FileReader)> {
        let path = parse("path", path)?;
        let at = self.reach_file(permit, session, "file.read", json!({"path": path.as_str()})).await?;
        let sessions = at.sessions()?;
        let info = sessions.stat_file(&at.placed, &path).await.map_err(refused)?;
        let opened = sessions.read_file_from(&at.placed, &path, first(info.size_bytes)).await;
        let (_, reader) = opened.map_err(refused)?;
        Ok((info, reader))
    }

    pub async fn list_files(
        &self,
        permit: &Permit,
        session: &str,
        path: &str,
        depth: usize,
        limit: usize,
    ) -> Result<FileList> {
        let path = parse("path", path)?;
        let at = self
            .reach_file(permit, session, "file.read", json!({"path": path.as_str(), "verb": "list"}))
            .await?;
        at.sessions()?.list_files(&at.placed, &path, depth, limit).await.map_err(refused)
    }

    /// Makes or replaces a file. Where it is cut off, the old one stays.
    pub async fn write_file(
        &self,
        permit: &Permit,
        session: &str,
        path: &str,
        mode: u32,
        content: FileReader,
    ) -> Result<u64> {
        let path = parse("path", path)?;
        let at = self.reach_file(permit, session, "file.written", json!({"path": path.as_str()})).await?;
        at.sessions()?.write_file(&at.placed, &path, mode, content).await.map_err(refused)
    }

    pub async fn make_folder(&self, permit: &Permit, session: &str, path: &str) -> Result<()> {
        let path = parse("path", path)?;
        let details = json!({"path": path.as_str(), "verb": "mkdir"});
        let at = self.reach_file(permit, session, "file.written", details).await?;
        at.sessions()?.make_folder(&at.placed, &path).await.map_err(refused)
    }

    pub async fn move_file(&self, permit: &Permit, session: &str, from: &str, to: &str) -> Result<()> {
        let (from, to) = (parse("from", from)?, parse("to", to)?);
        let details = json!({"path": to.as_str(), "from": from.as_str(), "verb": "move"});
        let at = self.reach_file(permit, session, "file.written", details).await?;
        at.sessions()?.move_file(&at.placed, &from, &to).await.map_err(refused)
    }

    pub async fn remove_file(&self, permit: &Permit, session: &str, path: &str, all: bool) -> Result<()> {
        let path = parse("path", path)?;
        let details = json!({"path": path.as_str(), "verb": "remove"});
        let at = self.reach_file(permit, session, "file.written", details).await?;
        at.sessions()?.remove_file(&at.placed, &path, all).await.map_err(refused)
    }
}

/// A path that is not absolute is one of the workspace.
pub(super) fn parse(field: &str, text: &str) -> Result<GuestPath> {
    Ok(GuestPath::parse_in_workspace(field, text)?)
}

pub(super) fn refused(failure: SessionFailure) -> ControlError {
    let SessionFailure { code, message } = failure;
    match code.as_str() {
        "not_found" => ControlError::NotFound { what: "file" },
        "not_permitted" | "invalid" => {
            let (path, why) = message.split_once(": ").unwrap_or(("", &message));
            InvalidValue::new("path", path, why).into()
        }
        "archive_refused" => {
            let (entry, why) = message.split_once(": ").unwrap_or(("", &message));
            InvalidValue::new("archive", entry, why).into()
        }
        "unsupported" => ControlError::Unsupported { field: "path", why: message.into() },
        "disk_full" => ControlError::TooLarge { text: message },
        "session_gone" | "session_stale" => UNREACHABLE,
        _ => ControlError::Unavailable(message),
    }
}
