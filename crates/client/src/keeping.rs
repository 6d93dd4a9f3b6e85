//! Verbs on what is kept of sessions, and on secrets.

use crate::{Client, Result};
use cofferdam_api::{
    Secret, SecretList, SecretPut, Session, SessionFork, SessionForks, SessionPause, Snapshot, SnapshotList,
    SnapshotRequest,
};
use reqwest::Method;
use std::time::Duration;

/// Files are written away or put back before the answer comes.
const PATIENCE: Duration = Duration::from_secs(600);

impl Client {
    pub async fn session_pause(&self, id: &str, request: &SessionPause) -> Result<Session> {
        let path = ["v1", "sessions", id, "pause"];
        self.call(Method::POST, &path).body(request)?.wait(PATIENCE).json().await
    }

    pub async fn session_resume(&self, id: &str) -> Result<Session> {
        self.call(Method::POST, &["v1", "sessions", id, "resume"]).wait(PATIENCE).json().await
    }

    /// Makes children. If the answer is lost, they may be there: it is not tried again.
    pub async fn session_fork(&self, id: &str, request: &SessionFork) -> Result<SessionForks> {
        let path = ["v1", "sessions", id, "fork"];
        self.call(Method::POST, &path).body(request)?.wait(PATIENCE).json().await
    }

    pub async fn snapshot_create(&self, session: &str, request: &SnapshotRequest) -> Result<Snapshot> {
        let path = ["v1", "sessions", session, "snapshots"];
        self.call(Method::POST, &path).body(request)?.wait(PATIENCE).json().await
    }

    pub async fn snapshot_list(&self, cursor: Option<&str>) -> Result<SnapshotList> {
        let call = self.call(Method::GET, &["v1", "snapshots"]);
        match cursor {
            Some(cursor) => call.query("cursor", cursor).json().await,
            None => call.json().await,
        }
    }

    pub async fn snapshot_delete(&self, id: &str) -> Result<()> {
        self.call(Method::DELETE, &["v1", "snapshots", id]).gone().await
    }

    pub async fn secret_put(&self, name: &str, request: &SecretPut) -> Result<Secret> {
        self.call(Method::PUT, &["v1", "secrets", name]).body(request)?.repeatable().json().await
    }

    pub async fn secret_list(&self, cursor: Option<&str>) -> Result<SecretList> {
        let call = self.call(Method::GET, &["v1", "secrets"]);
        match cursor {
            Some(cursor) => call.query("cursor", cursor).json().await,
            None => call.json().await,
        }
    }

    pub async fn secret_delete(&self, name: &str) -> Result<()> {
        self.call(Method::DELETE, &["v1", "secrets", name]).gone().await
    }
}
