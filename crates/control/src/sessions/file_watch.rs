//! `file.read`, as it changes.

use super::files::{parse, refused};
use crate::session_worker::WatchTold;
use crate::{Control, Result};
use cofferdam_core::GuestPath;
use cofferdam_policy::Permit;
use serde_json::json;
use std::time::Duration;

impl Control {
    /// Begins to watch a folder, or goes on after a number.
    pub async fn watch_files(
        &self,
        permit: &Permit,
        session: &str,
        path: &str,
        after: Option<u64>,
    ) -> Result<(GuestPath, WatchTold)> {
        let path = parse("path", path)?;
        let details = json!({"path": path.as_str(), "verb": "watch"});
        let at = self.reach_file(permit, session, "file.read", details).await?;
        let told = at.sessions()?.watch_files(&at.placed, &path, after, Duration::ZERO).await;
        Ok((path, told.map_err(refused)?))
    }

    /// What comes next of a watch that was begun. It is the same use of it, and is not noted again.
    pub async fn watch_files_on(
        &self,
        permit: &Permit,
        session: &str,
        path: &GuestPath,
        after: u64,
        time: Duration,
    ) -> Result<WatchTold> {
        let (worker, placed) = self.placed(permit, session).await?;
        let sessions = worker.sessions().ok_or(super::context_restart::UNREACHABLE)?;
        sessions.watch_files(&placed, path, Some(after), time).await.map_err(refused)
    }
}
