//! The task that watches over the place of artifacts.

use super::Gate;
use crate::Control;
use std::error::Error;
use std::time::Duration;
use tokio::time::timeout;

/// How often is looked while it is down, and while nothing is known to be wrong: a look may cost a request to a bucket.
const SOON: Duration = Duration::from_secs(1);
const AT_TIMES: Duration = Duration::from_secs(10);

impl Control {
    /// Starts the task, for as long as the process lives; without a place there is nothing to watch.
    pub(crate) fn spawn_artifact_watch(&self) {
        let control = self.clone();
        if self.parts.artifacts.is_some() {
            tokio::spawn(async move { control.watch_artifacts().await });
        }
    }

    async fn watch_artifacts(&self) {
        let Ok(artifacts) = self.artifacts() else { return };
        let mut failures = artifacts.vault.failures();
        loop {
            let has_failed = failures.has_changed().unwrap_or(false);
            failures.mark_unchanged();
            let is_closed = self.parts.gates.is_closed(Gate::ArtifactsDown);
            // One that only reads is told from one that works by a write alone.
            let found = match has_failed || is_closed {
                true => artifacts.vault.probe_writing().await,
                false => artifacts.vault.probe_reading().await,
            };
            let said = found.as_ref().err().map(|error| match error.source() {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            });
            let closed = said.is_some().then_some(Gate::ArtifactsDown);
            self.set_gates(&[Gate::ArtifactsDown], closed, &said.unwrap_or_default());
            let pause = if closed.is_some() { SOON } else { AT_TIMES };
            if timeout(pause, failures.changed()).await.is_ok() {
                failures.mark_changed();
            }
            // Someone whose every write fails does not make this spin.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
